#include "halftone/kernels/reference_evaluator.h"

#include "absl/strings/str_join.h"

namespace halftone::kernels {
namespace {

absl::Status CheckInputs(const ir::Node& node, absl::Span<const Tensor> inputs) {
  if (static_cast<int>(inputs.size()) != node.num_inputs()) {
    return InvalidArgument(node.Label(), ": ", inputs.size(), " tensors; expected ",
                           node.num_inputs());
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    const ir::ValueType& type = node.input_type(i);
    if (inputs[i].dtype() != type.dtype || inputs[i].shape() != type.shape) {
      return InvalidArgument(node.Label(), ": input ", i, " is ", inputs[i].TypeString(),
                             "; expected ", type);
    }
  }
  return absl::OkStatus();
}

ir::ValueType Plain(ir::ValueType type) {
  type.layout = ir::Layout::kPlain;
  return type;
}

// The node alone in a graph of its own, every type plain.
ir::Node* CopyPlain(const ir::Node& node, ir::Graph& graph) {
  std::vector<ir::Value> inputs;
  const ir::OpRecord* source = ir::OpRegistry::Global().Find("input");
  for (int i = 0; i < node.num_inputs(); ++i) {
    inputs.push_back(graph.AddNode(source, {}, {}, {Plain(node.input_type(i))}, "x", "")->output());
  }
  std::vector<ir::ValueType> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(Plain(node.output_type(i)));
  return graph.AddNode(&node.op(), std::move(inputs), node.attrs(), std::move(outputs), node.name(),
                       node.scope());
}

bool IsPlain(const ir::Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).layout != ir::Layout::kPlain) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (node.output_type(i).layout != ir::Layout::kPlain) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> ReferenceEvaluator::Evaluate(
    const ir::Node& node, absl::Span<const Tensor> inputs) const {
  HT_RETURN_IF_ERROR(CheckInputs(node, inputs));
  if (node.op().name == "constant") return std::vector<Tensor>{node.attrs().Get<Tensor>("value")};
  ir::Graph scratch;
  const ir::Node& plain = IsPlain(node) ? node : *CopyPlain(node, scratch);
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel,
                      KernelRegistry::Global().Select(plain, Device::Kind::kReference));

  std::vector<Tensor> outputs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;
  for (const Tensor& input : inputs) input_data.push_back(input.raw());
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ir::ValueType& type = node.output_type(i);
    HT_ASSIGN_OR_RETURN(Tensor output, Tensor::Allocate(type.dtype, type.shape));
    output_data.push_back(output.raw());
    outputs.push_back(std::move(output));
  }
  HT_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> workspace,
                      Buffer::Allocate(kernel->workspace_bytes()));
  RunState state{run_count_, {}};
  kernel->Run({input_data.data(), output_data.data(), workspace->data(), &state});
  if (state.fault.raised) return FaultError(node, state.fault);
  return outputs;
}

absl::Status FaultError(const ir::Node& node, const Fault& fault) {
  const std::string expected =
      fault.bound > 0 ? Concat("expected 0..", fault.bound - 1) : "there is nothing to index";
  std::vector<int64_t> at;  // coordinates
  int64_t rest = fault.position;
  const absl::Span<const int64_t> dims = node.input_type(1).shape.dims();
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    at.insert(at.begin(), rest % *dim);
    rest /= *dim;
  }
  return OutOfRange(node.Label(), ": index ", fault.value, " at [", absl::StrJoin(at, ","),
                    "] out of range; ", expected);
}

}  // namespace halftone::kernels
