// scaled_dot_product_attention and its gradient.
//
// The weights of a row are softmax over its keys; two numbers a row are what the gradient needs to
// make them again. Nothing of size L x S is an operand.
#include "halftone/graph/ops/support/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "halftone/graph/ops/support/softmax_stats.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// Ports of the gradient; the mask is last there too.
enum GradPort { kQuery, kKey, kValue, kY, kStats, kDy, kMask };

// Of each row the largest score, then log(sum(exp(score - largest))). Apart, since their sum would
// round the second away beside a large first, as a mask of -1e9 on every key makes it.
Ints StatsExtents(const Shape& q) {
  Ints dims = {2};
  dims.insert(dims.end(), q.dims().begin(), q.dims().end() - 1);
  return dims;
}

Types InferAttention(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const AttentionViews in, InferAttentionViews(ctx, 3));
  const DType dtype = ctx.inputs[0].dtype;
  HT_ASSIGN_OR_RETURN(const Shape stats, MakeShape(ctx, StatsExtents(in.query.shape)));
  return std::vector<ir::ValueType>{{dtype, in.Placed(in.YShape())}, {WideDType(dtype), stats}};
}

Types InferAttentionGrad(const InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const AttentionViews in, InferAttentionViews(ctx, kMask));
  const DType dtype = ctx.inputs[0].dtype;
  const Shape y = in.Placed(in.YShape());
  HT_RETURN_IF_ERROR(CheckType(ctx, kY, "y", dtype, y, "result of the op"));
  HT_ASSIGN_OR_RETURN(const Shape stats, MakeShape(ctx, StatsExtents(in.query.shape)));
  HT_RETURN_IF_ERROR(
      CheckType(ctx, kStats, "stats", WideDType(dtype), stats, "two values per row of y"));
  HT_RETURN_IF_ERROR(CheckType(ctx, kDy, "dy", dtype, y, "type of y"));
  std::vector<ir::ValueType> types;
  for (const OperandView* x : {&in.query, &in.key, &in.value}) {
    types.push_back({dtype, in.Placed(x->shape)});
  }
  return types;
}

// What forward and gradient are both made of, widened.
struct Operands {
  Expr q, k, v;  // k and v with query's heads
  Shape scores;  // [..., L, S]
};

// k or v, each head repeated for the heads of query that it serves.
Expr Repeated(Expr x, const Shape& q) {
  const Shape& s = x.shape();
  const int rank = s.rank();
  if (rank < 3 || s[rank - 3] == q[rank - 3]) return x;
  const int64_t heads = s[rank - 3], group = q[rank - 3] / heads;
  const int64_t rows = s[rank - 2], columns = s[rank - 1];
  const int64_t size = rows * columns;
  const int64_t outer = size * heads == 0 ? 0 : s.num_elements() / (heads * size);
  const Expr split = ReshapeTo(x, Shape{outer, heads, 1, size});
  const Expr wide = BroadcastTo(split, Shape{outer, heads, group, size});
  return ReshapeTo(wide, LeadingShape(q, 2, {rows, columns}));
}

// The adjoint of Repeated: sums over the heads that shared one.
Expr Gathered(Expr dx, const Shape& x) {
  if (dx.shape() == x) return dx;
  const int rank = x.rank();
  const int64_t heads = x[rank - 3], group = dx.shape()[rank - 3] / heads;
  const int64_t size = x[rank - 2] * x[rank - 1];
  const int64_t outer = size * heads == 0 ? 0 : x.num_elements() / (heads * size);
  return ReshapeTo(Sum(ReshapeTo(dx, Shape{outer, heads, group, size}), {2}), x);
}

Operands WidenedOperands(Expr q, Expr k, Expr v) {
  const Shape& shape = q.shape();
  return {Widened(q), Repeated(Widened(k), shape), Repeated(Widened(v), shape),
          LeadingShape(shape, 1, {k.shape()[shape.rank() - 2]})};
}

