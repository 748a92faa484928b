// f8_quantise, f8_matmul, f8_scale_update: products of matrices whose operands are scaled to 8 bits,
// and the scales.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::InferContext;

constexpr ir::DTypeSet kF8s{DType::kF8E4M3, DType::kF8E5M2};
constexpr ir::DTypeSet kWide{DType::kF32, DType::kF16, DType::kBF16};

absl::Status CheckTo(const InferContext& ctx, ir::DTypeSet dtypes) {
  const DType to = ctx.attrs.GetDType("to");
  if (dtypes.Contains(to)) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": to is ", Name(to), "; expected one of ", dtypes.ToString());
}

absl::Status CheckNumber(const InferContext& ctx, int port, const char* name) {
  return CheckType(ctx, port, name, DType::kF32, Shape{}, "one number");
}

Types InferQuantise(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckTo(ctx, kF8s));
  HT_RETURN_IF_ERROR(CheckNumber(ctx, 1, "scale"));
  return std::vector<ir::ValueType>{{ctx.attrs.GetDType("to"), ctx.inputs[0].shape},
                                    {DType::kF32, Shape{}},
                                    {DType::kF32, Shape{}}};
}

Types InferF8Matmul(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckTo(ctx, kWide));
  HT_RETURN_IF_ERROR(CheckNumber(ctx, 2, "a_inverse"));
  HT_RETURN_IF_ERROR(CheckNumber(ctx, 3, "b_inverse"));
  const bool ta = ctx.attrs.GetBool("transpose_a"), tb = ctx.attrs.GetBool("transpose_b");
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "a", 2, ta ? 2 : kMaxRank));
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "b", 2, 2));
  const Shape &a = ctx.inputs[0].shape, &b = ctx.inputs[1].shape;
  const int64_t a_inner = a.dim(ta ? 0 : a.rank() - 1), b_inner = b.dim(tb ? 1 : 0);
  const int64_t columns = b.dim(tb ? 0 : 1);
  if (a_inner != b_inner) {
    return InvalidArgument(ctx.op, ": inner sizes differ: ", ctx.inputs[0].ToString(),
                           ta ? " transposed" : "", " x ", ctx.inputs[1].ToString(),
                           tb ? " transposed" : "", "; expected an inner size of ", a_inner);
  }
  if (ctx.inputs.size() > 4) {
    const ir::ValueType& bias = ctx.inputs[4];
    if (bias.shape != Shape{columns}) {
      return InvalidArgument(ctx.op, ": bias is ", bias.ToString(), "; expected [", columns, "]");
    }
  }
  Ints dims(a.dims().begin(), a.dims().end());
  if (ta) dims[0] = a.dim(1);
  dims.back() = columns;
  HT_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  return OneType(ctx.attrs.GetDType("to"), std::move(shape));
}

Types InferScaleUpdate(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckTo(ctx, kF8s));
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "history", 1, 1));
  HT_RETURN_IF_ERROR(CheckNumber(ctx, 1, "scale"));
  HT_RETURN_IF_ERROR(CheckNumber(ctx, 2, "amax"));
  if (ctx.inputs[0].shape.dim(0) < 1) {
    return InvalidArgument(ctx.op, ": history is ", ctx.inputs[0].ToString(),
                           "; expected at least one element");
  }
  const int64_t margin = ctx.attrs.GetInt("margin");
  if (margin < 0 || margin > 15) {
    return InvalidArgument(ctx.op, ": margin is ", margin, "; expected 0..15");
  }
  return std::vector<ir::ValueType>{ctx.inputs[0], ctx.inputs[1]};
}

