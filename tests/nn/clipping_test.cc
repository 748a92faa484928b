// Clipping by norm and by value, over groups and over optimizers, and steps that are not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointwise;

using testing::kInf;

Parameter Filled(double value) {
  return Parameter(Shape{1}, {ir::Initializer::Kind::kConstant, value, 0});
}

// Two parameters whose gradients are the inputs.
struct TwoParameters {
  explicit TwoParameters(double start = 0) : w(Filled(start)), b(Filled(start)) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]) + sum(b * in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_parameter("w", w);
    graph.add_parameter("b", b);
  }
  void Step(double grad_w, double grad_b) { Call(graph, {F32({1}, {grad_w}), F32({1}, {grad_b})}); }
  std::vector<double> Both() const { return {w.value().item(), b.value().item()}; }

  Parameter w, b;
  FnGraph graph;
};

::testing::Matcher<std::vector<double>> Near(const std::vector<double>& expected) {
  return Pointwise(::testing::DoubleNear(1e-6), expected);
}

struct OneNorm {
  double start;
  bool scaler, two_optimizers;
  std::vector<double> expected;
};

class F01OneNormOverAll : public ::testing::TestWithParam<OneNorm> {};

// Gradients 3 and 4, norm 5, clipped to 1: 0.6 and 0.8. W has decay 0.1.
TEST_P(F01OneNormOverAll, OfGroupsAndOfOptimizers) {
  TwoParameters t(GetParam().start);
  if (GetParam().scaler) t.graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  OptimizerHandle first;
  if (GetParam().two_optimizers) {
    first = t.graph.add_optimizer(optim::SGD({t.w}, {.lr = 1, .weight_decay = 0.1}));
    t.graph.add_optimizer(optim::SGD({t.b}, {.lr = 1}));
    t.graph.config.clip_grad_norm = 1;
  } else {
    first = t.graph.add_optimizer(
        optim::SGD({{{t.w}, {.weight_decay = 0.1}}, {{t.b}, {}}}, {.lr = 1, .clip_norm = 1}));
    t.graph.config.track_grad_norm = true;
  }
  t.Step(3, 4);
  EXPECT_THAT(t.Both(), Near(GetParam().expected));
  EXPECT_EQ(first.grad_norm(), GetParam().two_optimizers ? 3 : 5);
  EXPECT_EQ(t.graph.grad_norm(), 5);
}

INSTANTIATE_TEST_SUITE_P(
    Found, F01OneNormOverAll,
    ::testing::Values(OneNorm{0, false, false, {-0.6, -0.8}}, OneNorm{1, false, false, {0.3, 0.2}},
                      OneNorm{0, true, false, {-0.6, -0.8}}, OneNorm{1, true, false, {0.3, 0.2}},
                      OneNorm{0, false, true, {-0.6, -0.8}}, OneNorm{1, false, true, {0.3, 0.2}},
                      OneNorm{0, true, true, {-0.6, -0.8}}, OneNorm{1, true, true, {0.3, 0.2}}));

// Each is unscaled by its own scale before the norms meet.
TEST(ClipGradNorm, OverOptimizersOfTwoScalers) {
  Parameter w = Filled(0), b = Filled(0);
  FnGraph graph;
  const ScalerHandle s0 = graph.add_scaler(amp::GradScaler({.init_scale = 4}));
  const ScalerHandle s1 = graph.add_scaler(amp::GradScaler({.init_scale = 1024}));
  graph.fn = [&](const Values& in) -> Values {
    sum(w * in[0]).backward({.scaler = s0});
    sum(b * in[1]).backward({.scaler = s1});
    return {};
  };
  graph.add_parameter("w", w);
  graph.add_parameter("b", b);
  OptimizerHandle first = graph.add_optimizer(optim::SGD({w}, {.lr = 1, .scaler = s0}));
  graph.add_optimizer(optim::SGD({b}, {.lr = 1, .scaler = s1}));
  graph.config.clip_grad_norm = 1;
  Call(graph, {F32({1}, {3}), F32({1}, {4})});
  EXPECT_THAT(std::vector<double>({w.value().item(), b.value().item()}), Near({-0.6, -0.8}));
  // The first skips: the norm is that of the second alone.
  Call(graph, {F32({1}, {kInf}), F32({1}, {4})});
  EXPECT_TRUE(first.last_step_skipped());
  EXPECT_THAT(std::vector<double>({w.value().item(), b.value().item()}), Near({-0.6, -1.8}));
  EXPECT_EQ(graph.grad_norm(), kInf);
}