Expr Multiply(Expr a, Expr b, bool ta, bool tb) {
  return a.builder()->Op("matmul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
}

// Whether row i may see column j: j <= i.
Expr CausalMask(ir::Builder& b, int64_t rows, int64_t columns) {
  Tensor mask = Tensor::Empty(DType::kBool, Shape{rows, columns});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) mask.set(i * columns + j, j <= i ? 1 : 0);
  }
  return b.Constant(mask);
}

// scale q k^T with what masks forbid at -inf. `mask` may be poison: none.
Expr Scores(ir::Builder& b, const Operands& in, Expr mask, const ir::Attributes& attrs) {
  Expr scores = Multiply(in.q, in.k, false, true) * attrs.GetFloat("scale");
  const int rank = in.scores.rank();
  const Expr nothing = Number(scores, kMinusInf);
  if (attrs.GetBool("is_causal")) {
    scores = Where(CausalMask(b, in.scores[rank - 2], in.scores[rank - 1]), scores, nothing);
  }
  if (!mask.valid()) return scores;
  return mask.dtype() == DType::kBool ? Where(mask, scores, nothing) : scores + mask;
}

Expr Dropped(Expr weights, const ir::Attributes& attrs) {
  const double p = attrs.GetFloat("dropout_p");
  if (p == 0) return weights;
  return weights.builder()->Op("dropout", {weights}, {{"p", p}, {"seed", attrs.GetInt("seed")}});
}

// x where the row sees a key, so that its `max` is above -inf; else the number.
Expr WhereAttended(Expr max, Expr x, double otherwise) {
  return Where(NotEqual(max, Number(max, kMinusInf)), x, Number(x, otherwise));
}

// What a view of x reads, as a value of its own.
Expr Copied(Expr x, const OperandView& view) {
  const OperandView dense = DenseView(x.shape());
  if (view.shape == dense.shape && view.strides == dense.strides && view.offset == 0) return x;
  Tensor positions = Tensor::Empty(DType::kI64, view.shape);
  for (int64_t i = 0; i < view.shape.num_elements(); ++i) {
    int64_t at = view.offset, rest = i;
    for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
      at += rest % view.shape[axis] * view.strides[static_cast<size_t>(axis)];
      rest /= view.shape[axis];
    }
    positions.set(i, static_cast<double>(at));
  }
  ir::Builder& b = *x.builder();
  const Expr flat = ReshapeTo(x, Shape{x.shape().num_elements()});
  return b.Op("gather", {flat, b.Constant(positions)});
}

// With the axes of heads and positions swapped, if heads are last.
Expr HeadsSwapped(Expr x, const ir::Attributes& attrs) {
  if (!attrs.GetBool("heads_last")) return x;
  Ints perm(static_cast<size_t>(x.shape().rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 3], perm[perm.size() - 2]);
  return x.builder()->Op("transpose", {x}, {{"perm", perm}});
}

// The operands as values of their own, heads first.
std::vector<Expr> PlainOperands(std::vector<Expr> in, const ir::Attributes& attrs) {
  const AttentionViews views = AttentionViewsOf(attrs, in[0].shape(), in[1].shape(), in[2].shape());
  in[0] = Copied(in[0], views.query);
  in[1] = Copied(in[1], views.key);
  in[2] = Copied(in[2], views.value);
  if (in.size() > kDy) {
    in[kY] = HeadsSwapped(in[kY], attrs);
    in[kDy] = HeadsSwapped(in[kDy], attrs);
  }
  return in;
}

