// sort: the first of an order along an axis, with where they are from.

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

Types InferSort(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", x));
  const int64_t k = ctx.attrs.GetInt("k");
  if (k < -1 || k > x.shape[axis]) {
    return OpError(ctx, "k is ", k, "; expected 0..", x.shape[axis], ", the extent of axis ", axis,
                   " of ", x, ", or -1");
  }
  std::vector<int64_t> dims = ToInts(x.shape);
  if (k >= 0) dims[axis] = k;
  const Shape shape(dims);
  return std::vector<ir::ValueType>{{x.dtype, shape}, {DType::kI64, shape}};
}

}  // namespace

void Register_sort(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "sort";
  op.doc =
      "The first k elements of x along `axis` in ascending (or descending) order, and their places "
      "in x. Equal elements keep their order; NaN counts as largest. Gradient: dy of the values "
      "where they were taken from";
  op.source = "https://pytorch.org/docs/stable/generated/torch.sort.html, stable";
  op.inputs = {{"x", ir::kNumeric, ""}};
  op.outputs = {{"values", "dtype of x"}, {"indices", "i64"}};
  op.attrs = {Required("axis", ir::AttrType::kInt, "negative from the end"),
              Optional("descending", false, "largest first"),
              Optional("k", int64_t{-1}, "how many; -1: all")};
  op.amp = Clear("moves values; the order of those that arrive");
  op.cost = FlopsPerInput(1);
  op.infer = InferSort;
  op.gradient = [](ir::GradContext& c) {
    const Shape& x = c.in(0).shape();
    const int axis = CheckedAxis(c.attrs().GetInt("axis"), x.rank());
    c.set_dx(0, c.b.Op("take_along_dim_grad", {c.dy(0), c.out(1)},
                       {{"axis", int64_t{axis}}, {"dim", x[axis]}}));
  };
  op.gradient_ops = {"take_along_dim_grad"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
