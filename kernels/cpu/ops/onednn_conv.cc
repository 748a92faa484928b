// conv2d and its gradients through dnnl::convolution. Activations lie as the graph says
// (channels-last is the fast order); weights are stored plain and reordered into the order the
// primitive likes, which costs little beside the convolution and keeps one master copy. Source:
// oneDNN developer guide, "Convolution".
#include "halftone/kernels/cpu/onednn/primitives.h"
#include "halftone/kernels/cpu/support/widened.h"

namespace halftone::kernels {
namespace onednn {
namespace {

using dnnl::memory;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// What the four primitives of one convolution share.
struct Problem {
  memory::dims stride, dilation, padding;
  int64_t groups;
  memory::desc x, y;  // as they lie
  memory::desc w;     // plain
  memory::desc w_any;

  Problem(const ir::Attributes& attrs, const ir::ValueType& x_type, const ir::ValueType& w_type,
          const ir::ValueType& y_type)
      : groups(attrs.GetInt("groups")), x(DescOf(x_type)), y(DescOf(y_type)) {
    const auto& s = attrs.GetInts("stride");
    const auto& p = attrs.GetInts("padding");
    const auto& d = attrs.GetInts("dilation");
    stride = {s[0], s[1]};
    padding = {p[0], p[1]};
    dilation = {d[0] - 1, d[1] - 1};  // the library counts the gaps
    memory::dims dims = DimsOf(w_type.shape);
    if (groups > 1) {
      dims[0] /= groups;
      dims.insert(dims.begin(), groups);
    }
    w = PlainDesc(w_type.dtype, dims);
    w_any = AnyDesc(w_type.dtype, dims);
  }

  dnnl::convolution_forward::primitive_desc Forward() const {
    return Describe<dnnl::convolution_forward>(Engine(), UserScratchpad(),
                                               dnnl::prop_kind::forward_training, kDirect, x, w_any,
                                               y, stride, dilation, padding, padding);
  }
  dnnl::convolution_forward::primitive_desc Forward(const memory::desc& bias) const {
    return Describe<dnnl::convolution_forward>(Engine(), UserScratchpad(),
                                               dnnl::prop_kind::forward_training, kDirect, x, w_any,
                                               bias, y, stride, dilation, padding, padding);
  }
  // Of a gradient: the descriptors in the order that it takes them.
  template <typename Backward>
  typename Backward::primitive_desc Gradient(
      const dnnl::convolution_forward::primitive_desc& forward) const {
    return DescribeBackward<Backward>(Engine(), UserScratchpad(), forward, kDirect, x, w_any, y,
                                      stride, dilation, padding, padding);
  }
};

// The type a gradient op does not carry as an operand: shape from the attribute, dtype and layout
// given.
ir::ValueType Typed(const ir::Node& node, DType dtype, ir::Layout layout) {
  return {dtype, Shape(node.attrs().GetInts("shape")), layout};
}

absl::Status Missing() { return Unimplemented("library has no convolution for these operands"); }

absl::StatusOr<std::unique_ptr<Kernel>> CreateConvForward(const ir::Node& node) {
  const Problem p(node.attrs(), node.input_type(0), node.input_type(1), node.output_type());
  SequenceBuilder sequence;
  dnnl::convolution_forward::primitive_desc pd;
  const int x = sequence.Input(0, p.x), w = sequence.Input(1, p.w), y = sequence.Output(0, p.y);
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
  if (node.num_inputs() == 3) {
    const memory::desc bias = DescOf(node.input_type(2));
    pd = p.Forward(bias);
    args.push_back({DNNL_ARG_BIAS, sequence.Input(2, bias)});
  } else {
    pd = p.Forward();
  }
  if (!pd) return Missing();
  args.push_back({DNNL_ARG_WEIGHTS, sequence.ReadAs(w, pd.weights_desc())});
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::convolution_forward>(sequence, pd, args));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGradInput(const ir::Node& node) {
  const ir::ValueType& dy = node.input_type(0);
  const Problem p(node.attrs(), node.output_type(), node.input_type(1), dy);
  const auto hint = p.Forward();
  if (!hint) return Missing();
  const auto pd = p.Gradient<dnnl::convolution_backward_data>(hint);
  if (!pd) return Missing();
  SequenceBuilder sequence;
  const int w = sequence.Input(1, p.w);
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::convolution_backward_data>(
      sequence, pd,
      {{DNNL_ARG_DIFF_DST, sequence.Input(0, p.y)},
       {DNNL_ARG_WEIGHTS, sequence.ReadAs(w, pd.weights_desc())},
       {DNNL_ARG_DIFF_SRC, sequence.Output(0, p.x)}}));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGradWeight(const ir::Node& node) {
  const ir::ValueType& x = node.input_type(0);
  // The hint describes the forward convolution, whose weights have x's dtype even where their
  // gradient leaves in f32.
  const ir::ValueType w_forward = Typed(node, x.dtype, ir::Layout::kPlain);
  const Problem forward(node.attrs(), x, w_forward, node.input_type(1));
  const Problem p(node.attrs(), x, node.output_type(), node.input_type(1));
  const auto hint = forward.Forward();
  if (!hint) return Missing();
  const auto pd = p.Gradient<dnnl::convolution_backward_weights>(hint);
  if (!pd) return Missing();
  SequenceBuilder sequence;
  const int dw = sequence.Output(0, p.w);
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::convolution_backward_weights>(
      sequence, pd,
      {{DNNL_ARG_SRC, sequence.Input(0, p.x)},
       {DNNL_ARG_DIFF_DST, sequence.Input(1, p.y)},
       {DNNL_ARG_DIFF_WEIGHTS, sequence.WriteAs(dw, pd.diff_weights_desc())}}));
  return sequence.Build();
}

}  // namespace
}  // namespace onednn

void Register_cpu_onednn_conv(KernelRegistry& r) {
  onednn::AddCandidate(r, "conv2d", nullptr, onednn::CreateConvForward);
  onednn::AddCandidate(r, "conv2d_grad_input", nullptr, onednn::CreateGradInput);
  onednn::AddCandidate(r, "conv2d_grad_weight", nullptr, onednn::CreateGradWeight);
  for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) AddWidened(r, op);
}

}  // namespace halftone::kernels
