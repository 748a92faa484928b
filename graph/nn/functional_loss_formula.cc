// Losses that are formulas of other functions. What magnifies rounding, logarithms of probabilities
// and differences of what is nearly alike, is f32 in all of them, mixed precision or not.
#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {
namespace {

using internal::At;
using internal::CheckAlike;
using internal::CheckReduction;
using internal::Reduced;
using internal::Wide;

Value Weighted(const Value& each, const OptionalValue& weight, Loc loc) {
  return weight.has_value() ? mul({each, loc}, {weight.value(), loc}) : each;
}

}  // namespace

Value binary_cross_entropy(const Value& x, const Value& target, const OptionalValue& weight,
                           const std::string& reduction, Loc loc) {
  constexpr char kName[] = "binary_cross_entropy";
  if (!CheckReduction(kName, reduction, loc) || !CheckAlike(kName, "target", target, x, loc)) {
    return {};
  }
  const KeepFp32 the_logarithm_of_a_rounded_probability_is_another;
  const At at(loc);
  const Value p = Wide(x, loc), t = Wide(target, loc);
  constexpr double kLeast = -100;
  const auto bounded = [&](const Value& log) { return maximum(at(log), at(kLeast)); };
  const Value log_p = apply_where(
      not_equal(at(p), at(0.0)), p, [&](const Value& v) { return bounded(log(v, loc)); },
      at(kLeast), 1.0, loc);
  const Value log_q = apply_where(
      not_equal(at(p), at(1.0)), p,
      [&](const Value& v) { return bounded(log1p(neg(v, loc), loc)); }, at(kLeast), 0.0, loc);
  const Value other = at(1.0) - at(t);
  const Value each = neg(at(at(t) * at(log_p)) + at(at(other) * at(log_q)), loc);
  return Reduced(Weighted(each, weight, loc), reduction, loc);
}

// Both terms are positive, so that nothing cancels, and each keeps its digits however small.
Value binary_cross_entropy_with_logits(const Value& x, const Value& target,
                                       const OptionalValue& weight, const std::string& reduction,
                                       const OptionalValue& pos_weight, Loc loc) {
  constexpr char kName[] = "binary_cross_entropy_with_logits";
  if (!CheckReduction(kName, reduction, loc) || !CheckAlike(kName, "target", target, x, loc)) {
    return {};
  }
  const KeepFp32 a_small_loss_is_a_small_difference_from_1;
  const At at(loc);
  const Value logit = Wide(x, loc), t = Wide(target, loc), other = at(1.0) - at(t);
  const Value positive = Weighted(at(t) * at(softplus(neg(logit, loc), loc)), pos_weight, loc);
  const Value each = at(positive) + at(at(other) * at(softplus(logit, loc)));
  return Reduced(Weighted(each, weight, loc), reduction, loc);
}

Value nll_loss(const Value& x, const Value& target, const OptionalValue& weight,
               int64_t ignore_index, const std::string& reduction, Loc loc) {
  if (!CheckReduction("nll_loss", reduction, loc)) return {};
  if (!x.valid() || !target.valid()) return Op("neg", {x.valid() ? target : x}, {}, loc);
  if (x.rank() == 0 || !IsFloat(x.dtype())) {
    return Fail(loc, InvalidArgument("nll_loss: x is ", Name(x.dtype()), x.shape(),
                                     "; expected a floating-point value of axes [N,C,..] or [C]"));
  }
  const int axis = x.rank() == 1 ? 0 : 1;
  const int64_t classes = x.shape()[axis];
  std::vector<int64_t> rest(x.shape().dims().begin(), x.shape().dims().end());
  rest.erase(rest.begin() + axis);
  if (!ir::kIndices.Contains(target.dtype()) || target.shape() != Shape(rest)) {
    return Fail(loc, InvalidArgument("nll_loss: target is ", Name(target.dtype()), target.shape(),
                                     "; expected i64 or i32 of shape ", Shape(rest)));
  }
  if (weight.has_value() && weight.value().valid() && weight.value().shape() != Shape{classes}) {
    return Fail(loc, InvalidArgument("nll_loss: weight is ", Name(weight.value().dtype()),
                                     weight.value().shape(), "; expected one value for each of ",
                                     classes, " classes"));
  }
  const KeepFp32 a_loss_needs_the_digits_of_f32;
  const At at(loc);
  const Value wide = Wide(x, loc);
  const Value counts = not_equal(at(target), at(static_cast<double>(ignore_index)));
  const Value index = where(counts, at(target), at(0.0), loc);
  // Gathering the weights, be they all 1, finds targets that are no class.
  const Value weights = weight.has_value()
                            ? Wide(weight.value(), loc)
                            : constant(Tensor::Full(wide.dtype(), {classes}, 1), loc);
  const Value w = where(counts, at(gather(weights, index, 0, loc)), at(0.0), loc);
  const Value all = internal::Counting(classes, x.rank() - axis, loc);
  const Value chosen = equal(at(unsqueeze(index, axis, loc)), at(all));
  const Value picked = sum(where(chosen, at(wide), at(0.0), loc), {axis}, false, loc);
  const Value each = where(counts, at(neg(at(picked) * at(w), loc)), at(0.0), loc);
  if (reduction != "mean") return Reduced(each, reduction, loc);
  return at(sum(each, {}, false, loc)) / at(sum(w, {}, false, loc));
}

