// scaled_dot_product_attention and its gradient.
//
// The weights of a row are softmax over its keys; two numbers a row are what the gradient needs to
// make them again. Nothing of size L x S is an operand.
#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/graph/ops/support/softmax_stats.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::InferContext;

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// Ports of the gradient; the mask is last there too.
enum GradPort { kQuery, kKey, kValue, kY, kStats, kDy, kMask };

// Extents before the last `count`, then `rest`.
Shape LeadingShape(const Shape& shape, int count, const Ints& rest) {
  Ints dims(shape.dims().begin(), shape.dims().end() - count);
  dims.insert(dims.end(), rest.begin(), rest.end());
  return Shape(dims);
}

// query [..., L, E] with key and value: their extents before the last two are query's, except that
// each head of theirs (the third last axis) may serve several of query's.
absl::Status CheckKeys(const InferContext& ctx, int port, const char* name) {
  const ir::ValueType &q = ctx.inputs[0], &x = ctx.inputs[port];
  const int rank = q.shape.rank();
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, port, name, 0, "query"));
  HT_RETURN_IF_ERROR(CheckRank(ctx, port, name, rank, rank));
  for (int axis = 0; axis + 2 < rank; ++axis) {
    const int64_t got = x.shape[axis], wanted = q.shape[axis];
    const bool shares = axis == rank - 3 && got > 0 && wanted > 0 && wanted % got == 0;
    if (got == wanted || shares) continue;
    return OpError(ctx, name, " is ", x.ToString(), "; expected ",
                   axis == rank - 3 && wanted > 0 ? Concat("a divisor of the ", wanted, " heads")
                                                  : Concat("extent ", wanted, " along axis ", axis),
                   " of query ", q.ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckAttention(const InferContext& ctx, int mask_port) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, "query", 2, kMaxRank));
  HT_RETURN_IF_ERROR(CheckKeys(ctx, 1, "key"));
  HT_RETURN_IF_ERROR(CheckKeys(ctx, 2, "value"));
  const ir::ValueType &q = ctx.inputs[0], &k = ctx.inputs[1], &v = ctx.inputs[2];
  const int rank = q.shape.rank();
  if (k.shape[rank - 1] != q.shape[rank - 1]) {
    return OpError(ctx, "key is ", k.ToString(), "; expected last extent ", q.shape[rank - 1],
                   ", that of query ", q.ToString());
  }
  if (v.shape[rank - 2] != k.shape[rank - 2] ||
      (rank > 2 && v.shape[rank - 3] != k.shape[rank - 3])) {
    return OpError(ctx, "value is ", v.ToString(), "; expected the heads and positions of key ",
                   k.ToString());
  }
  const double p = ctx.attrs.GetFloat("dropout_p"), scale = ctx.attrs.GetFloat("scale");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "dropout_p", p >= 0 && p <= 1, "0..1"));
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "scale", std::isfinite(scale), "a finite number"));
  if (static_cast<int>(ctx.inputs.size()) <= mask_port) return absl::OkStatus();
  const ir::ValueType& mask = ctx.inputs[mask_port];
  const DType wide = WideDType(q.dtype);
  if (mask.dtype != DType::kBool && mask.dtype != wide) {
    return OpError(ctx, "attn_mask is ", mask.ToString(), "; expected bool or ", Name(wide));
  }
  const Shape scores = LeadingShape(q.shape, 1, {k.shape[rank - 2]});
  if (!BroadcastsTo(mask.shape, scores)) {
    return OpError(ctx, "attn_mask is ", mask.ToString(), "; expected a shape that broadcasts to ",
                   scores.ToString(), ", query's positions by key's");
  }
  return absl::OkStatus();
}

Shape ResultShape(const InferContext& ctx) {
  const Shape &q = ctx.inputs[0].shape, &v = ctx.inputs[2].shape;
  return LeadingShape(q, 1, {v[v.rank() - 1]});
}

// Of each row the largest score, then log(sum(exp(score - largest))). Apart, since their sum would
// round the second away beside a large first, as a mask of -1e9 on every key makes it.
Ints StatsExtents(const Shape& q) {
  Ints dims = {2};
  dims.insert(dims.end(), q.dims().begin(), q.dims().end() - 1);
  return dims;
}

