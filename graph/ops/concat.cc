// concat: tensors one after the other along an axis.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

Types InferConcat(const ir::InferContext& ctx) {
  if (ctx.inputs.empty()) return OpError(ctx, "no input; expected at least one");
  HT_RETURN_IF_ERROR(RequireSameDType(ctx));
  const ir::ValueType& first = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", first));
  std::vector<int64_t> dims = ToInts(first.shape);
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    const Shape& shape = ctx.inputs[i].shape;
    bool fits = shape.rank() == first.shape.rank();
    for (int d = 0; fits && d < shape.rank(); ++d) fits = d == axis || shape[d] == dims[d];
    if (!fits) {
      return OpError(ctx, "x", i, " is ", ctx.inputs[i], ", x0 is ", first,
                     "; expected equal extents except along axis ", axis);
    }
    dims[axis] += shape[axis];
  }
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, dims));
  return OneType(first.dtype, std::move(shape));
}

}  // namespace

void Register_concat(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "concat";
  op.doc =
      "y = x0, x1, ... one after the other along `axis`; all other extents agree. Gradient: "
      "slices of dy";
  op.source = "NumPy: concatenate";
  op.inputs = {{"x", ir::kAnyDType, "at least one", false, true}};
  op.outputs = {{"y", ""}};
  op.attrs = {Required("axis", ir::AttrType::kInt, "negative from the end")};
  op.amp = Clear("copies; its inputs share a dtype");
  op.amp.all_inputs_share = true;
  op.cost = FlopsPerOutput(0);
  op.infer = InferConcat;
  op.gradient = [](ir::GradContext& c) {
    const int rank = c.in(0).shape().rank();
    const int axis = CheckedAxis(c.attrs().GetInt("axis"), rank);
    int64_t start = 0;
    for (int i = 0; i < c.node.num_inputs(); ++i) {
      std::vector<int64_t> starts(rank, 0), limits = ToInts(c.in(i).shape());
      starts[axis] = start;
      start += limits[axis];
      limits[axis] = start;
      if (!c.need(i)) continue;
      c.set_dx(i, c.b.Op("slice", {c.dy(0)},
                         {{"starts", starts},
                          {"limits", limits},
                          {"strides", std::vector<int64_t>(rank, 1)}}));
    }
  };
  op.gradient_ops = {"slice"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
