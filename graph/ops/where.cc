// where: element by element from one of two tensors.

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {

void Register_where(ir::OpRegistry& r) {
  ir::AmpTrait amp = Clear("copies; its two values share a dtype");
  amp.same_dtype_inputs = {1, 2};
  ir::OpRecord op =
      ElementwiseOp("where", {"condition", "a", "b"}, ir::kAnyDType,
                    "y = condition ? a : b; all three broadcast as in NumPy. "
                    "The value not taken does not reach y or the gradient, NaN and inf included",
                    "NumPy: where", std::move(amp));
  op.inputs[0].dtypes = {DType::kBool};
  op.in_place = {{1, 0}, {2, 0}};
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx, std::nullopt, 1); };
  op.gradient = [](ir::GradContext& c) {
    const ir::Expr dy = c.dy(0), zero = Number(dy, 0);
    if (c.need(1)) c.set_dx(1, SumTo(Where(c.in(0), dy, zero), c.in(1).shape()));
    if (c.need(2)) c.set_dx(2, SumTo(Where(c.in(0), zero, dy), c.in(2).shape()));
  };
  op.gradient_ops = {"where", "sum_to_shape"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
