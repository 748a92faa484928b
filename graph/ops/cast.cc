// cast: the same values in another dtype.

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {

void Register_cast(ir::OpRegistry& r) {
  ir::AmpTrait amp = Untouched("a cast the user wrote is a barrier: both dtypes stay", {0});
  amp.keep_f32_outputs = {0};
  ir::OpRecord op = ElementwiseOp(
      "cast", {"x"}, ir::kStorable,
      "y = x in dtype `to`, rounded once to nearest even. To an integer: toward zero, saturating, "
      "NaN gives 0; to bool: x != 0; to 8 bits: saturating, where only what is not finite gives inf "
      "(f8e5m2) or NaN (f8e4m3). Gradient: dy cast back, between floats",
      "IEEE 754: convertFormat", std::move(amp));
  op.attrs = {Required("to", ir::AttrType::kDType, "dtype of y"),
              Optional("kept", false,
                       "set by keep-low-weights: y stays from step to step beside the variable x, "
                       "and is cast again only where x was written without it")};
  op.range = [](const ir::Node&, const std::vector<ir::ValueRange>& in) { return in[0]; };
  op.infer = [](const ir::InferContext& ctx) {
    return OneType(ctx.attrs.GetDType("to"), ctx.inputs[0].shape, ctx.inputs[0].layout);
  };
  op.gradient = [](ir::GradContext& c) {
    const DType from = c.in(0).dtype();
    if (IsFloat(from) && IsFloat(c.out(0).dtype())) c.set_dx(0, CastTo(c.dy(0), from));
  };
  op.gradient_ops = {"cast"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
