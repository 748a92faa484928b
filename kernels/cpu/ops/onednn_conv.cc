// conv2d, conv3d and their gradients through dnnl::convolution. Activations of rank 4 lie as the
// graph says, but that an image whose channels fill no blocks is reordered beside one in blocks. Those
// of rank 5 are stored plain, as all weights are, and reordered into the order the primitive likes,
// which costs little beside the convolution and keeps one master copy; where it does not cost little
// the graph says `packed`. Source: oneDNN developer guide, "Convolution".
#include <algorithm>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cpu/onednn/primitives.h"
#include "halftone/kernels/cpu/support/widened.h"

namespace halftone::kernels {
namespace onednn {
namespace {

using dnnl::memory;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// The order of activations that a primitive is asked for.
enum class Order : uint8_t { kAsTheyLie, kItsOwn };

bool InBlocks(const ir::ValueType& type) { return type.layout == ir::Layout::kChannelBlocks; }

// The graph has no other layout than the plain one for rank 5, which would cost more than a
// reorder; and no blocks for an image whose channels do not fill them, beside `other` that lies in
// blocks.
memory::desc AskedDesc(const ir::ValueType& type, const ir::ValueType& other, Order order) {
  const bool as_it_lies =
      order == Order::kAsTheyLie && type.shape.rank() != 5 && (InBlocks(type) || !InBlocks(other));
  return as_it_lies ? DescOf(type) : AnyDesc(type.dtype, DimsOf(type.shape));
}

// What the four primitives of one convolution share.
struct Problem {
  memory::dims stride, dilation, padding;
  int64_t groups;
  memory::desc x, w, y;                    // as they lie
  memory::desc x_asked, w_asked, y_asked;  // as the primitive is asked to take them

  Problem(const ir::Attributes& attrs, const ir::ValueType& x_type, const ir::ValueType& w_type,
          const ir::ValueType& y_type, Order order)
      : stride(attrs.GetInts("stride")),
        dilation(attrs.GetInts("dilation")),
        padding(attrs.GetInts("padding")),
        groups(attrs.GetInt("groups")),
        x(DescOf(x_type)),
        y(DescOf(y_type)),
        x_asked(AskedDesc(x_type, y_type, order)),
        y_asked(AskedDesc(y_type, x_type, order)) {
    for (int64_t& gap : dilation) --gap;  // the library counts the gaps
    memory::dims dims = DimsOf(w_type.shape);
    if (groups > 1) {
      dims[0] /= groups;
      dims.insert(dims.begin(), groups);
    }
    w = PlainDesc(w_type.dtype, dims);
    w_asked = AnyDesc(w_type.dtype, dims);
  }