std::vector<Expr> DecomposeAttention(ir::Builder& b, const std::vector<Expr>& given,
                                     const ir::Attributes& attrs) {
  const std::vector<Expr> in = PlainOperands(given, attrs);
  const Operands operands = WidenedOperands(in[0], in[1], in[2]);
  const int rank = in[0].shape().rank();
  const Shape stats(StatsExtents(in[0].shape()));
  const Shape y_shape = LeadingShape(in[0].shape(), 1, {in[2].shape()[rank - 1]});
  if (operands.scores[rank - 1] == 0) {  // no keys, of which there is no maximum
    return {HeadsSwapped(BroadcastTo(Number(in[0], 0), y_shape), attrs),
            BroadcastTo(Number(operands.q, kMinusInf), stats)};
  }
  const Expr scores = Scores(b, operands, in.size() > 3 ? in[3] : Expr(), attrs);
  const Expr max = Max(scores, {rank - 1}, true);
  const Expr shift = WhereAttended(max, max, 0);
  const Expr e = Exp(scores - shift);
  const Expr sum = Sum(e, {rank - 1}, true);
  const Expr weights = e / WhereAttended(max, sum, 1);
  const Expr y = Multiply(Dropped(weights, attrs), operands.v, false, false);
  return {HeadsSwapped(CastTo(y, in[0].dtype()), attrs), JoinedStats(max, Log(sum), stats)};
}

// The weights made again from the scores, and the gradient of the scores.
struct ScoreGradient {
  Expr scores, weights;
  Expr dropped;  // what multiplied value
  Expr dscores;
};

ScoreGradient GradientOfScores(ir::Builder& b, const Operands& operands,
                               const std::vector<Expr>& in, const ir::Attributes& attrs) {
  const int rank = in[kQuery].shape().rank();
  const Expr scores = Scores(b, operands, in.size() > kMask ? in[kMask] : Expr(), attrs);
  const Shape rows = LeadingShape(operands.scores, 1, {1});
  const Expr max = Statistic(in[kStats], 0, rows);
  const Expr log_sum = WhereAttended(max, Statistic(in[kStats], 1, rows), 0);
  const Expr weights = Exp(scores - WhereAttended(max, max, -kMinusInf) - log_sum);
  const Expr dy = Widened(in[kDy]);
  const Expr dweights = Dropped(Multiply(dy, operands.v, false, true), attrs);
  const Expr delta = Sum(dy * Widened(in[kY]), {rank - 1}, true);
  return {scores, weights, Dropped(weights, attrs), weights * (dweights - delta)};
}

std::vector<Expr> DecomposeAttentionGrad(ir::Builder& b, const std::vector<Expr>& given,
                                         const ir::Attributes& attrs) {
  const std::vector<Expr> in = PlainOperands(given, attrs);
  const Operands operands = WidenedOperands(in[kQuery], in[kKey], in[kValue]);
  const double scale = attrs.GetFloat("scale");
  const ScoreGradient g = GradientOfScores(b, operands, in, attrs);
  const Expr dq = Multiply(g.dscores, operands.k, false, false) * scale;
  const Expr dk = Multiply(g.dscores, operands.q, true, false) * scale;
  const Expr dv = Multiply(g.dropped, Widened(in[kDy]), true, false);
  const auto result = [&](Expr x, int port) {
    const Expr& operand = in[static_cast<size_t>(port)];
    return HeadsSwapped(CastTo(Gathered(x, operand.shape()), operand.dtype()), attrs);
  };
  return {result(dq, kQuery), result(dk, kKey), result(dv, kValue)};
}

