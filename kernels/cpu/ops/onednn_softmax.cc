// softmax and the gradients of softmax and log_softmax. Not log_softmax itself: the library's
// logarithm gives 1.4e-6 for log 1, an error that a confident prediction's loss would show. Source:
// oneDNN developer guide, "Softmax".
#include "halftone/kernels/cpu/onednn/primitives.h"

namespace halftone::kernels {
namespace onednn {
namespace {

int AxisOf(const ir::Node& node) {
  const int64_t axis = node.attrs().GetInt("axis");
  return static_cast<int>(axis < 0 ? axis + node.input_type(0).shape.rank() : axis);
}

SoftmaxForward::primitive_desc ForwardDesc(const ir::Node& node, dnnl::algorithm algorithm) {
  const dnnl::memory::desc x = DescOf(node.input_type(0));
  return Describe<SoftmaxForward>(Engine(), UserScratchpad(), dnnl::prop_kind::forward_training,
                                  algorithm, x, x, AxisOf(node));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSoftmax(const ir::Node& node) {
  const auto pd = ForwardDesc(node, dnnl::algorithm::softmax_accurate);
  if (!pd) return Unimplemented("library has no softmax for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<SoftmaxForward>(
      sequence, pd,
      {{DNNL_ARG_SRC, sequence.Input(0, DescOf(node.input_type(0)))},
       {DNNL_ARG_DST, sequence.Output(0, DescOf(node.output_type()))}}));
  return sequence.Build();
}

template <dnnl::algorithm kAlgorithm>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGradient(const ir::Node& node) {
  const auto hint = ForwardDesc(node, kAlgorithm);
  if (!hint) return Unimplemented("library has no softmax for this operand");
  const dnnl::memory::desc y = DescOf(node.input_type(0)), dy = DescOf(node.input_type(1));
  const auto pd = DescribeBackward<SoftmaxBackward>(Engine(), UserScratchpad(), hint, kAlgorithm,
                                                    dy, dy, y, AxisOf(node));
  if (!pd) return Unimplemented("library has no softmax gradient for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<SoftmaxBackward>(
      sequence, pd,
      {{DNNL_ARG_DST, sequence.Input(0, y)},
       {DNNL_ARG_DIFF_DST, sequence.Input(1, dy)},
       {DNNL_ARG_DIFF_SRC, sequence.Output(0, DescOf(node.output_type()))}}));
  return sequence.Build();
}

// Along another axis than the innermost the library takes 2 times as long (softmax over axis 1 of
// f32[1,3072,1024]); our own kernel does not.
absl::Status NeedsContiguousLines(const ir::Node& node) {
  const ir::ValueType& x = node.input_type(0);
  if (x.shape.rank() == 0) return Unimplemented("rank 0");
  if (x.layout == ir::Layout::kPlain && ir::StridesOf(x)[AxisOf(node)] != 1)
    return Unimplemented("lines are not contiguous");
  return absl::OkStatus();
}

}  // namespace
}  // namespace onednn

void Register_cpu_onednn_softmax(KernelRegistry& r) {
  using dnnl::algorithm;
  onednn::AddCandidate(r, "softmax", onednn::NeedsContiguousLines, onednn::CreateSoftmax);
  onednn::AddCandidate(r, "softmax_grad", onednn::NeedsContiguousLines,
                       onednn::CreateGradient<algorithm::softmax_accurate>);
  onednn::AddCandidate(r, "log_softmax_grad", onednn::NeedsContiguousLines,
                       onednn::CreateGradient<algorithm::softmax_log>);
}

}  // namespace halftone::kernels