Types InferAttention(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckAttention(ctx, 3));
  const ir::ValueType& q = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const Shape stats, MakeShape(ctx, StatsExtents(q.shape)));
  return std::vector<ir::ValueType>{{q.dtype, ResultShape(ctx)}, {WideDType(q.dtype), stats}};
}

Types InferAttentionGrad(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckAttention(ctx, kMask));
  const ir::ValueType& q = ctx.inputs[0];
  const Shape y = ResultShape(ctx);
  HT_RETURN_IF_ERROR(CheckType(ctx, kY, "y", q.dtype, y, "result of the op"));
  HT_ASSIGN_OR_RETURN(const Shape stats, MakeShape(ctx, StatsExtents(q.shape)));
  HT_RETURN_IF_ERROR(
      CheckType(ctx, kStats, "stats", WideDType(q.dtype), stats, "two values per row of y"));
  HT_RETURN_IF_ERROR(CheckType(ctx, kDy, "dy", q.dtype, y, "type of y"));
  std::vector<ir::ValueType> types;
  for (int i : {kQuery, kKey, kValue}) types.push_back({ctx.inputs[i].dtype, ctx.inputs[i].shape});
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

std::vector<Expr> DecomposeAttention(ir::Builder& b, const std::vector<Expr>& in,
                                     const ir::Attributes& attrs) {
  const Operands operands = WidenedOperands(in[0], in[1], in[2]);
  const int rank = in[0].shape().rank();
  const Shape stats(StatsExtents(in[0].shape()));
  const Shape y_shape = LeadingShape(in[0].shape(), 1, {in[2].shape()[rank - 1]});
  if (operands.scores[rank - 1] == 0) {  // no keys, of which there is no maximum
    return {BroadcastTo(Number(in[0], 0), y_shape),
            BroadcastTo(Number(operands.q, kMinusInf), stats)};
  }
  const Expr scores = Scores(b, operands, in.size() > 3 ? in[3] : Expr(), attrs);
  const Expr max = Max(scores, {rank - 1}, true);
  const Expr shift = WhereAttended(max, max, 0);
  const Expr e = Exp(scores - shift);
  const Expr sum = Sum(e, {rank - 1}, true);
  const Expr weights = e / WhereAttended(max, sum, 1);
  const Expr y = Multiply(Dropped(weights, attrs), operands.v, false, false);
  return {CastTo(y, in[0].dtype()), JoinedStats(max, Log(sum), stats)};
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

std::vector<Expr> DecomposeAttentionGrad(ir::Builder& b, const std::vector<Expr>& in,
                                         const ir::Attributes& attrs) {
  const Operands operands = WidenedOperands(in[kQuery], in[kKey], in[kValue]);
  const double scale = attrs.GetFloat("scale");
  const ScoreGradient g = GradientOfScores(b, operands, in, attrs);
  const Expr dq = Multiply(g.dscores, operands.k, false, false) * scale;
  const Expr dk = Multiply(g.dscores, operands.q, true, false) * scale;
  const Expr dv = Multiply(g.dropped, Widened(in[kDy]), true, false);
  return {CastTo(dq, in[kQuery].dtype()), CastTo(Gathered(dk, in[kKey].shape()), in[kKey].dtype()),
          CastTo(Gathered(dv, in[kValue].shape()), in[kValue].dtype())};
}

// The gradient of an additive mask is as large as the scores unless the mask repeats, so it is made of
// simple ops, and only where it is wanted; so is what arrives at the stats, in second derivatives.
void AttentionGradient(ir::GradContext& ctx) {
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
    const Shape &q = node.input_type(0).shape, &v = node.input_type(2).shape;
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
  r.attrs = {{"scale", ir::AttrType::kFloat, std::nullopt, "factor of the scores"},
             {"is_causal", ir::AttrType::kBool, false, "row i sees the keys 0..i only"},
             {"dropout_p", ir::AttrType::kFloat, 0.0, "probability of a dropped weight, 0..1"},
             {"seed", ir::AttrType::kInt, int64_t{0}, "key of the random stream of dropout"}};
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
