// detach: a value through which no gradient flows.
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {

void Register_detach(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "detach";
  op.doc = "y = x. Gradient: none, x counts as a constant. autodiff removes it";
  op.source = "PyTorch: Tensor.detach";
  op.inputs = {{"x", ir::kAnyDType, ""}};
  op.outputs = {{"y", "x's type"}};
  op.amp = Clear("moves no value");
  op.no_gradient = "what it is for: its operand counts as a constant";
  op.in_place = {{0, 0}};
  op.cost = FlopsPerOutput(0);
  op.infer = [](const ir::InferContext& ctx) -> Types {
    return OneType(ctx.inputs[0].dtype, ctx.inputs[0].shape);
  };
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
