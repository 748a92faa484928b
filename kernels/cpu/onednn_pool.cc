// avg_pool2d and its gradient. Source: oneDNN 2.6 developer guide, "Pooling".
#include "halftone/kernels/cpu/onednn_util.h"
#include "halftone/kernels/cpu/widened.h"

namespace halftone::kernels {
namespace onednn {
namespace {

using dnnl::memory;

dnnl::algorithm AlgorithmOf(const ir::Node& node) {
  return node.attrs().GetBool("count_include_pad") ? dnnl::algorithm::pooling_avg_include_padding
                                                   : dnnl::algorithm::pooling_avg_exclude_padding;
}

// With ceil_mode a window may hang over the padded edge; the library then divides by another count
// than PyTorch.
absl::Status CheckNoOverhang(const ir::Node& node, const Shape& x, const Shape& y) {
  const auto& kernel = node.attrs().GetInts("kernel");
  const auto& stride = node.attrs().GetInts("stride");
  const auto& padding = node.attrs().GetInts("padding");
  for (int i = 0; i < 2; ++i) {
    if ((y[2 + i] - 1) * stride[i] + kernel[i] > x[2 + i] + 2 * padding[i]) {
      return Unimplemented("a window hangs over the padded edge");
    }
  }
  return absl::OkStatus();
}

// Where windows overlap, the library adds their shares in bf16, rounding at every step.
absl::Status CheckSumsInF32(const ir::Node& node) {
  const auto& kernel = node.attrs().GetInts("kernel");
  const auto& stride = node.attrs().GetInts("stride");
  if (node.output_type().dtype == DType::kBF16 && (kernel[0] > stride[0] || kernel[1] > stride[1]))
    return Unimplemented("the library sums overlapping windows in bf16");
  return absl::OkStatus();
}

dnnl::pooling_forward::primitive_desc ForwardDesc(const ir::Node& node, const memory::desc& x,
                                                  const memory::desc& y) {
  const auto& kernel = node.attrs().GetInts("kernel");
  const auto& stride = node.attrs().GetInts("stride");
  const auto& padding = node.attrs().GetInts("padding");
  const memory::dims pad = {padding[0], padding[1]};
  const dnnl::pooling_forward::desc desc(dnnl::prop_kind::forward_training, AlgorithmOf(node), x, y,
                                         {stride[0], stride[1]}, {kernel[0], kernel[1]}, pad, pad);
  return dnnl::pooling_forward::primitive_desc(desc, UserScratchpad(), Engine(), true);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePoolForward(const ir::Node& node) {
  const memory::desc x = DescOf(node.input_type(0)), y = DescOf(node.output_type());
  const auto pd = ForwardDesc(node, x, y);
  if (!pd) return Unimplemented("library has no pooling for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::pooling_forward>(
      sequence, pd, {{DNNL_ARG_SRC, sequence.Input(0, x)}, {DNNL_ARG_DST, sequence.Output(0, y)}}));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePoolBackward(const ir::Node& node) {
  const memory::desc dy = DescOf(node.input_type(0)), dx = DescOf(node.output_type());
  const auto hint = ForwardDesc(node, dx, dy);
  if (!hint) return Unimplemented("library has no pooling for this operand");
  const auto& kernel = node.attrs().GetInts("kernel");
  const auto& stride = node.attrs().GetInts("stride");
  const auto& padding = node.attrs().GetInts("padding");
  const memory::dims pad = {padding[0], padding[1]};
  const dnnl::pooling_backward::desc desc(AlgorithmOf(node), dx, dy, {stride[0], stride[1]},
                                          {kernel[0], kernel[1]}, pad, pad);
  const dnnl::pooling_backward::primitive_desc pd(desc, UserScratchpad(), Engine(), hint, true);
  if (!pd) return Unimplemented("library has no pooling gradient for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::pooling_backward>(
      sequence, pd,
      {{DNNL_ARG_DIFF_DST, sequence.Input(0, dy)}, {DNNL_ARG_DIFF_SRC, sequence.Output(0, dx)}}));
  return sequence.Build();
}

}  // namespace
}  // namespace onednn

void Register_cpu_onednn_pool(KernelRegistry& r) {
  onednn::AddCandidate(
      r, "avg_pool2d",
      [](const ir::Node& node) {
        return onednn::CheckNoOverhang(node, node.input_type(0).shape, node.output_type().shape);
      },
      onednn::CreatePoolForward);
  onednn::AddCandidate(
      r, "avg_pool2d_grad",
      [](const ir::Node& node) {
        HT_RETURN_IF_ERROR(onednn::CheckSumsInF32(node));
        return onednn::CheckNoOverhang(node, node.output_type().shape, node.input_type(0).shape);
      },
      onednn::CreatePoolBackward);
  AddWidened(r, "avg_pool2d");
  AddWidened(r, "avg_pool2d_grad");
}

}  // namespace halftone::kernels
