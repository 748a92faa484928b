// avg_pool2d and its gradient. Source: oneDNN developer guide, "Pooling".
#include "halftone/kernels/cpu/onednn/primitives.h"
#include "halftone/kernels/cpu/support/widened.h"

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

// What forward and gradient share.
struct Window {
  dnnl::algorithm algorithm;
  memory::dims stride, kernel, dilation = {0, 0}, padding;

  explicit Window(const ir::Node& node) : algorithm(AlgorithmOf(node)) {
    const auto& s = node.attrs().GetInts("stride");
    const auto& k = node.attrs().GetInts("kernel");
    const auto& p = node.attrs().GetInts("padding");
    stride = {s[0], s[1]};
    kernel = {k[0], k[1]};
    padding = {p[0], p[1]};
  }

  PoolingForward::primitive_desc Forward(const memory::desc& x, const memory::desc& y) const {
    return Describe<PoolingForward>(Engine(), UserScratchpad(), dnnl::prop_kind::forward_training,
                                    algorithm, x, y, stride, kernel, dilation, padding, padding);
  }
  PoolingBackward::primitive_desc Gradient(const PoolingForward::primitive_desc& forward,
                                           const memory::desc& dx, const memory::desc& dy) const {
    return DescribeBackward<PoolingBackward>(Engine(), UserScratchpad(), forward, algorithm, dx, dy,
                                             stride, kernel, dilation, padding, padding);
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreatePoolForward(const ir::Node& node) {
  const memory::desc x = DescOf(node.input_type(0)), y = DescOf(node.output_type());
  const auto pd = Window(node).Forward(x, y);
  if (!pd) return Unimplemented("library has no pooling for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<PoolingForward>(
      sequence, pd, {{DNNL_ARG_SRC, sequence.Input(0, x)}, {DNNL_ARG_DST, sequence.Output(0, y)}}));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePoolBackward(const ir::Node& node) {
  const memory::desc dy = DescOf(node.input_type(0)), dx = DescOf(node.output_type());
  const Window window(node);
  const auto hint = window.Forward(dx, dy);
  if (!hint) return Unimplemented("library has no pooling for this operand");
  const auto pd = window.Gradient(hint, dx, dy);
  if (!pd) return Unimplemented("library has no pooling gradient for this operand");
  SequenceBuilder sequence;
  HT_RETURN_IF_ERROR(AddPrimitive<PoolingBackward>(
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
