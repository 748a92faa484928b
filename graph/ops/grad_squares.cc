// grad_squares, grad_stats_of_squares: grad_stats in two parts, between which ranks that have different
// gradients exchange theirs.
#include <limits>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;
using Ints = std::vector<int64_t>;

Types InferGradSquares(const InferContext& ctx) {
  // f64 as the gradients may be, so that f64 throughout is f64 throughout.
  const DType scale = ctx.inputs[0].dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  HT_RETURN_IF_ERROR(CheckType(ctx, 0, "inv_scale", scale, Shape{}, "one number"));
  const auto gradients = static_cast<int64_t>(ctx.inputs.size()) - 1;
  return OneType(DType::kF64, Shape({2, gradients}));
}

Types InferOfSquares(const InferContext& ctx) {
  const ir::ValueType& squares = ctx.inputs[0];
  if (squares.shape.rank() != 2 || squares.shape[0] != 2 || squares.shape[1] < 1) {
    return OpError(ctx, "squares is ", squares, "; expected [2,n] of one or more gradients");
  }
  return std::vector<ir::ValueType>{
      {DType::kBool, Shape{}}, {DType::kF32, Shape{}}, {DType::kI32, Shape{}}};
}

// [1] each.
Expr SumOfSquaresOf(ir::Builder& b, Expr unscaled) {
  const Expr wide = b.Cast(unscaled, DType::kF64);
  const Expr flat = b.Op("reshape", {wide * wide}, {{"shape", Ints{wide.shape().num_elements()}}});
  return b.Op("sum", {flat}, {{"axes", Ints{0}}, {"keepdim", true}});
}

// inf - inf and NaN - NaN are not 0.
Expr AnyNotFinite(ir::Builder& b, Expr unscaled) {
  const int64_t count = unscaled.shape().num_elements();
  if (count == 0) return b.Constant(Tensor::Zeros(DType::kF64, Shape({1})));
  const Expr flat = b.Op("reshape", {unscaled}, {{"shape", Ints{count}}});
  const Expr is_finite = Equal(flat - flat, Number(flat, 0));
  const Expr bad = Where(is_finite, b.Scalar(DType::kF64, 0), b.Scalar(DType::kF64, 1));
  return b.Op("max", {bad}, {{"axes", Ints{0}}, {"keepdim", true}});
}

std::vector<Expr> DecomposeSquares(ir::Builder& b, const std::vector<Expr>& inputs,
                                   const ir::Attributes&) {
  std::vector<Expr> sums, bad;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const DType wide = WideDType(inputs[i].dtype());
    const Expr unscaled = b.Cast(inputs[i], wide) * b.Cast(inputs[0], wide);
    sums.push_back(SumOfSquaresOf(b, unscaled));
    bad.push_back(AnyNotFinite(b, unscaled));
  }
  const auto gradients = static_cast<int64_t>(sums.size());
  sums.insert(sums.end(), bad.begin(), bad.end());
  if (sums.empty()) return {b.Constant(Tensor::Zeros(DType::kF64, Shape({2, 0})))};
  return {b.Op("reshape", {b.Op("concat", sums, {{"axis", int64_t{0}}})},
               {{"shape", Ints{2, gradients}}})};
}

std::vector<Expr> DecomposeOfSquares(ir::Builder& b, const std::vector<Expr>& inputs,
                                     const ir::Attributes&) {
  const int64_t gradients = inputs[0].shape()[1];
  const auto row = [&](int64_t i) {
    const Expr part =
        b.Op("slice", {inputs[0]},
             {{"starts", Ints{i, 0}}, {"limits", Ints{i + 1, gradients}}, {"strides", Ints{1, 1}}});
    return b.Op("reshape", {part}, {{"shape", Ints{gradients}}});
  };
  const Expr counts = row(1);
  const Expr bad = Where(Less(Number(counts, 0), counts), Number(counts, 1), Number(counts, 0));
  const Expr worst = b.Op("max", {bad}, {{"axes", Ints{0}}});
  const Expr finite = Equal(worst, Number(worst, 0));
  const Expr norm = CastTo(Sqrt(b.Op("sum", {row(0)}, {{"axes", Ints{0}}})), DType::kF32);
  const Expr first = b.Cast(b.Op("argmax", {bad}, {{"axis", int64_t{0}}}), DType::kI32);
  return {finite, Where(finite, norm, Number(norm, std::numeric_limits<double>::infinity())),
          Where(finite, Number(first, -1), first)};
}

constexpr char kSquaresSource[] =
    "grad_stats; Rajbhandari et al., \"ZeRO\", arXiv:1910.02054 (each rank has some of the gradients)";

}  // namespace

void Register_grad_squares(ir::OpRegistry& registry) {
  ir::OpRecord squares;
  squares.name = "grad_squares";
  squares.doc =
      "Of each gradient u = g inv_scale (a product in f32; f64 for f64 g): squares[0] = sum of u^2, in f64; "
      "squares[1] = 1 if an element is inf or NaN, else 0. grad_stats_of_squares of it gives "
      "grad_stats, bit for bit where both run on one device. Shapes: inv_scale [], gradients any, squares "
      "[2, gradients]; of an empty gradient 0";
  squares.source = kSquaresSource;
  squares.inputs = {{"inv_scale", {DType::kF32, DType::kF64}, "[] 1 / loss scale"},
                    {"grads", ir::kFloats, "still multiplied by the loss scale",
                     /*optional=*/false, /*variadic=*/true}};
  squares.outputs = {{"squares", "f64"}};
  squares.no_gradient = kAfterGradients;
  squares.infer = InferGradSquares;
  squares.amp = Deny("a norm of unscaled gradients leaves 16-bit range");
  squares.amp.accumulates_in_f32 = true;
  squares.fusion = ir::FusionClass::kReduction;
  squares.cost = [](const ir::Node& node) {
    double elements = 0;
    for (const ir::Value& v : node.inputs()) {
      elements += static_cast<double>(v.type().num_elements());
    }
    return ir::Cost{3 * elements, IoBytes(node)};
  };
  squares.decompose = DecomposeSquares;
  AddOp(registry, std::move(squares));

  ir::OpRecord stats;
  stats.name = "grad_stats_of_squares";
  stats.doc =
      "Of the squares that grad_squares gives: finite = no gradient has squares[1] above 0; norm = sqrt of the sum "
      "of squares[0], in f64, in order, inf if not finite; first_bad = position of the first gradient with squares[1] "
      "above 0, -1 if none. Shapes: squares [2, n], n at least 1; outputs []";
  stats.source = kSquaresSource;
  stats.inputs = {{"squares", {DType::kF64}, "of all gradients"}};
  stats.outputs = {{"finite", "[] bool"}, {"norm", "[] f32"}, {"first_bad", "[] i32"}};
  stats.no_gradient = kAfterGradients;
  stats.infer = InferOfSquares;
  stats.amp = Untouched("of f64 alone", {});
  stats.decompose = DecomposeOfSquares;
  AddOp(registry, std::move(stats));
}

}  // namespace halftone::ops