TEST(ClipGradNorm, OneOptimizerThatSkipsDoesNotCountUnderOneScaler) {
  for (const optim::SkipPolicy skip : {optim::SkipPolicy::kOwn, optim::SkipPolicy::kAny}) {
    TwoParameters t;
    t.graph.set_grad_scaler(amp::GradScaler({.init_scale = 8}));
    t.graph.add_optimizer(optim::SGD({t.w}, {.lr = 1, .skip = skip}));
    OptimizerHandle second = t.graph.add_optimizer(optim::SGD({t.b}, {.lr = 1, .skip = skip}));
    t.graph.config.clip_grad_norm = 1;
    t.Step(std::nan(""), 4);
    const bool own = skip == optim::SkipPolicy::kOwn;
    EXPECT_THAT(t.Both(), Near({0, own ? -1.0 : 0.0}));
    EXPECT_EQ(second.last_step_skipped(), !own);
  }
}

TEST(ClipGradNorm, MistakesInTheConfiguration) {
  for (const double norm : {-1.0, 1e39, std::nan("")}) {
    TwoParameters t;
    t.graph.add_optimizer(optim::SGD({t.w, t.b}));
    const int line = __LINE__ - 1;
    t.graph.config.clip_grad_norm = norm;
    const absl::Status status = CallStatus(t.graph, {F32({1}, {1}), F32({1}, {1})});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), At(line) + Concat("config.clip_grad_norm = ", norm,
                                                 "; expected a number >= 0 that is finite in f32 "
                                                 "(0: off)"));
  }
  TwoParameters t;
  t.graph.add_optimizer(optim::SGD({t.w, t.b}, {.clip_norm = 2}));
  t.graph.config.clip_grad_norm = 1;
  EXPECT_EQ(Message(CallStatus(t.graph, {F32({1}, {1}), F32({1}, {1})})),
            At(__LINE__ - 3) +
                "optimizer0: clip_norm = 2 beside config.clip_grad_norm = 1; expected "
                "one of the two");
}

// Unscaled first, NaN stays NaN, and each group has its own bound.
TEST(ClipValue, WithAndWithoutScaler) {
  for (const bool scaler : {false, true}) {
    TwoParameters t;
    if (scaler) t.graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
    t.graph.add_optimizer(
        optim::SGD({{{t.w}, {.clip_value = 0.5}}, {{t.b}, {}}}, {.lr = 1, .clip_value = 2}));
    t.Step(3, -4);
    EXPECT_THAT(t.Both(), ElementsAre(-0.5, 2));
    t.Step(-0.25, 1);
    EXPECT_THAT(t.Both(), ElementsAre(-0.25, 1));
    t.Step(-kInf, 1);
    // A scaler skips it; without one it is clipped like any large number.
    EXPECT_THAT(t.Both(), scaler ? ElementsAre(-0.25, 1) : ElementsAre(0.25, 0));
  }
  TwoParameters t;
  t.graph.add_optimizer(optim::SGD({t.w, t.b}, {.lr = 1, .clip_value = 0.5}));
  t.Step(std::nan(""), 1);
  EXPECT_TRUE(std::isnan(t.w.value().item()));
  EXPECT_EQ(t.b.value().item(), -0.5);
}

// The norm comes first, so both bounds hold: 3 and 4 become 0.6 and 0.8, then 0.6 and 0.7.
TEST(ClipValue, AfterTheNorm) {
  TwoParameters t;
  t.graph.add_optimizer(optim::SGD({t.w, t.b}, {.lr = 1, .clip_norm = 1, .clip_value = 0.7}));
  t.Step(3, 4);
  EXPECT_THAT(t.Both(), Near({-0.6, -0.7}));
}

