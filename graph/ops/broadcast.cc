// broadcast_to and its adjoint sum_to_shape.

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;

ir::OpRecord BroadcastToOp() {
  ir::OpRecord op;
  op.name = "broadcast_to";
  op.doc = "y[i] = x[i mod x.shape], x aligned at the last axis. Gradient: sum over the repeats";
  op.source = "NumPy: broadcast_to";
  op.inputs = {{"x", ir::kAnyDType, ""}};
  op.outputs = {{"y", ""}};
  op.attrs = {Required("shape", ir::AttrType::kInts, "shape of y; x's must broadcast to it")};
  op.amp = Clear("copies");
  op.cost = FlopsPerOutput(0);
  op.infer = [](const ir::InferContext& ctx) -> Types {
    HT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx, "shape"));
    if (!BroadcastsTo(ctx.inputs[0].shape, shape)) {
      return OpError(ctx, ctx.inputs[0], " does not broadcast to ", shape,
                     "; expected extents equal or 1, aligned at the last axis");
    }
    return OneType(ctx.inputs[0].dtype, std::move(shape));
  };
  op.gradient = [](ir::GradContext& c) { c.set_dx(0, SumTo(c.dy(0), c.in(0).shape())); };
  op.gradient_ops = {"sum_to_shape"};
  return op;
}

ir::OpRecord SumToShapeOp() {
  ir::OpRecord op;
  op.name = "sum_to_shape";
  op.doc =
      "y = sum of x over the axes along which `shape` broadcasts to x's; accumulates in f32, "
      "integers exactly, f64 in f64. Gradient: dy broadcast";
  op.source = "adjoint of NumPy's broadcasting";
  op.inputs = {{"x", ir::kNumeric, ""}};
  op.outputs = {{"y", ""}};
  op.attrs = {Required("shape", ir::AttrType::kInts, "shape of y; it must broadcast to x's"),
              OutAttr()};
  op.amp = InferAcc("the reduction inside a gradient of broadcasting: follows the gradient");
  op.fusion = ir::FusionClass::kReduction;
  op.cost = FlopsPerInput(1);
  op.infer = [](const ir::InferContext& ctx) -> Types {
    HT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx, "shape"));
    if (!BroadcastsTo(shape, ctx.inputs[0].shape)) {
      return OpError(ctx, shape, " does not broadcast to ", ctx.inputs[0],
                     "; expected extents equal or 1, aligned at the last axis");
    }
    HT_ASSIGN_OR_RETURN(DType out, OutDType(ctx, ctx.inputs[0].dtype));
    return OneType(out, std::move(shape));
  };
  op.gradient = [](ir::GradContext& c) {
    c.set_dx(0, BroadcastTo(CastTo(c.dy(0), c.in(0).dtype()), c.in(0).shape()));
  };
  op.gradient_ops = {"cast", "broadcast_to"};
  op.decompose = [](ir::Builder& b, const std::vector<Expr>& in, const ir::Attributes& attrs) {
    const Shape shape(attrs.GetInts("shape"));
    const Axes axes = BroadcastAxes(shape, in[0].shape());
    const std::string& out = attrs.GetString("out");
    if (axes.empty()) {  // sum would take no axis for all
      const Expr x = ReshapeTo(in[0], shape);
      return std::vector<Expr>{out.empty() ? x : CastTo(x, DType::kF32)};
    }
    const std::vector<int64_t> ints(axes.begin(), axes.end());
    return std::vector<Expr>{
        ReshapeTo(b.Op("sum", {in[0]}, {{"axes", ints}, {"out", out}}), shape)};
  };
  return op;
}

}  // namespace

void Register_broadcast(ir::OpRegistry& r) {
  AddOp(r, BroadcastToOp());
  AddOp(r, SumToShapeOp());
}

}  // namespace halftone::ops
