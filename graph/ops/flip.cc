// flip: axes in reverse.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

Types InferFlip(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_RETURN_IF_ERROR(AxesOf(ctx, "axes", x).status());
  return OneType(x.dtype, x.shape);
}

}  // namespace

void Register_flip(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "flip";
  op.doc = "y[..., i, ...] = x[..., n - 1 - i, ...] along each of `axes`. Gradient: dy flipped";
  op.source = "NumPy: flip";
  op.inputs = {{"x", ir::kAnyDType, ""}};
  op.outputs = {{"y", "as x"}};
  op.attrs = {
      Required("axes", ir::AttrType::kInts, "axes reversed, negative from the end; []: all")};
  op.amp = Clear("moves no value");
  op.cost = FlopsPerOutput(0);
  op.infer = InferFlip;
  op.gradient = [](ir::GradContext& c) { c.set_dx(0, c.b.Op("flip", {c.dy(0)}, c.attrs())); };
  op.gradient_ops = {"flip"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
