// amp::RangeReport: what the values of f32 steps would lose in f16, and the policy that keeps them f32.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/passes/amp/policy.h"
#include "halftone/passes/amp/range.h"

namespace halftone::amp {

struct RangeRow {
  std::string value;  // "%h", "%h#1"
  std::string node;   // name
  std::string op;
  Range range;
};

class RangeReport {
 public:
  // Takes in what a node gave in one step, or what a source is. Values that are no floats are left
  // out.
  void Add(const ir::Value& value, const Tensor& tensor);

  // Worst first: by overflows, then by underflows, each as a share; then in the order they came.
  std::vector<RangeRow> Rows() const;

  // `deny` for every node of `graph` (as traced) that gave a value of which an element overflows, or
  // most elements that are not 0 underflow; and for what reads one that overflows, where f32 would
  // not follow by itself: an op that 16 bit pays for, or any that reads an input or a variable.
  // Gradients have the loss scale for that.
  Policy Propose(const ir::Graph& graph) const;

 private:
  std::vector<RangeRow> rows_;
  std::map<std::string, size_t> index_;  // by value
};

}  // namespace halftone::amp
