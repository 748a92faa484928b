// gather (NumPy's take) and its adjoint gather_grad.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

// x with the extent at `axis` replaced by all extents of idx.
std::vector<int64_t> TakenDims(const Shape& x, const Shape& idx, int axis) {
  std::vector<int64_t> dims = ToInts(x);
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, idx.dims().begin(), idx.dims().end());
  return dims;
}

Types InferGather(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", x));
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, TakenDims(x.shape, ctx.inputs[1].shape, axis)));
  return OneType(x.dtype, std::move(shape));
}

// dy has idx's extents at `axis`; they become `dim` again. A negative axis counts in terms of x.
Types InferGatherGrad(const ir::InferContext& ctx) {
  const ir::ValueType& dy = ctx.inputs[0];
  const Shape& idx = ctx.inputs[1].shape;
  const int64_t dim = ctx.attrs.GetInt("dim");
  if (dim < 0) return OpError(ctx, "dim ", dim, "; expected at least 0");
  const int rank = dy.shape.rank() - idx.rank() + 1;
  if (rank < 1) {
    return OpError(ctx, "dy is ", dy, ", idx ", idx, "; expected dy of at least idx's rank");
  }
  const int64_t attr = ctx.attrs.GetInt("axis");
  if (attr < -rank || attr >= rank) {
    return OpError(ctx, "axis ", attr, " out of range for rank ", rank, "; expected ", -rank, "..",
                   rank - 1);
  }
  const int axis = CheckedAxis(attr, rank);
  std::vector<int64_t> dims = ToInts(dy.shape);
  for (int i = 0; i < idx.rank(); ++i) {
    if (dims[axis + i] != idx[i]) {
      return OpError(ctx, "dy is ", dy, ", idx ", idx, "; expected idx's extents at axis ", axis,
                     " of dy");
    }
  }
  dims.erase(dims.begin() + axis, dims.begin() + axis + idx.rank());
  dims.insert(dims.begin() + axis, dim);
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, dims));
  return OneType(dy.dtype, std::move(shape));
}

}  // namespace

void Register_gather(ir::OpRegistry& r) {
  const ir::AttrSpec axis = Optional("axis", int64_t{0}, "axis of x that idx picks from");
  ir::OpRecord gather;
  gather.name = "gather";
  gather.doc =
      "y[a..., i..., b...] = x[a..., idx[i...], b...] with idx's extents in place of `axis`. "
      "Index out of 0..extent-1: a run-time fault. Gradient: gather_grad";
  gather.source = "NumPy: take";
  gather.inputs = {{"x", ir::kAnyDType, ""}, {"idx", ir::kIndices, ""}};
  gather.outputs = {{"y", ""}};
  gather.attrs = {axis};
  gather.amp = Clear("copies");
  gather.cost = FlopsPerOutput(0);
  gather.index_extent = ExtentAlongAxis();
  gather.infer = InferGather;
  gather.gradient = [](ir::GradContext& c) {
    const Shape& x = c.in(0).shape();
    const int axis = CheckedAxis(c.attrs().GetInt("axis"), x.rank());
    c.set_dx(
        0, c.b.Op("gather_grad", {c.dy(0), c.in(1)}, {{"axis", int64_t{axis}}, {"dim", x[axis]}}));
  };
  gather.gradient_ops = {"gather_grad"};
  AddOp(r, std::move(gather));

  ir::OpRecord grad;
  grad.name = "gather_grad";
  grad.doc =
      "dx[a..., k, b...] = sum of dy[a..., i..., b...] over idx[i...] = k; `dim` values of k. "
      "Accumulates in f32, f64 in f64. Gradient: gather";
  grad.source = "adjoint of gather";
  grad.inputs = {{"dy", ir::kFloats, ""}, {"idx", ir::kIndices, ""}};
  grad.outputs = {{"dx", ""}};
  grad.attrs = {axis, Required("dim", ir::AttrType::kInt, "extent of dx at `axis`")};
  grad.amp = Clear("follows gather; adds in f32");
  grad.amp.accumulates_in_f32 = true;
  grad.cost = FlopsPerInput(1);
  grad.index_extent = ExtentInAttr("dim");
  grad.infer = InferGatherGrad;
  grad.gradient = [](ir::GradContext& c) {
    c.set_dx(0, c.b.Op("gather", {c.dy(0), c.in(1)}, {{"axis", c.attrs().GetInt("axis")}}));
  };
  grad.gradient_ops = {"gather"};
  AddOp(r, std::move(grad));
}

}  // namespace halftone::ops
