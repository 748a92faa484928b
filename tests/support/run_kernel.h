// Runs one kernel, or every node of a graph, on plain tensors.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/kernel.h"

namespace halftone::testing {

// The counter that random ops see in RunKernel and EvaluateGraph.
inline constexpr uint64_t kTestRunCount = 3;

// Runs `kernel`, made for `node`, twice over outputs filled with different bytes: inputs and
// outputs are plain, converted to and from the layouts of the node's types. Errors: Internal when
// the kernel writes beside an output, leaves an element unwritten (or differs between runs), or
// changes an input; OutOfRange for a run-time index.
absl::StatusOr<std::vector<Tensor>> RunKernel(kernels::Kernel& kernel, const ir::Node& node,
                                              absl::Span<const Tensor> inputs);

// The kernel of the reference device.
absl::StatusOr<std::vector<Tensor>> RunReference(const ir::Node& node,
                                                 absl::Span<const Tensor> inputs);

// One op on the reference device; ends the program if the op is impossible.
std::vector<Tensor> RunOp(const std::string& op, const std::vector<Tensor>& inputs,
                          ir::Attributes attrs = {});
// The same, with its error.
absl::StatusOr<std::vector<Tensor>> TryOp(const std::string& op, const std::vector<Tensor>& inputs,
                                          ir::Attributes attrs = {});

// Elements of `t`, which lie as `from` says, laid as `to` says.
Tensor Relaid(const Tensor& t, const ir::ValueType& from, const ir::ValueType& to);

// The value of every node, by the reference evaluator. `inputs` are those of the `input` nodes in
// order.
class GraphValues {
 public:
  static absl::StatusOr<GraphValues> Evaluate(const ir::Graph& graph,
                                              absl::Span<const Tensor> inputs);
  const Tensor& at(ir::Value v) const;

 private:
  std::map<std::pair<const ir::Node*, int>, Tensor> values_;
};

}  // namespace halftone::testing