void RegisterQuantise(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "f8_quantise";
  r.doc =
      "y = x scale in dtype `to`, rounded once to nearest even; what is finite saturates at the "
      "largest number of `to`, what is not stays so (an inf in f8e4m3 as NaN). "
      "inverse = 1 / scale, which y is multiplied with to be x again. "
      "amax = max |x|, NaN if x has one, 0 of an empty x. "
      "Shapes: scale, inverse and amax [], y that of x.";
  r.source =
      "Micikevicius et al.: \"FP8 formats for deep learning\", https://arxiv.org/abs/2209.05433; "
      "OCP 8-bit Floating Point Specification (OFP8) 1.0";
  r.inputs = {{"x", kWide, ""}, {"scale", {DType::kF32}, "[] above 0"}};
  r.outputs = {{"y", ""}, {"inverse", "[] f32"}, {"amax", "[] f32"}};
  r.attrs = {Required("to", ir::AttrType::kDType, "f8e4m3 or f8e5m2")};
  r.no_gradient = kMadeLate;
  r.infer = InferQuantise;
  r.amp = Untouched("quantise-matmuls makes it, once precision is decided", {0, 1});
  r.cost = FlopsPerInput(3);
  AddOp(registry, std::move(r));
}

void RegisterF8Matmul(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "f8_matmul";
  r.doc =
      "y = A B a_inverse b_inverse + bias, A = a or its transpose, B = b or its transpose. "
      "Shapes: A [..., m, k], B [k, n], bias [n], y [..., m, n] in dtype `to`; "
      "a_inverse and b_inverse []. Products are summed in f32 and rounded once.";
  r.source = "https://docs.nvidia.com/cuda/cublas/#cublasltmatmul (FP8 operands, scales a tensor)";
  r.inputs = {{"a", kF8s, "[..., m, k]; [k, m] if transpose_a"},
              {"b", kF8s, "[k, n]; [n, k] if transpose_b"},
              {"a_inverse", {DType::kF32}, "what a is multiplied with"},
              {"b_inverse", {DType::kF32}, "what b is multiplied with"},
              {"bias", kWide, "[n]", /*optional=*/true}};
  r.outputs = {{"y", "[..., m, n]"}};
  r.attrs = {Required("to", ir::AttrType::kDType, "dtype of y: f32, f16 or bf16"),
             Optional("transpose_a", false, "swap the axes of a"),
             Optional("transpose_b", false, "swap the axes of b")};
  r.no_gradient = kMadeLate;
  r.infer = InferF8Matmul;
  r.amp = Untouched("quantise-matmuls makes it, once precision is decided", {0, 1, 2, 3, 4});
  r.amp.accumulates_in_f32 = true;
  r.fusion = ir::FusionClass::kContraction;
  r.cost = [](const ir::Node& node) {
    const Shape& b = node.input_type(1).shape;
    const auto inner = static_cast<double>(b.dim(node.attrs().GetBool("transpose_b") ? 1 : 0));
    return ir::Cost{2 * inner * static_cast<double>(node.output_type().num_elements()),
                    IoBytes(node)};
  };
  AddOp(registry, std::move(r));
}

void RegisterScaleUpdate(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "f8_scale_update";
  r.no_gradient = kIsUpdate;
  r.doc =
      "The scale of a tensor that is quantised once a step (delayed scaling). new_history is "
      "history moved on by one, with amax first, or 0 where amax is not finite; with m its largest "
      "number new_scale is the largest power of two up to max(to) / (m 2^margin), between 2^-60 "
      "and 2^60, or scale if m is 0. Shapes: history [h], the others [].";
  r.source =
      "Transformer Engine: DelayedScaling, amax_compute_algo=\"max\", with scales rounded to powers "
      "of two, which scale without rounding";
  r.inputs = {{"history", {DType::kF32}, "[h] the newest first"},
              {"scale", {DType::kF32}, ""},
              {"amax", {DType::kF32}, "max |x| of this step"}};
  r.outputs = {{"new_history", ""}, {"new_scale", ""}};
  r.attrs = {Required("to", ir::AttrType::kDType, "f8e4m3 or f8e5m2"),
             Optional("margin", int64_t{0}, "binary orders left free above m, 0..15")};
  r.infer = InferScaleUpdate;
  r.amp = Deny("scales leave 16-bit range");
  r.in_place = {{0, 0}, {1, 1}};
  AddOp(registry, std::move(r));
}

}  // namespace

void Register_f8(ir::OpRegistry& registry) {
  RegisterQuantise(registry);
  RegisterF8Matmul(registry);
  RegisterScaleUpdate(registry);
}

}  // namespace halftone::ops