// Adam's averages see the clipped gradient: exp_avg = (1 - 0.5) * 2, exp_avg_sq = (1 - 0.75) * 4.
TEST(ClipValue, OfAdam) {
  TwoParameters t;
  t.graph.add_optimizer(optim::Adam({t.w, t.b}, {.betas = {0.5, 0.75}, .clip_value = 2}));
  t.Step(9, 1);
  const StateDict state = *t.graph.state_dict();
  EXPECT_EQ(state.at("optimizer0.w.exp_avg").item(), 1);
  EXPECT_EQ(state.at("optimizer0.w.exp_avg_sq").item(), 1);
  EXPECT_EQ(state.at("optimizer0.b.exp_avg").item(), 0.5);
}

// Without a scaler nothing skips: what is finite is applied unclipped, the rest is lost.
TEST(NonFiniteNorm, F37AppliesUnclippedWithoutScaler) {
  TwoParameters t;
  OptimizerHandle optimizer =
      t.graph.add_optimizer(optim::SGD({t.w, t.b}, {.lr = 1, .clip_norm = 1}));
  t.Step(kInf, 4);
  EXPECT_EQ(optimizer.grad_norm(), kInf);
  EXPECT_FALSE(optimizer.last_step_skipped());
  EXPECT_THAT(t.Both(), ElementsAre(-kInf, -4));
}

TEST(NonFiniteNorm, F37IsSkippedOnRequest) {
  for (const double bad : {kInf, std::nan("")}) {
    TwoParameters t;
    OptimizerHandle optimizer = t.graph.add_optimizer(
        optim::Adam({{{t.b}, {}}, {{t.w}, {.lr = 0.5}}},
                    {.lr_schedule = optim::StepLR(1), .clip_norm = 1, .skip_nonfinite = true}));
    t.Step(3, 4);
    const StateDict before = *t.graph.state_dict();
    t.Step(bad, 4);
    EXPECT_TRUE(optimizer.last_step_skipped());
    EXPECT_EQ(optimizer.applied_steps(), 1);
    EXPECT_EQ(t.graph.first_nonfinite_param(), "w");
    const StateDict after = *t.graph.state_dict();
    for (const auto& [name, value] : after) {
      if (name == "run_count" || name == "optimizer0.first_nonfinite") continue;
      EXPECT_EQ(value.ToVector(), before.at(name).ToVector()) << name;
    }
    t.Step(3, 4);
    EXPECT_FALSE(optimizer.last_step_skipped());
    EXPECT_EQ(optimizer.applied_steps(), 2);
    EXPECT_EQ(t.graph.first_nonfinite_param(), "");
  }
}

// Statistics of norms stay too, unless the configuration lets them move.
TEST(NonFiniteNorm, F37BuffersStayInASkippedStep) {
  for (const bool move : {false, true}) {
    BatchNorm2d norm(1);
    Parameter w = Filled(1);
    FnGraph graph([&](const Values& in) -> Values {
      const Value loss = sum(norm(in[0])) + sum(w * in[1]);
      loss.backward();
      return {loss};
    });
    graph.add_module("norm", norm);
    graph.add_parameter("w", w);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1, .skip_nonfinite = true}));
    graph.config.update_buffers_on_skip = move;
    Call(graph, {F32({2, 1, 1, 1}, {10, 20}), F32({1}, {kInf})});
    // 0.9 * 0 + 0.1 * 15.
    EXPECT_NEAR(graph.state_dict()->at("norm.running_mean").item(), move ? 1.5 : 0, 1e-6);
    EXPECT_EQ(w.value().item(), 1);
  }
}

// A disabled scaler is none: the option still holds.
TEST(NonFiniteNorm, F37IsSkippedBesideADisabledScaler) {
  TwoParameters t;
  t.graph.set_grad_scaler(amp::GradScaler({.enabled = false}));
  OptimizerHandle optimizer =
      t.graph.add_optimizer(optim::SGD({t.w, t.b}, {.lr = 1, .skip_nonfinite = true}));
  t.Step(kInf, 4);
  EXPECT_TRUE(optimizer.last_step_skipped());
  EXPECT_THAT(t.Both(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace halftone::nn
