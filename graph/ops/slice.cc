// slice and its adjoint slice_grad.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using Ints = std::vector<int64_t>;

// Extents of x[starts:limits:strides], or why there is none.
absl::StatusOr<Shape> SlicedShape(const ir::InferContext& ctx, const Shape& x) {
  const Ints& starts = ctx.attrs.GetInts("starts");
  const Ints& limits = ctx.attrs.GetInts("limits");
  const Ints& strides = ctx.attrs.GetInts("strides");
  const size_t rank = static_cast<size_t>(x.rank());
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank) {
    return OpError(ctx, starts.size(), " starts, ", limits.size(), " limits and ", strides.size(),
                   " strides for ", x, "; expected ", rank, " of each");
  }
  Ints dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = x[static_cast<int>(i)];
    if (starts[i] < 0 || limits[i] < starts[i] || limits[i] > extent || strides[i] < 1) {
      return OpError(ctx, "axis ", i, ": ", starts[i], ":", limits[i], ":", strides[i], " of ", x,
                     "; expected 0 <= start <= limit <= ", extent, " and stride >= 1");
    }
    dims[i] = (limits[i] - starts[i]) / strides[i] + ((limits[i] - starts[i]) % strides[i] != 0);
  }
  return Shape(dims);
}

Types InferSlice(const ir::InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(Shape shape, SlicedShape(ctx, ctx.inputs[0].shape));
  return OneType(ctx.inputs[0].dtype, std::move(shape));
}

Types InferSliceGrad(const ir::InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx, "shape"));
  HT_ASSIGN_OR_RETURN(const Shape sliced, SlicedShape(ctx, shape));
  if (ctx.inputs[0].shape != sliced) {
    return OpError(ctx, "dy is ", ctx.inputs[0], "; expected the slice's shape ", sliced);
  }
  return OneType(ctx.inputs[0].dtype, std::move(shape));
}

std::vector<ir::AttrSpec> SliceAttrs() {
  return {Required("starts", ir::AttrType::kInts, "first index of each axis"),
          Required("limits", ir::AttrType::kInts, "one past the last index of each axis"),
          Required("strides", ir::AttrType::kInts, "step of each axis, at least 1")};
}

ir::Attributes SliceRange(const ir::Attributes& attrs) {
  return {{"starts", attrs.GetInts("starts")},
          {"limits", attrs.GetInts("limits")},
          {"strides", attrs.GetInts("strides")}};
}

}  // namespace

void Register_slice(ir::OpRegistry& r) {
  ir::OpRecord slice;
  slice.name = "slice";
  slice.doc =
      "y = x[starts:limits:strides]; extents ceil((limit - start) / stride). Gradient: "
      "slice_grad";
  slice.source = "NumPy: basic slicing";
  slice.inputs = {{"x", ir::kAnyDType, ""}};
  slice.outputs = {{"y", ""}};
  slice.attrs = SliceAttrs();
  slice.amp = Clear("copies");
  slice.cost = FlopsPerOutput(0);
  slice.infer = InferSlice;
  slice.gradient = [](ir::GradContext& c) {
    ir::Attributes attrs = SliceRange(c.attrs());
    attrs.Set("shape", ToInts(c.in(0).shape()));
    c.set_dx(0, c.b.Op("slice_grad", {c.dy(0)}, std::move(attrs)));
  };
  slice.gradient_ops = {"slice_grad"};
  AddOp(r, std::move(slice));

  ir::OpRecord grad;
  grad.name = "slice_grad";
  grad.doc = "dx = 0 except dx[starts:limits:strides] = dy. Gradient: slice";
  grad.source = "adjoint of slice";
  grad.inputs = {{"dy", ir::kAnyDType, ""}};
  grad.outputs = {{"dx", ""}};
  grad.attrs = SliceAttrs();
  grad.attrs.push_back(Required("shape", ir::AttrType::kInts, "shape of dx"));
  grad.amp = Clear("copies");
  grad.cost = FlopsPerOutput(0);
  grad.infer = InferSliceGrad;
  grad.gradient = [](ir::GradContext& c) {
    c.set_dx(0, c.b.Op("slice", {c.dy(0)}, SliceRange(c.attrs())));
  };
  grad.gradient_ops = {"slice"};
  AddOp(r, std::move(grad));
}

}  // namespace halftone::ops
