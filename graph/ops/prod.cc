// prod: the product along an axis.

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;

Types InferProd(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", x));
  return OneType(x.dtype, ReducedShape(x.shape, {axis}, ctx.attrs.GetBool("keepdim")));
}

Expr Part(ir::Builder& b, Expr x, int axis, int64_t start, int64_t limit) {
  std::vector<int64_t> starts(static_cast<size_t>(x.shape().rank()), 0);
  std::vector<int64_t> limits = ToInts(x.shape());
  starts[axis] = start;
  limits[axis] = limit;
  return b.Op("slice", {x},
              {{"starts", starts},
               {"limits", limits},
               {"strides", std::vector<int64_t>(starts.size(), 1)}});
}

// A tree of products: its gradient multiplies what an element does not take part in, and divides by
// nothing, so that zeros and values that overflow only together stay right.
std::vector<Expr> Decompose(ir::Builder& b, const std::vector<Expr>& in,
                            const ir::Attributes& attrs) {
  const int axis = CheckedAxis(attrs.GetInt("axis"), in[0].shape().rank());
  Expr x = Widened(in[0]), left_over;
  if (in[0].shape()[axis] == 0) {
    // 1, but made of x: differentiable like any other.
    const std::vector<int64_t> axes = {int64_t{axis}};
    x = b.Op("sum", {x}, {{"axes", axes}, {"keepdim", true}}) + 1;
  }
  for (int64_t n = in[0].shape()[axis]; n > 1; n /= 2) {
    if (n % 2 != 0) {
      const Expr last = Part(b, x, axis, n - 1, n);
      left_over = left_over.valid() ? left_over * last : last;
    }
    x = Part(b, x, axis, 0, n / 2) * Part(b, x, axis, n / 2, n / 2 * 2);
  }
  if (left_over.valid()) x = x * left_over;
  const Shape shape = ReducedShape(in[0].shape(), {axis}, attrs.GetBool("keepdim"));
  return {ReshapeTo(CastTo(x, in[0].dtype()), shape)};
}

}  // namespace

void Register_prod(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "prod";
  op.doc =
      "y = product of x along `axis`, 1 over none; computed in f64, integers wrap. The gradient of "
      "an element is the product of the others, without a division: right where some are 0";
  op.source = "NumPy: prod";
  op.inputs = {{"x", ir::kNumeric, ""}};
  op.outputs = {{"y", "dtype of x"}};
  op.attrs = {Required("axis", ir::AttrType::kInt, "axis reduced, negative from the end"),
              Optional("keepdim", false, "keep the axis with extent 1")};
  op.amp = DenyF16("a product of 16-bit values leaves f16's range");
  op.fusion = ir::FusionClass::kReduction;
  op.cost = FlopsPerInput(1);
  op.infer = InferProd;
  op.decompose = Decompose;
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