// The gradient of an additive mask is as large as the scores unless the mask repeats, so it is made of
// simple ops, and only where it is wanted; so is what arrives at the stats, in second derivatives.
void AttentionGradient(ir::GradContext& ctx) {
  const ir::Attributes& own = ctx.attrs();
  const bool as_it_lies = !own.GetInts("query_view").empty() || !own.GetInts("key_view").empty() ||
                          !own.GetInts("value_view").empty() || own.GetBool("heads_last");
  if (as_it_lies) {
    ctx.b.Fail(Unimplemented(ctx.node.Label(),
                             ": no gradient of an attention that reads operands in place"));
    return;
  }
  std::vector<Expr> in = {ctx.in(0),  ctx.in(1),  ctx.in(2),
                          ctx.out(0), ctx.out(1), CastTo(ctx.dy(0), ctx.in(0).dtype())};
  const bool masked = ctx.node.num_inputs() > 3;
  if (masked) in.push_back(ctx.in(3));
  std::vector<Expr> d(4);
  if (ctx.need(0) || ctx.need(1) || ctx.need(2)) {
    const std::vector<Expr> made = ctx.b.Make("scaled_dot_product_attention_grad", in, ctx.attrs());
    std::copy(made.begin(), made.end(), d.begin());
  }
  const bool of_mask = masked && ctx.need(3) && ctx.in(3).dtype() != DType::kBool;
  if (of_mask || ctx.has_dy(1)) {
    const Operands operands = WidenedOperands(in[kQuery], in[kKey], in[kValue]);
    const ScoreGradient g = GradientOfScores(ctx.b, operands, in, ctx.attrs());
    Expr dscores = g.dscores;
    if (ctx.has_dy(1) && operands.scores[operands.scores.rank() - 1] > 0) {
      const Expr of_stats =
          StatsGradient(g.scores, g.weights, ctx.dy(1), operands.scores.rank() - 1);
      const double scale = ctx.attrs().GetFloat("scale");
      const Expr dq = Multiply(of_stats, operands.k, false, false) * scale;
      const Expr dk = Multiply(of_stats, operands.q, true, false) * scale;
      if (d[0].valid()) {
        d[0] = d[0] + CastTo(dq, d[0].dtype());
        d[1] = d[1] + CastTo(Gathered(dk, in[kKey].shape()), d[1].dtype());
      }
      dscores = dscores + of_stats;
    }
    if (of_mask) d[3] = SumTo(dscores, ctx.in(3).shape());
  }
  for (int i = 0; i < ctx.node.num_inputs(); ++i) {
    if (ctx.need(i)) ctx.set_dx(i, d[i]);
  }
}

// For each score, `query_products` multiply-adds a column of query, `value_products` one of value.
std::function<ir::Cost(const ir::Node&)> AttentionCost(double query_products,
                                                       double value_products) {
  return [=](const ir::Node& node) -> ir::Cost {
    const AttentionViews views = AttentionViewsOf(node);
    const Shape &q = views.query.shape, &v = views.value.shape;
    const int rank = q.rank();
    const double columns = query_products * static_cast<double>(q[rank - 1]) +
                           value_products * static_cast<double>(v[rank - 1]);
    const double rows = q[rank - 1] == 0 ? 0 : static_cast<double>(q.num_elements() / q[rank - 1]);
    return {2 * rows * static_cast<double>(v[rank - 2]) * columns, IoBytes(node)};
  };
}

ir::OpRecord AttentionRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.source =
      "Vaswani et al.: \"Attention is all you need\", https://arxiv.org/abs/1706.03762, equation 1; "
      "Dao: \"FlashAttention-2\", https://arxiv.org/abs/2307.08691, algorithms 1 and 2; "
      "https://pytorch.org/docs/stable/generated/"
      "torch.nn.functional.scaled_dot_product_attention.html";
  r.inputs = {{"query", ir::kFloats, "[..., H, L, E]; H may be absent"},
              {"key", ir::kFloats, "[..., K, S, E]; K divides H"},
              {"value", ir::kFloats, "[..., K, S, V]"}};
  r.attrs = {
      {"scale", ir::AttrType::kFloat, std::nullopt, "factor of the scores"},
      {"is_causal", ir::AttrType::kBool, false, "row i sees the keys 0..i only"},
      {"dropout_p", ir::AttrType::kFloat, 0.0, "probability of a dropped weight, 0..1"},
      {"seed", ir::AttrType::kInt, int64_t{0}, "key of the random stream of dropout"},
      ViewAttr("query"),
      ViewAttr("key"),
      ViewAttr("value"),
      {"heads_last", ir::AttrType::kBool, false,
       "y, dy and the gradients have the axes of heads and positions swapped: [..., L, H, V]"}};
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.accumulates_in_f32 = true;
  r.is_random = true;
  return r;
}

