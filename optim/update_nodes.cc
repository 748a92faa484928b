#include "halftone/optim/update_nodes.h"

#include <vector>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/optim/schedule_formula.h"
#include "halftone/optim/update_rule.h"

namespace halftone::optim {
namespace {

using ir::Expr;

struct NodeMath {
  using Number = Expr;
  static Expr Like(Expr like, double c) { return like.builder()->ScalarLike(like, c); }
  static Expr Minimum(Expr x, double c) { return Op("minimum", {x, Like(x, c)}); }
  static Expr Maximum(Expr x, double c) { return Op("maximum", {x, Like(x, c)}); }
  static Expr Floor(Expr x) { return Op("floor", {x}); }
  static Expr Cos(Expr x) { return Op("cos", {x}); }
  static Expr Log(Expr x) { return Op("log", {x}); }
  static Expr Pow(Expr x, Expr y) { return Op("pow", {x, y}); }

 private:
  static Expr Op(const char* op, const std::vector<Expr>& operands) {
    return operands[0].builder()->Op(op, operands);
  }
};

}  // namespace

ir::Variable StateVariable(const std::string& name, const ir::ValueType& type, double init,
                           ir::VariableKind kind) {
  ir::Variable variable;
  variable.name = name;
  variable.type = type;
  variable.kind = kind;
  variable.trainable = false;
  variable.init.a = init;
  return variable;
}

ir::Variable MicroBatches() {
  return StateVariable(kMicroBatchesVariable, {DType::kI64, {}}, 0, ir::VariableKind::kCounter);
}

Expr LearningRateNodes(const LRSchedule& schedule, Expr base_lr, Expr applied_steps) {
  if (schedule.constant()) return base_lr;
  ir::Builder& b = *base_lr.builder();
  Expr lr = b.Cast(base_lr, DType::kF64);
  Expr t = b.Cast(applied_steps, DType::kF64);
  const ScheduleFormula<NodeMath> formula(t);
  for (const LRSchedule::Term& term : schedule.terms()) lr = formula.Rate(term, lr);
  b.NameNext("lr_now");
  return b.Cast(lr, DType::kF32);
}

Expr InverseScaleNodes(Expr scale) {
  ir::Builder& b = *scale.builder();
  const Expr inverse = 1.0 / b.Cast(scale, DType::kF64);
  b.NameNext("inverse_scale");
  return b.Cast(inverse, DType::kF32);
}

Expr AccumulatedNode(const std::string& name, Expr sum, Expr gradient, Expr inverse_scale,
                     Expr count) {
  ir::Builder& b = *sum.builder();
  const Expr one = b.Scalar(DType::kF32, 1);
  const Expr apply = b.Scalar(DType::kBool, 1);
  b.NameNext(name);
  return b.Op(ops::kUpdateInfo<ops::GradientSumUpdate>.op,
              {sum, gradient, one, inverse_scale, one, apply, count});
}

Expr ClipCoefficientNodes(Expr norm, Expr finite, double max_norm) {
  ir::Builder& b = *norm.builder();
  Expr one = b.Scalar(DType::kF32, 1);
  Expr coefficient = b.Op("minimum", {max_norm / (norm + 1e-6), one});
  b.NameNext("clip");
  return b.Op("where", {finite, coefficient, one});
}

// max(min(rising, decay), min_decay) times min(s, 1), which is 0 up to where averaging begins.
Expr EmaWeightNodes(const Ema& ema, Expr update) {
  ir::Builder& b = *update.builder();
  const auto bounded = [&b](const char* op, Expr x, double bound) {
    return b.Op(op, {x, b.ScalarLike(x, bound)});
  };
  const Expr since =
      b.Cast(update, DType::kF64) - (1.0 + static_cast<double>(ema.update_after_step));
  const Expr s = bounded("maximum", since, 0);
  const Expr begun = bounded("minimum", s, 1);
  Expr decay = begun * ema.decay;
  if (ema.use_warmup) {
    const Expr grown = s / ema.warmup_gamma + 1.0;
    const Expr rising = 1.0 - b.Op("pow", {grown, b.ScalarLike(grown, -ema.warmup_power)});
    decay = bounded("maximum", bounded("minimum", rising, ema.decay), ema.min_decay) * begun;
  }
  const Expr weight = 1.0 - decay;
  b.NameNext("ema_weight");
  return b.Cast(weight, DType::kF32);
}

Expr EmaNode(const std::string& name, Expr average, Expr parameter, Expr weight, Expr apply,
             Expr update) {
  ir::Builder& b = *average.builder();
  const Expr one = b.Scalar(DType::kF32, 1);
  b.NameNext(name);
  return b.Op(ops::kUpdateInfo<ops::MovingAverageUpdate>.op,
              {average, parameter, weight, one, one, apply, update});
}

}  // namespace halftone::optim
