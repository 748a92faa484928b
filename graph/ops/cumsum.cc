// cumsum: running sums along an axis.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

Types InferCumsum(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_RETURN_IF_ERROR(AxisOf(ctx, "axis", x).status());
  return OneType(x.dtype, x.shape);
}

}  // namespace

void Register_cumsum(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "cumsum";
  op.doc =
      "y[..., i, ...] = sum of x[..., k, ...] over k <= i along `axis`, over k >= i if `reverse`. "
      "Sums are f64, integers wrap. Gradient: dy summed from the other end";
  op.source = "NumPy: cumsum";
  op.inputs = {{"x", ir::kNumeric, ""}};
  op.outputs = {{"y", "as x"}};
  op.attrs = {Required("axis", ir::AttrType::kInt, "negative from the end"),
              Optional("reverse", false, "sum from the end")};
  op.amp = DenyF16("a sum of 16-bit values leaves f16's range");
  op.cost = FlopsPerInput(1);
  op.infer = InferCumsum;
  op.gradient = [](ir::GradContext& c) {
    c.set_dx(0, c.b.Op("cumsum", {c.dy(0)},
                       {{"axis", c.attrs().GetInt("axis")},
                        {"reverse", !c.attrs().GetBool("reverse")}}));
  };
  op.gradient_ops = {"cumsum"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
