#include "halftone/optim/update_nodes.h"

#include <numbers>

namespace halftone::optim {
namespace {

using ir::Expr;

Expr Minimum(Expr a, double b) {
  return a.builder()->Op("minimum", {a, a.builder()->ScalarLike(a, b)});
}

}  // namespace

Expr LearningRateNodes(const LRSchedule& schedule, Expr base_lr, Expr applied_steps) {
  if (schedule.constant()) return base_lr;
  ir::Builder& b = *base_lr.builder();
  Expr lr = b.Cast(base_lr, DType::kF64);
  Expr t = b.Cast(applied_steps, DType::kF64);
  for (const LRSchedule::Term& term : schedule.terms()) {
    const double n = static_cast<double>(term.steps);
    switch (term.kind) {
      case LRSchedule::Kind::kStep:
        lr = lr * b.Op("pow", {b.Scalar(DType::kF64, term.value), b.Op("floor", {t / n})});
        break;
      case LRSchedule::Kind::kCosine: {
        Expr angle = std::numbers::pi * Minimum(t, n) / n;
        lr = (lr - term.value) * (1.0 + b.Op("cos", {angle})) * 0.5 + term.value;
        break;
      }
      case LRSchedule::Kind::kWarmup:
        lr = lr * ((Minimum(t, n) / n) * (1 - term.value) + term.value);
        break;
    }
  }
  b.NameNext("lr_now");
  return b.Cast(lr, DType::kF32);
}

Expr InverseScaleNodes(Expr scale) {
  ir::Builder& b = *scale.builder();
  const Expr inverse = 1.0 / b.Cast(scale, DType::kF64);
  b.NameNext("inverse_scale");
  return b.Cast(inverse, DType::kF32);
}

Expr ClipCoefficientNodes(Expr norm, Expr finite, double max_norm) {
  ir::Builder& b = *norm.builder();
  Expr one = b.Scalar(DType::kF32, 1);
  Expr coefficient = b.Op("minimum", {max_norm / (norm + 1e-6), one});
  b.NameNext("clip");
  return b.Op("where", {finite, coefficient, one});
}

}  // namespace halftone::optim