ir::InputSpec MaskInput() {
  return {"attn_mask",
          {DType::kBool, DType::kF64, DType::kF32},
          "broadcasts to [..., H, L, S]",
          /*optional=*/true};
}

}  // namespace

void Register_attention(ir::OpRegistry& registry) {
  ir::OpRecord r = AttentionRecord("scaled_dot_product_attention");
  r.doc =
      "y = dropout(softmax(s)) value over the keys, with s = scale query key^T: head h of query "
      "meets head h / (H / K) of key and value. Scores where attn_mask is false, or beyond the "
      "diagonal if is_causal, count as -inf; a mask of numbers is added to s. A row without a key "
      "to see gets zeros. Dropout is that of the op `dropout` on the weights [..., H, L, S]: "
      "the same mask for the same seed, run count and position. Shapes: y [..., H, L, V]; stats "
      "[2, ..., H, L] in f32 (f64 for f64): m = max(s) of each row, then "
      "log_sum = log(sum(exp(s - m))); both -inf in a row without a key to see. "
      "Scores and sums are f32 inside (f64 for f64).";
  r.inputs.push_back(MaskInput());
  r.outputs = {{"y", "[..., H, L, V]"}, {"stats", "[2, ..., H, L], for the gradient"}};
  r.infer = InferAttention;
  r.amp.reason =
      "two matrix products of 16-bit operands; scores, softmax and sums are f32 inside, and the "
      "result is a mean of values";
  r.amp.same_dtype_inputs = {0, 1, 2};
  r.amp.keep_f32_inputs = {3};
  r.amp.keep_f32_outputs = {1};
  r.cost = AttentionCost(1, 1);
  r.gradient = AttentionGradient;
  r.gradient_ops = {"scaled_dot_product_attention_grad",
                    "reshape",
                    "broadcast_to",
                    "cast",
                    "matmul",
                    "mul",
                    "add",
                    "sub",
                    "where",
                    "not_equal",
                    "argmax",
                    "equal",
                    "exp",
                    "slice",
                    "dropout",
                    "sum",
                    "sum_to_shape"};
  r.decompose = DecomposeAttention;
  AddOp(registry, std::move(r));

  ir::OpRecord grad = AttentionRecord("scaled_dot_product_attention_grad");
  grad.doc =
      "Gradient of scaled_dot_product_attention. With s and the dropped keep z (0 or 1 / (1 - p)) "
      "of the forward op, w = exp(s - m - log_sum), dw = z (dy value^T) and ds = w (dw - "
      "sum(dy y)) along a row: dquery = scale ds key, dkey = scale ds^T query, dvalue = (z w)^T dy, "
      "the last two summed over the heads that share one. Shapes as the forward op.";
  grad.inputs.push_back({"y", ir::kFloats, "[..., H, L, V]"});
  grad.inputs.push_back({"stats", {DType::kF64, DType::kF32}, "second output of the forward op"});
  grad.inputs.push_back({"dy", ir::kFloats, "as y"});
  grad.inputs.push_back(MaskInput());
  grad.outputs = {{"dquery", "as query"}, {"dkey", "as key"}, {"dvalue", "as value"}};
  grad.infer = InferAttentionGrad;
  grad.amp.reason =
      "gradient of attention: five matrix products of 16-bit operands; weights and sums are f32 "
      "inside";
  grad.amp.same_dtype_inputs = {kQuery, kKey, kValue, kY, kDy};
  grad.amp.keep_f32_inputs = {kStats, kMask};
  grad.cost = AttentionCost(3, 2);
  grad.decompose = DecomposeAttentionGrad;
  AddOp(registry, std::move(grad));
}

}  // namespace halftone::ops
