// softmax and the gradients of softmax and log_softmax. Not log_softmax itself: the library's
// logarithm gives 1.4e-6 for log 1, an error that a confident prediction's loss would show. Source:
// oneDNN 2.6 developer guide, "Softmax" and "LogSoftmax".
#include "halftone/kernels/cpu/onednn_util.h"

namespace halftone::kernels {
namespace onednn {
namespace {

int AxisOf(const ir::Node& node) {
  const int64_t axis = node.attrs().GetInt("axis");
  return static_cast<int>(axis < 0 ? axis + node.input_type(0).shape.rank() : axis);
}

template <typename Forward>
typename Forward::primitive_desc ForwardDesc(const ir::Node& node) {
  const typename Forward::desc desc(dnnl::prop_kind::forward_training, DescOf(node.input_type(0)),
                                    AxisOf(node));
  return typename Forward::primitive_desc(desc, UserScratchpad(), Engine(), true);
}

template <typename Forward>
absl::StatusOr<std::unique_ptr<Kernel>> CreateSoftmaxForward(const ir::Node& node) {
  const auto pd = ForwardDesc<Forward>(node);
  if (!pd) return Unimplemented("library has no softmax for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(
      AddPrimitive<Forward>(sequence, pd,
                            {{DNNL_ARG_SRC, sequence.Input(0, DescOf(node.input_type(0)))},
                             {DNNL_ARG_DST, sequence.Output(0, DescOf(node.output_type()))}}));
  return sequence.Build();
}

template <typename Forward, typename Backward>
absl::StatusOr<std::unique_ptr<Kernel>> CreateSoftmaxBackward(const ir::Node& node) {
  const auto hint = ForwardDesc<Forward>(node);
  if (!hint) return Unimplemented("library has no softmax for this operand");
  const dnnl::memory::desc y = DescOf(node.input_type(0)), dy = DescOf(node.input_type(1));
  const typename Backward::desc desc(dy, y, AxisOf(node));
  const typename Backward::primitive_desc pd(desc, UserScratchpad(), Engine(), hint, true);
  if (!pd) return Unimplemented("library has no softmax gradient for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<Backward>(
      sequence, pd,
      {{DNNL_ARG_DST, sequence.Input(0, y)},
       {DNNL_ARG_DIFF_DST, sequence.Input(1, dy)},
       {DNNL_ARG_DIFF_SRC, sequence.Output(0, DescOf(node.output_type()))}}));
  return sequence.Build();
}

absl::Status NeedsRank(const ir::Node& node) {
  if (node.input_type(0).shape.rank() == 0) return Unimplemented("rank 0");
  return absl::OkStatus();
}

}  // namespace
}  // namespace onednn

void Register_cpu_onednn_softmax(KernelRegistry& r) {
  using dnnl::logsoftmax_backward, dnnl::logsoftmax_forward, dnnl::softmax_backward,
      dnnl::softmax_forward;
  onednn::AddCandidate(r, "softmax", onednn::NeedsRank,
                       onednn::CreateSoftmaxForward<softmax_forward>);
  onednn::AddCandidate(r, "softmax_grad", onednn::NeedsRank,
                       onednn::CreateSoftmaxBackward<softmax_forward, softmax_backward>);
  onednn::AddCandidate(r, "log_softmax_grad", onednn::NeedsRank,
                       onednn::CreateSoftmaxBackward<logsoftmax_forward, logsoftmax_backward>);
}

}  // namespace halftone::kernels
