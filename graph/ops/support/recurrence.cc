#include "halftone/graph/ops/support/recurrence.h"

namespace halftone::ops {

using ir::Expr;
using ir::InferContext;

absl::StatusOr<RecurrenceSize> CheckRecurrence(const InferContext& ctx, const char* name,
                                               int64_t count) {
  HT_RETURN_IF_ERROR(CheckRank(ctx, 0, name, 3, 3));
  const ir::ValueType &x = ctx.inputs[0], &w = ctx.inputs[1];
  if (x.shape[0] < 1) {
    return OpError(ctx, name, " is ", x.ToString(), "; expected at least one step");
  }
  if (x.shape[2] < 1 || x.shape[2] % count != 0) {
    return OpError(ctx, name, " is ", x.ToString(), "; expected last extent ", count,
                   " H, with H at least 1");
  }
  HT_RETURN_IF_ERROR(CheckRank(ctx, 1, "w", 2, 2));
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, 1, "w", 0, name));
  if (w.shape[0] != x.shape[2] || w.shape[1] < 1) {
    return OpError(ctx, "w is ", w.ToString(), "; expected ", x.shape[2], " rows, as ", name, " ",
                   x.ToString(), " has columns");
  }
  return RecurrenceSize{x.shape[0], x.shape[1], x.shape[2] / count, w.shape[1]};
}

Expr PreviousStates(Expr h0, Expr h, bool reverse) {
  const Shape& s = h.shape();
  const Expr first = ReshapeTo(h0, Shape{1, s[1], s[2]});
  if (s[0] == 1) return first;
  const int64_t skip = reverse ? 1 : 0;
  const Expr others = h.builder()->Op("slice", {h},
                                      {{"starts", Ints{skip, 0, 0}},
                                       {"limits", Ints{s[0] - 1 + skip, s[1], s[2]}},
                                       {"strides", Ints{1, 1, 1}}});
  const std::vector<Expr> parts = {reverse ? others : first, reverse ? first : others};
  return h.builder()->Op("concat", parts, {{"axis", int64_t{0}}});
}

Expr StepsAsRows(Expr x) {
  const Shape& s = x.shape();
  return ReshapeTo(x, Shape{s[0] * s[1], s[2]});
}

Expr WeightGradient(Expr dy, Expr x) {
  return dy.builder()->Op("matmul", {StepsAsRows(dy), StepsAsRows(x)}, {{"transpose_a", true}});
}

Expr LastAxisSlice(Expr x, int64_t from, int64_t to) {
  const int rank = x.shape().rank();
  Ints starts(rank, 0), limits = ToInts(x.shape());
  starts.back() = from;
  limits.back() = to;
  return x.builder()->Op("slice", {x},
                         {{"starts", starts}, {"limits", limits}, {"strides", Ints(rank, 1)}});
}

std::vector<std::string> RecurrenceGradientOps(std::vector<std::string> more) {
  more.insert(more.end(), {"reshape", "slice", "concat", "matmul"});
  return more;
}

ir::OpRecord RecurrenceRecord(const char* name, const char* source) {
  ir::OpRecord r;
  r.name = name;
  r.source = source;
  r.attrs = {Optional("reverse", false, "from the last step to the first"), Tf32Attr()};
  r.amp.f16 = r.amp.bf16 = ir::AmpClass::kAllow;
  r.amp.accumulates_in_f32 = true;
  return r;
}

ir::Cost RecurrenceCost(const ir::Node& node, int64_t weights) {
  constexpr double kOfEachGate = 8;
  const ir::ValueType& gates = node.input_type(0);
  const double rows = static_cast<double>(gates.shape[0]) * static_cast<double>(gates.shape[1]);
  return {2 * rows * static_cast<double>(weights) +
              kOfEachGate * static_cast<double>(gates.num_elements()),
          IoBytes(node)};
}

}  // namespace halftone::ops
