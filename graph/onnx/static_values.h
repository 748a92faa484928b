// Values that are known while a model is imported: shapes, axes and the like, which ONNX gives as
// operands and our ops as attributes.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "halftone/graph/ir/graph.h"

namespace halftone::onnx {

// What a model may ask for that its size does not pay for: elements of the largest value that is
// computed at import or made by a rule, and of all together.
inline constexpr int64_t kMaxStaticElements = int64_t{1} << 20;
inline constexpr int64_t kMaxStaticElementsOfAll = int64_t{1} << 22;

class StaticValues {
 public:
  // Values of variables (initializers) and inputs by name; both must outlive this.
  StaticValues(const std::map<std::string, Tensor>& variables,
               const std::map<std::string, Tensor>& inputs)
      : variables_(variables), inputs_(inputs) {}

  // Computed by reference kernels from constants and from the values above. Errors: Unimplemented
  // (it depends on an input without a value, or would take long), OutOfRange (a run-time index).
  absl::StatusOr<Tensor> Evaluate(ir::Value value);
  // Whether a rule may make a value of so many elements.
  bool Spend(int64_t elements);
  // Inputs whose value a graph now contains.
  const std::map<std::string, bool>& inputs_used() const { return inputs_used_; }

 private:
  absl::StatusOr<std::vector<Tensor>> EvaluateNode(const ir::Node& node);

  const std::map<std::string, Tensor>& variables_;
  const std::map<std::string, Tensor>& inputs_;
  std::map<std::string, bool> inputs_used_;
  std::unordered_map<int64_t, std::vector<Tensor>> known_;  // by node id
  int64_t elements_left_ = kMaxStaticElementsOfAll;
  double flops_left_ = 1e7;  // of all nodes that are evaluated
};

}  // namespace halftone::onnx
