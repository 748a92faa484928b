#include "halftone/tests/support/run_kernel.h"

#include <cstring>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/reference_evaluator.h"

namespace halftone::testing {
namespace {

constexpr size_t kGuardBytes = 64;  // keeps the alignment of buffers

// An output between guards, filled with one byte throughout.
class GuardedOutput {
 public:
  GuardedOutput(const ir::ValueType& type, unsigned char fill)
      : type_(type),
        fill_(fill),
        bytes_(Tensor::Empty(DType::kU8, Shape{type.num_bytes() + 2 * int64_t{kGuardBytes}})) {
    std::memset(bytes_.raw(), fill, bytes_.num_bytes());
  }
  void* data() const { return bytes_.data<uint8_t>() + kGuardBytes; }
  bool GuardsHold() const {
    const uint8_t* all = bytes_.data<uint8_t>();
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (all[i] != fill_ || all[bytes_.num_bytes() - 1 - i] != fill_) return false;
    }
    return true;
  }
  Tensor Value() const {
    Tensor t = Tensor::Empty(type_.dtype, type_.shape);
    std::memcpy(t.raw(), data(), t.num_bytes());
    return t;
  }

 private:
  ir::ValueType type_;
  uint8_t fill_;
  Tensor bytes_;
};

ir::ValueType Plain(ir::ValueType type) {
  type.layout = ir::Layout::kPlain;
  return type;
}

absl::StatusOr<std::vector<Tensor>> RunOnce(kernels::Kernel& kernel, const ir::Node& node,
                                            absl::Span<const Tensor> inputs, unsigned char fill) {
  std::vector<Tensor> laid, before;
  std::vector<const void*> input_data;
  for (int i = 0; i < node.num_inputs(); ++i) {
    laid.push_back(Relaid(inputs[i], Plain(node.input_type(i)), node.input_type(i)));
    before.push_back(laid.back().Clone());
    input_data.push_back(laid.back().raw());
  }
  std::vector<GuardedOutput> outputs;
  std::vector<void*> output_data;
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.emplace_back(node.output_type(i), fill);
    output_data.push_back(outputs.back().data());
  }
  HT_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> workspace,
                      Buffer::Allocate(kernel.workspace_bytes()));
  if (kernel.workspace_bytes() > 0) std::memset(workspace->data(), fill, workspace->size());
  kernels::RunState state{kTestRunCount, {}};
  kernels::KernelArgs args{input_data.data(), output_data.data(),
                           kernel.workspace_bytes() > 0 ? workspace->data() : nullptr, &state};
  std::shared_ptr<Buffer> packed;
  if (kernel.packing().bytes > 0) {
    HT_ASSIGN_OR_RETURN(packed, Buffer::Allocate(kernel.packing().bytes));
    std::memset(packed->data(), fill, packed->size());
    kernel.Pack(args, packed->data());
    args.packed = packed->data();
    input_data[1] = nullptr;  // what is packed is not read
  }
  kernel.Run(args);
  if (state.fault.raised) return kernels::FaultError(node, state.fault);

  std::vector<Tensor> results;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!BitEqual(laid[i], before[i])) {
      return Internal(kernel.name(), " changes input ", i, " of ", node.Label());
    }
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!outputs[i].GuardsHold()) {
      return Internal(kernel.name(), " writes beside output ", i, " of ", node.Label());
    }
    results.push_back(Relaid(outputs[i].Value(), node.output_type(i), Plain(node.output_type(i))));
  }
  return results;
}

// Elementwise the same bits, or NaN in both (a NaN's payload may depend on operand order).
bool SameValues(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x != y && (x == x || y == y)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> RunKernel(kernels::Kernel& kernel, const ir::Node& node,
                                              absl::Span<const Tensor> inputs) {
  HT_ASSIGN_OR_RETURN(std::vector<Tensor> first, RunOnce(kernel, node, inputs, 0xA5));
  HT_ASSIGN_OR_RETURN(const std::vector<Tensor> second, RunOnce(kernel, node, inputs, 0x3C));
  for (size_t i = 0; i < first.size(); ++i) {
    if (!SameValues(first[i], second[i])) {
      return Internal(kernel.name(), " leaves elements of output ", i, " of ", node.Label(),
                      " unwritten, or reads what it did not write");
    }
  }
  return first;
}

absl::StatusOr<std::vector<Tensor>> RunReference(const ir::Node& node,
                                                 absl::Span<const Tensor> inputs) {
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<kernels::Kernel> kernel,
                      kernels::KernelRegistry::Global().Select(node, Device::Kind::kReference));
  return RunKernel(*kernel, node, inputs);
}

absl::StatusOr<std::vector<Tensor>> TryOp(const std::string& op, const std::vector<Tensor>& inputs,
                                          ir::Attributes attrs) {
  ir::Graph graph;
  ir::Builder builder(&graph);
  std::vector<ir::Expr> exprs;
  for (const Tensor& t : inputs) {
    exprs.push_back(builder.Input(Concat("x", exprs.size()), {t.dtype(), t.shape()}));
  }
  builder.Make(op, exprs, std::move(attrs));
  HT_RETURN_IF_ERROR(builder.status());
  return RunReference(*graph.nodes().back(), inputs);
}

std::vector<Tensor> RunOp(const std::string& op, const std::vector<Tensor>& inputs,
                          ir::Attributes attrs) {
  auto outputs = TryOp(op, inputs, std::move(attrs));
  if (!outputs.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, "op runs", Message(outputs.status()).c_str());
  }
  return *std::move(outputs);
}

Tensor Relaid(const Tensor& t, const ir::ValueType& from, const ir::ValueType& to) {
  if (from.layout == to.layout) return t;
  const bool blocks =
      from.layout == ir::Layout::kChannelBlocks || to.layout == ir::Layout::kChannelBlocks;
  const auto axes_of = [&](const ir::ValueType& type) {
    return blocks ? ir::BlockAxesOf(type) : ir::StridedAxesOf(type);
  };
  const ir::StridedAxes source = axes_of(from), target = axes_of(to);
  Tensor result = Tensor::Empty(t.dtype(), t.shape());
  const size_t size = SizeOf(t.dtype());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    int64_t rest = i, at = 0, put = 0;
    for (size_t axis = source.extents.size(); axis-- > 0;) {
      const int64_t index = rest % source.extents[axis];
      rest /= source.extents[axis];
      at += index * source.strides[axis];
      put += index * target.strides[axis];
    }
    std::memcpy(static_cast<char*>(result.raw()) + put * static_cast<int64_t>(size),
                static_cast<const char*>(t.raw()) + at * static_cast<int64_t>(size), size);
  }
  return result;
}

absl::StatusOr<GraphValues> GraphValues::Evaluate(const ir::Graph& graph,
                                                  absl::Span<const Tensor> inputs) {
  GraphValues result;
  const kernels::ReferenceEvaluator evaluator(kTestRunCount);
  size_t next_input = 0;
  for (const auto& node : graph.nodes()) {
    if (node->op().name == "input") {
      result.values_[{node.get(), 0}] = inputs[next_input++];
      continue;
    }
    std::vector<Tensor> operands;
    for (const ir::Value& v : node->inputs()) operands.push_back(result.at(v));
    HT_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, evaluator.Evaluate(*node, operands));
    for (int i = 0; i < node->num_outputs(); ++i) result.values_[{node.get(), i}] = outputs[i];
  }
  return result;
}

const Tensor& GraphValues::at(ir::Value v) const {
  const auto found = values_.find({v.node, v.index});
  HT_CHECK(found != values_.end(), "no such value in the graph");
  return found->second;
}

}  // namespace halftone::testing
