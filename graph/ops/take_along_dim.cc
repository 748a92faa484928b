// take_along_dim (PyTorch's gather) and its adjoint: an index for each element of the result.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

// Inputs 0 and 1 agree in every extent but, if `but` is an axis, along it.
absl::Status CheckAlike(const ir::InferContext& ctx, const char* name, int but) {
  const Shape &x = ctx.inputs[0].shape, &idx = ctx.inputs[1].shape;
  bool fits = x.rank() == idx.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == but || x[i] == idx[i];
  if (fits) return absl::OkStatus();
  return OpError(ctx, name, " is ", ctx.inputs[0], ", idx ", ctx.inputs[1],
                 "; expected equal extents", but < 0 ? "" : Concat(" except along axis ", but));
}

Types InferTake(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", x));
  HT_RETURN_IF_ERROR(CheckAlike(ctx, "x", axis));
  return OneType(x.dtype, ctx.inputs[1].shape);
}

Types InferTakeGrad(const ir::InferContext& ctx) {
  const ir::ValueType& dy = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", dy));
  HT_RETURN_IF_ERROR(CheckAlike(ctx, "dy", -1));
  const int64_t dim = ctx.attrs.GetInt("dim");
  if (dim < 0) return OpError(ctx, "dim ", dim, "; expected at least 0");
  std::vector<int64_t> dims = ToInts(dy.shape);
  dims[axis] = dim;
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, dims));
  return OneType(dy.dtype, std::move(shape));
}

}  // namespace

void Register_take_along_dim(ir::OpRegistry& r) {
  const ir::AttrSpec axis = Optional("axis", int64_t{0}, "axis of x that idx picks from");
  ir::OpRecord take;
  take.name = "take_along_dim";
  take.doc =
      "y[a..., i, b...] = x[a..., idx[a..., i, b...], b...] along `axis`; the other extents of x and "
      "idx agree. Index out of 0..extent-1: a run-time fault. Gradient: take_along_dim_grad";
  take.source = "https://pytorch.org/docs/stable/generated/torch.gather.html";
  take.inputs = {{"x", ir::kAnyDType, ""}, {"idx", ir::kIndices, ""}};
  take.outputs = {{"y", "shape of idx"}};
  take.attrs = {axis};
  take.amp = Clear("copies");
  take.cost = FlopsPerOutput(0);
  take.index_extent = ExtentAlongAxis();
  take.infer = InferTake;
  take.gradient = [](ir::GradContext& c) {
    const Shape& x = c.in(0).shape();
    const int axis = CheckedAxis(c.attrs().GetInt("axis"), x.rank());
    c.set_dx(0, c.b.Op("take_along_dim_grad", {c.dy(0), c.in(1)},
                       {{"axis", int64_t{axis}}, {"dim", x[axis]}}));
  };
  take.gradient_ops = {"take_along_dim_grad"};
  AddOp(r, std::move(take));

  ir::OpRecord grad;
  grad.name = "take_along_dim_grad";
  grad.doc =
      "dx[a..., k, b...] = sum of dy[a..., i, b...] over idx[a..., i, b...] = k, in order of i; "
      "`dim` values of k. Accumulates in f32, f64 in f64. Gradient: take_along_dim";
  grad.source = "https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html";
  grad.inputs = {{"dy", ir::kFloats, ""}, {"idx", ir::kIndices, "shape of dy"}};
  grad.outputs = {{"dx", "dtype of dy"}};
  grad.attrs = {axis, Required("dim", ir::AttrType::kInt, "extent of dx at `axis`")};
  grad.amp = Clear("follows take_along_dim; adds in f32");
  grad.amp.accumulates_in_f32 = true;
  grad.cost = FlopsPerInput(1);
  grad.index_extent = ExtentInAttr("dim");
  grad.infer = InferTakeGrad;
  grad.gradient = [](ir::GradContext& c) {
    c.set_dx(0, c.b.Op("take_along_dim", {c.dy(0), c.in(1)}, {{"axis", c.attrs().GetInt("axis")}}));
  };
  grad.gradient_ops = {"take_along_dim"};
  AddOp(r, std::move(grad));
}

}  // namespace halftone::ops
