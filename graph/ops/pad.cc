// pad: more elements before and behind, along any axes.

#include <algorithm>
#include <cmath>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/nn.h"
#include "halftone/graph/ops/support/padding.h"

namespace halftone::ops {
namespace {

using ir::Expr;

Types InferPad(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  const auto rank = static_cast<size_t>(x.shape.rank());
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "mode", {"constant", "reflect", "replicate"}));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "before", rank, 0));
  HT_RETURN_IF_ERROR(CheckInts(ctx, "after", rank, 0));
  const double value = ctx.attrs.GetFloat("value");
  HT_RETURN_IF_ERROR(CheckFloat(
      ctx, "value", IsFloat(x.dtype) || (value == std::floor(value) && std::abs(value) <= 0x1p53),
      "a whole number beside integers and bools"));
  const PadMode mode = PadModeOf(ctx.attrs.GetString("mode"));
  const Ints &before = ctx.attrs.GetInts("before"), &after = ctx.attrs.GetInts("after");
  Ints dims = ToInts(x.shape);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t most = std::max(before[i], after[i]);
    const int64_t reached = mode == PadMode::kReflect ? dims[i] - 1 : kMaxElements;
    const bool has_source = mode == PadMode::kConstant || dims[i] > 0 || most == 0;
    if ((most > 0 && most > reached) || !has_source) {
      return OpError(ctx, "axis ", i, " of ", x, " padded by ", before[i], " and ", after[i],
                     "; expected ",
                     mode == PadMode::kReflect ? "less than its extent, which is reflected"
                                               : "an extent above 0, which is replicated");
    }
    dims[i] += before[i] + after[i];
  }
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, dims));
  return OneType(x.dtype, std::move(shape));
}

// What was written outside is forgotten; what was read several times sums up, axis by axis.
void PadGradient(ir::GradContext& c) {
  const PadMode mode = PadModeOf(c.attrs().GetString("mode"));
  const Shape x = c.in(0).shape();
  const Ints &before = c.attrs().GetInts("before"), &after = c.attrs().GetInts("after");
  Expr dx = c.dy(0);
  if (mode == PadMode::kConstant) {
    Ints limits = before;
    for (int i = 0; i < x.rank(); ++i) limits[i] += x[i];
    c.set_dx(0, c.b.Op("slice", {dx},
                       {{"starts", before},
                        {"limits", limits},
                        {"strides", Ints(static_cast<size_t>(x.rank()), 1)}}));
    return;
  }
  const DType dtype = c.in(0).dtype();
  dx = Widened(dx);
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t padded = x[axis] + before[axis] + after[axis];
    if (padded == x[axis]) continue;
    Ints from(static_cast<size_t>(padded));
    for (int64_t i = 0; i < padded; ++i) from[i] = PaddedFrom(mode, i, before[axis], x[axis]);
    const Expr indices = c.b.Constant(Tensor::FromVector(Shape{padded}, from));
    dx = c.b.Op("gather_grad", {dx, indices}, {{"axis", int64_t{axis}}, {"dim", x[axis]}});
  }
  c.set_dx(0, CastTo(dx, dtype));
}

}  // namespace

void Register_pad(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "pad";
  op.doc =
      "y = x with before[i] elements more in front of axis i and after[i] behind: `value` "
      "(constant), x reflected about its first and last element (reflect), or those elements again "
      "(replicate). Gradient: slice of dy, or dy summed over what was read several times (16 bit in "
      "f32)";
  op.source = "https://pytorch.org/docs/stable/generated/torch.nn.functional.pad.html";
  op.inputs = {{"x", ir::kAnyDType, ""}};
  op.outputs = {{"y", "dtype of x"}};
  op.attrs = {Required("before", ir::AttrType::kInts, "in front of each axis, 0 or more"),
              Required("after", ir::AttrType::kInts, "behind each axis, 0 or more"),
              Optional("mode", std::string("constant"), "constant, reflect or replicate"),
              Optional("value", 0.0, "of what is added; rounded to x's dtype")};
  op.amp = Clear("copies");
  op.range = [](const ir::Node& node, const std::vector<ir::ValueRange>& in) {
    const double value = node.attrs().GetFloat("value");
    return Either(in[0], ir::ValueRange::Between(value, value));
  };
  op.cost = FlopsPerOutput(0);
  op.infer = InferPad;
  op.gradient = PadGradient;
  op.gradient_ops = {"slice", "gather_grad", "cast"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