Value kl_div(const Value& x, const Value& target, const std::string& reduction, bool log_target,
             Loc loc) {
  constexpr char kName[] = "kl_div";
  if (!CheckReduction(kName, reduction, loc, "batchmean") ||
      !CheckAlike(kName, "target", target, x, loc)) {
    return {};
  }
  const KeepFp32 a_divergence_is_a_difference_of_logarithms;
  const At at(loc);
  const Value log_q = Wide(x, loc), t = Wide(target, loc);
  const auto logarithm = [loc](const Value& v) { return log(v, loc); };
  const Value p = log_target ? exp(t, loc) : t;
  const Value log_p =
      log_target ? t : apply_where(not_equal(at(t), at(0.0)), t, logarithm, at(0.0), 1.0, loc);
  const Value each = at(p) * at(at(log_p) - at(log_q));
  if (reduction != "batchmean") return Reduced(each, reduction, loc);
  const int64_t batch = x.rank() == 0 ? 1 : x.shape()[0];
  return at(sum(each, {}, false, loc)) / at(static_cast<double>(batch));
}

Value smooth_l1_loss(const Value& x, const Value& target, const std::string& reduction, double beta,
                     Loc loc) {
  if (!(beta >= 0)) {
    return Fail(loc, InvalidArgument("smooth_l1_loss: beta is ", beta, "; expected at least 0"));
  }
  if (!CheckReduction("smooth_l1_loss", reduction, loc) ||
      !CheckAlike("smooth_l1_loss", "target", target, x, loc)) {
    return {};
  }
  if (beta == 0) return l1_loss(x, target, reduction, loc);
  const KeepFp32 a_difference_of_rounded_values_is_mostly_rounding;
  const At at(loc);
  const Value d = abs(at(Wide(x, loc)) - at(Wide(target, loc)), loc);
  const Value near = at(square(d, loc)) * at(0.5 / beta), far = at(d) - at(0.5 * beta);
  return Reduced(where(less(at(d), at(beta)), at(near), at(far), loc), reduction, loc);
}

Value huber_loss(const Value& x, const Value& target, const std::string& reduction, double delta,
                 Loc loc) {
  if (!(delta > 0)) {
    return Fail(loc, InvalidArgument("huber_loss: delta is ", delta, "; expected above 0"));
  }
  if (!CheckReduction("huber_loss", reduction, loc) ||
      !CheckAlike("huber_loss", "target", target, x, loc)) {
    return {};
  }
  const KeepFp32 a_difference_of_rounded_values_is_mostly_rounding;
  const At at(loc);
  const Value d = abs(at(Wide(x, loc)) - at(Wide(target, loc)), loc);
  const Value near = at(square(d, loc)) * at(0.5);
  const Value far = at(at(d) - at(0.5 * delta)) * at(delta);
  return Reduced(where(less(at(d), at(delta)), at(near), at(far), loc), reduction, loc);
}

Value hinge_embedding_loss(const Value& x, const Value& target, double margin,
                           const std::string& reduction, Loc loc) {
  constexpr char kName[] = "hinge_embedding_loss";
  if (!CheckReduction(kName, reduction, loc) || !CheckAlike(kName, "target", target, x, loc)) {
    return {};
  }
  const KeepFp32 a_distance_from_a_margin_is_a_small_difference;
  const At at(loc);
  const Value distance = Wide(x, loc), apart = relu(at(margin) - at(distance), loc);
  const Value unlike = where(not_equal(at(target), at(1.0)), at(apart), at(0.0), loc);
  const Value like = where(not_equal(at(target), at(-1.0)), at(distance), at(0.0), loc);
  return Reduced(at(like) + at(unlike), reduction, loc);
}

}  // namespace halftone::nn