  dnnl::convolution_forward::primitive_desc Forward() const {
    return Describe<dnnl::convolution_forward>(
        Engine(), UserScratchpad(), dnnl::prop_kind::forward_training, kDirect, x_asked, w_asked,
        y_asked, stride, dilation, padding, padding);
  }
  dnnl::convolution_forward::primitive_desc Forward(const memory::desc& bias) const {
    return Describe<dnnl::convolution_forward>(
        Engine(), UserScratchpad(), dnnl::prop_kind::forward_training, kDirect, x_asked, w_asked,
        bias, y_asked, stride, dilation, padding, padding);
  }
  // Of a gradient: the descriptors in the order that it takes them.
  template <typename Backward>
  typename Backward::primitive_desc Gradient(
      const dnnl::convolution_forward::primitive_desc& forward) const {
    return DescribeBackward<Backward>(Engine(), UserScratchpad(), forward, kDirect, x_asked,
                                      w_asked, y_asked, stride, dilation, padding, padding);
  }
};

// The type a gradient op does not carry as an operand: shape from the attribute, dtype and layout
// given.
ir::ValueType Typed(const ir::Node& node, DType dtype, ir::Layout layout) {
  return {dtype, Shape(node.attrs().GetInts("shape")), layout};
}

// The weights of `node`, which lie in slot `w`, as the primitive takes them.
int ReadWeights(SequenceBuilder& sequence, const ir::Node& node, int w, const memory::desc& desc) {
  return ops::IsPacked(node) ? sequence.ReadPacked(w, desc) : sequence.ReadAs(w, desc);
}

absl::Status Missing() { return Unimplemented("library has no convolution for these operands"); }

// In bf16 and with a stride the library lets a column that meets padding alone, which adds nothing, see
// what lay in its scratchpad: 2.6.3 in the gradient of the weights, 3.7 (with AMX) forward.
absl::Status CheckColumnsMeetInput(const ir::Node& node) {
  const ops::WindowAxis w = ops::ConvGeometryOf(node).w;
  if (node.input_type(0).dtype != DType::kBF16 || w.stride == 1) return absl::OkStatus();
  for (int64_t k = 0; k < w.kernel; ++k) {
    const int64_t before = std::max<int64_t>(0, -w.Position(0, k));
    const int64_t first = (before + w.stride - 1) / w.stride;  // output behind the left padding
    if (first < w.output && w.Position(first, k) < w.input) continue;
    return Unimplemented("a column of the window meets padding alone");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConvForward(const ir::Node& node, Order order) {
  const Problem p(node.attrs(), node.input_type(0), node.input_type(1), node.output_type(), order);
  SequenceBuilder sequence;
  dnnl::convolution_forward::primitive_desc pd;
  const int x = sequence.Input(0, p.x), w = sequence.Input(1, p.w), y = sequence.Output(0, p.y);
  std::vector<std::pair<int, int>> args;
  if (node.num_inputs() == 3) {
    const memory::desc bias = DescOf(node.input_type(2));
    pd = p.Forward(bias);
    args.push_back({DNNL_ARG_BIAS, sequence.Input(2, bias)});
  } else {
    pd = p.Forward();
  }
  if (!pd) return Missing();
  args.push_back({DNNL_ARG_SRC, sequence.ReadAs(x, pd.src_desc())});
  args.push_back({DNNL_ARG_WEIGHTS, ReadWeights(sequence, node, w, pd.weights_desc())});
  args.push_back({DNNL_ARG_DST, sequence.WriteAs(y, pd.dst_desc())});
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::convolution_forward>(sequence, pd, args));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGradInput(const ir::Node& node, Order order) {
  const ir::ValueType& dy = node.input_type(0);
  const Problem p(node.attrs(), node.output_type(), node.input_type(1), dy, order);
  const auto hint = p.Forward();
  if (!hint) return Missing();
  const auto pd = p.Gradient<dnnl::convolution_backward_data>(hint);
  if (!pd) return Missing();
  SequenceBuilder sequence;
  const int dy_slot = sequence.Input(0, p.y), w = sequence.Input(1, p.w);
  const int dx = sequence.Output(0, p.x);
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::convolution_backward_data>(
      sequence, pd,
      {{DNNL_ARG_DIFF_DST, sequence.ReadAs(dy_slot, pd.diff_dst_desc())},
       {DNNL_ARG_WEIGHTS, ReadWeights(sequence, node, w, pd.weights_desc())},
       {DNNL_ARG_DIFF_SRC, sequence.WriteAs(dx, pd.diff_src_desc())}}));
  return sequence.Build();
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGradWeight(const ir::Node& node, Order order) {
  const ir::ValueType& x = node.input_type(0);
  // The hint describes the forward convolution, whose weights have x's dtype even where their
  // gradient leaves in f32.
  const ir::ValueType w_forward = Typed(node, x.dtype, ir::Layout::kPlain);
  const Problem forward(node.attrs(), x, w_forward, node.input_type(1), order);
  const Problem p(node.attrs(), x, node.output_type(), node.input_type(1), order);
  const auto hint = forward.Forward();
  if (!hint) return Missing();
  const auto pd = p.Gradient<dnnl::convolution_backward_weights>(hint);
  if (!pd) return Missing();
  SequenceBuilder sequence;
  const int x_slot = sequence.Input(0, p.x), dy = sequence.Input(1, p.y);
  const int dw = sequence.Output(0, p.w);
  HT_RETURN_IF_ERROR(AddPrimitive<dnnl::convolution_backward_weights>(
      sequence, pd,
      {{DNNL_ARG_SRC, sequence.ReadAs(x_slot, pd.src_desc())},
       {DNNL_ARG_DIFF_DST, sequence.ReadAs(dy, pd.diff_dst_desc())},
       {DNNL_ARG_DIFF_WEIGHTS, sequence.WriteAs(dw, pd.diff_weights_desc())}}));
  return sequence.Build();
}

// Not every convolution has an implementation for blocks of channels (only processors with AVX-512 do); where
// there is none for operands as they lie, between reorders.
template <typename Create>
auto WithReorders(Create create) {
  return [create](const ir::Node& node) {
    auto kernel = create(node, Order::kAsTheyLie);
    const bool refused = !kernel.ok() && absl::IsUnimplemented(kernel.status());
    return refused ? create(node, Order::kItsOwn) : std::move(kernel);
  };
}

}  // namespace
}  // namespace onednn

void Register_cpu_onednn_conv(KernelRegistry& r) {
  const auto add = [&r](const std::string& op, auto supports, auto create) {
    onednn::AddCandidate(r, op, supports, onednn::WithReorders(create));
    AddWidened(r, op);
  };
  for (const int dims : ops::kConvDims) {
    add(ops::ConvOp(dims), onednn::CheckColumnsMeetInput, onednn::CreateConvForward);
    add(ops::ConvOp(dims, "_grad_input"), nullptr, onednn::CreateGradInput);
    add(ops::ConvOp(dims, "_grad_weight"), onednn::CheckColumnsMeetInput, onednn::CreateGradWeight);
  }
}

}  // namespace halftone::kernels
