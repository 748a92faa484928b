// amp::RangeReport: what the values of f32 steps would lose in f16, and the policy that keeps them f32.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "halftone/passes/amp/policy.h"

namespace halftone::amp {

// Of the elements of one value, over all steps that were added.
struct Range {
  double largest = 0;                                         // finite magnitude
  double smallest = std::numeric_limits<double>::infinity();  // magnitude that is not 0
  int64_t elements = 0;
  int64_t zeros = 0;
  int64_t non_finite = 0;
  int64_t overflows = 0;   // finite, and infinite in f16: 65520 and more
  int64_t underflows = 0;  // not 0, and 0 in f16: 2^-25 and less
};

struct RangeRow {
  std::string value;  // "%h", "%h#1"
  std::string node;   // name
  std::string op;
  Range range;
};

class RangeReport {
 public:
  // Takes in what a node gave in one step. Values that are no floats are left out.
  void Add(const ir::Value& value, const Tensor& tensor);

  // Worst first: by overflows, then by underflows, each as a share; then in the order they came.
  std::vector<RangeRow> Rows() const;

  // `deny` for every node of `graph` (as traced) that gave a value of which an element overflows, or
  // most elements that are not 0 underflow. Gradients have the loss scale for that.
  Policy Propose(const ir::Graph& graph) const;

 private:
  std::vector<RangeRow> rows_;
  std::map<std::string, size_t> index_;  // by value
};

}  // namespace halftone::amp
