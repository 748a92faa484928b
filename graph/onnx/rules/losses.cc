// Classification losses.
#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

// -weight[target] scores[target] with scores [N, C, d...] and targets [N, d...]; ignored targets
// weigh nothing. "mean" divides by the sum of the weights.
Expr PickedLoss(NodeImport& n, Expr scores, Expr target, Expr weight) {
  const std::string reduction = n.String("reduction", "mean");
  const bool ignores = n.has_attr("ignore_index");
  const auto ignored = static_cast<double>(n.Int("ignore_index", 0));
  if (!n.ok()) return {};
  const Ints rows = ExtentsOf(target);
  Ints picks = rows;
  picks.insert(picks.begin() + 1, 1);
  Expr keep;
  if (ignores) {
    keep = ops::NotEqual(target, n.b.ScalarLike(target, ignored));
    target = ops::Where(keep, target, n.b.ScalarLike(target, 0));
  }
  const Expr index = Reshape(target, picks);
  const Expr picked = n.b.Op("take_along_dim", {scores, index}, {{"axis", int64_t{1}}});
  Expr loss = -Reshape(picked, rows);
  Expr weights;
  if (weight.valid()) {
    weights = n.b.Op("gather", {weight, target}, {{"axis", int64_t{0}}});
  } else if (ignores || reduction == "mean") {
    weights = Broadcast(n.b.Scalar(DTypeOf(scores), 1), rows);
  }
  if (!n.ok()) return {};
  if (ignores) weights = ops::Where(keep, weights, n.b.ScalarLike(weights, 0));
  if (weights.valid()) loss = loss * weights;
  if (reduction == "none") return loss;
  const Ints all = Range(0, static_cast<int64_t>(rows.size()));
  const Expr sum = Reduce("sum", loss, all, false);
  if (reduction == "sum") return sum;
  if (reduction != "mean") n.Fail("reduction ", reduction, " is not covered");
  return sum / Reduce("sum", weights, all, false);
}

// [N, C] and [N], or more axes behind on both.
bool ScoresFit(NodeImport& n) {
  const Ints scores = n.shape(0), target = n.shape(1);
  if (n.ok() && (target.empty() || scores.size() != target.size() + 1)) {
    n.Fail("targets do not fit the scores");
  }
  return n.ok();
}

Exprs ImportNll(NodeImport& n) {
  if (!ScoresFit(n)) return {};
  return {PickedLoss(n, n.in(0), n.in(1), n.has(2) ? n.in(2) : Expr())};
}

Exprs ImportCrossEntropy(NodeImport& n) {
  if (!ScoresFit(n)) return {};
  const bool plain = !n.has(2) && n.num_outputs() < 2 && IsFloat(n.dtype(0)) && !IsLow(n.dtype(0));
  if (plain) {
    return {n.Result("cross_entropy", {n.in(0), n.in(1)},
                     {{"reduction", n.String("reduction", "mean")},
                      {"ignore_index", n.Int("ignore_index", -100)}})};
  }
  const Expr scores = n.b.Op("log_softmax", {n.in(0)}, {{"axis", int64_t{1}}});
  return {PickedLoss(n, scores, n.in(1), n.has(2) ? n.in(2) : Expr()), scores};
}

void ExportCrossEntropy(NodeExport& n) {
  if (n.attrs().GetFloat("label_smoothing") != 0) n.Fail("label smoothing has no counterpart");
  const int64_t axis = n.attrs().GetInt("axis");
  const int rank = n.shape(0).rank();
  if (rank < 2 || (axis != 1 && axis != 1 - rank)) n.Fail("classes along another axis than 1");
  const DType loss = n.node.output_type().dtype;
  n.Give("SoftmaxCrossEntropyLoss", {n.InAs(0, loss), n.in(1)},
         {{"reduction", n.attrs().GetString("reduction")},
          {"ignore_index", n.attrs().GetInt("ignore_index")}});
}

}  // namespace

void AddLossRules(Rules& rules) {
  rules.Import("NegativeLogLikelihoodLoss", "take_along_dim, gather, sum, ...", ImportNll);
  rules.Import("SoftmaxCrossEntropyLoss", "cross_entropy, or log_softmax and the above",
               ImportCrossEntropy);
  rules.Export("cross_entropy", "SoftmaxCrossEntropyLoss", ExportCrossEntropy);
}

}  // namespace halftone::onnx
