// reshape: the same elements in row-major order under other extents.

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {

void Register_reshape(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "reshape";
  op.doc = "y has x's elements in row-major order. Gradient: dy reshaped back";
  op.source = "NumPy: reshape";
  op.inputs = {{"x", ir::kStorable, ""}};
  op.outputs = {{"y", ""}};
  op.attrs = {Required("shape", ir::AttrType::kInts, "shape of y, as many elements as x")};
  op.amp = Clear("moves no value");
  op.in_place = {{0, 0}};
  op.cost = FlopsPerOutput(0);
  op.infer = [](const ir::InferContext& ctx) -> Types {
    const ir::ValueType& x = ctx.inputs[0];
    HT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx, "shape"));
    if (shape.num_elements() != x.num_elements()) {
      return OpError(ctx, x, " has ", x.num_elements(), " elements, ", shape, " has ",
                     shape.num_elements(), "; expected as many");
    }
    return OneType(x.dtype, std::move(shape));
  };
  op.gradient = [](ir::GradContext& c) { c.set_dx(0, ReshapeTo(c.dy(0), c.in(0).shape())); };
  op.gradient_ops = {"reshape"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
