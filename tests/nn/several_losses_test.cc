// Several losses in one build(): detached values, losses that reach some optimizers only, scalers
// of their own, true gradients as values.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::kInf;

ir::Initializer Constant(double value) { return {ir::Initializer::Kind::kConstant, value, 0}; }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Detach, F47IsTheValueWithoutGradient) {
  FnGraph graph([](const Values& in) -> Values {
    const Value x = in[0];
    const Value y = sum(x * detach(x) + detach(x * x));
    return {y, gradients(y, {x})[0], gradients(sum(detach(x)), {x})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({2}, {2, 3})});
  EXPECT_EQ(out.at(0).item(), 2 * (4 + 9));
  EXPECT_THAT(out.at(1).ToVector(), ElementsAre(2, 3));
  EXPECT_THAT(out.at(2).ToVector(), ElementsAre(0, 0));
  EXPECT_THAT(graph.traced_text(), HasSubstr("detach(%in0)"));
  EXPECT_THAT(graph.compiled_text(), Not(HasSubstr("detach")));
}

TEST(Detach, F47OfIntegersAndInEvaluation) {
  FnGraph graph([](const Values& in) -> Values { return {detach(in[0])}; });
  graph.eval();
  EXPECT_THAT(Call1(graph, {I64({2}, {7, -1})}), ElementsAre(7, -1));
  EXPECT_THAT(graph.compiled_text(), Not(HasSubstr("detach")));
}

TEST(Detach, F47ThroughSecondDerivatives) {
  // y = x^3 with one factor held: dy/dx = 2 x c, d2y/dx2 = 2 c where c = x.
  FnGraph graph([](const Values& in) -> Values {
    const Value x = in[0];
    const Value dx = gradients(x * x * detach(x), {x})[0];
    return {dx, gradients(dx, {x})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({}, {3})});
  EXPECT_EQ(out.at(0).item(), 18);
  EXPECT_EQ(out.at(1).item(), 6);
}

// A generator g z and a discriminator sigmoid(d x), one weight each, with a scaler and an optimizer
// each, in one build().
class Gan : public FnGraph {
 public:
  struct Options {
    bool restricted = true;  // g_loss reaches the generator only
    double lr = 0.5;
  };
  explicit Gan(Options options)
      : FnGraph([this, options](const Values& in) -> Values {
          const Value fake = matmul(in[0], g);
          const Value d_loss =
              -log(sigmoid(matmul(in[1], d))) - log(1.0 - sigmoid(matmul(detach(fake), d)));
          const Value g_loss = -log(sigmoid(matmul(fake, d)));
          if (options.restricted) {
            d_loss.backward({.scaler = d_scaler, .optimizers = {d_optimizer}});
            g_loss.backward({.scaler = g_scaler, .optimizers = {g_optimizer}});
          } else {
            d_loss.backward({.scaler = d_scaler});
            g_loss.backward({.scaler = g_scaler});
          }
          return {d_loss, g_loss};
        }),
        g(Shape{1, 1}, Constant(0.5)),
        d(Shape{1, 1}, Constant(0.25)) {
    add_parameter("g", g);
    add_parameter("d", d);
    g_scaler = add_scaler(amp::GradScaler({.init_scale = 1024}));
    d_scaler = add_scaler(amp::GradScaler({.init_scale = 96}));
    g_optimizer = add_optimizer(optim::SGD({g.storage()}, {.lr = options.lr, .scaler = g_scaler}));
    d_optimizer = add_optimizer(optim::SGD({d.storage()}, {.lr = options.lr, .scaler = d_scaler}));
    to(Device::Reference());
  }
  std::vector<Tensor> Step(double z, double real) {
    return Call(*this, {F32({1, 1}, {z}), F32({1, 1}, {real})});
  }
  Parameter g, d;
  ScalerHandle g_scaler, d_scaler;
  OptimizerHandle g_optimizer, d_optimizer;
};

// The same in f64. Both gradients are taken before either step.
struct GanInF64 {
  double g = 0.5, d = 0.25;
  void Step(double z, double real, const Gan::Options& options) {
    const double fake = g * z;
    double dd = -(1 - Sigmoid(d * real)) * real + Sigmoid(d * fake) * fake;
    if (!options.restricted) dd -= (1 - Sigmoid(d * fake)) * fake;
    const double dg = -(1 - Sigmoid(d * fake)) * d * z;
    d -= options.lr * dd;
    g -= options.lr * dg;
  }
};

TEST(Gan, F47EachLossReachesItsOwnOptimizer) {
  for (const bool restricted : {true, false}) {
    SCOPED_TRACE(restricted);
    const Gan::Options options{.restricted = restricted};
    Gan gan(options);
    GanInF64 expected;
    const std::vector<Tensor> losses = gan.Step(1.5, 2);
    EXPECT_NEAR(losses.at(0).item(),
                -std::log(Sigmoid(0.25 * 2)) - std::log(1 - Sigmoid(0.25 * 0.75)), 1e-6);
    EXPECT_NEAR(losses.at(1).item(), -std::log(Sigmoid(0.25 * 0.75)), 1e-6);
    expected.Step(1.5, 2, options);
    EXPECT_NEAR(gan.g.value().item(), expected.g, 1e-6);
    EXPECT_NEAR(gan.d.value().item(), expected.d, 1e-6);
    for (const double z : {-1.0, 0.5, 2.0}) {
      gan.Step(z, 1 + z);
      expected.Step(z, 1 + z, options);
      EXPECT_NEAR(gan.g.value().item(), expected.g, 1e-5);
      EXPECT_NEAR(gan.d.value().item(), expected.d, 1e-5);
    }
    EXPECT_EQ(gan.g_optimizer.applied_steps(), 4);
    EXPECT_EQ(gan.d_optimizer.applied_steps(), 4);
  }
}

TEST(Gan, F47UnderMixedPrecision) {
  const Gan::Options options;
  Gan gan(options);
  gan.config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
  GanInF64 expected;
  gan.Step(1.5, 2);
  expected.Step(1.5, 2, options);
  EXPECT_NEAR(gan.g.value().item(), expected.g, 1e-3);
  EXPECT_NEAR(gan.d.value().item(), expected.d, 1e-3);
  EXPECT_THAT(gan.compiled_text(), HasSubstr("f16"));
}

TEST(Gan, F47ALossThatOverflowsStopsItsOwnOptimizerOnly) {
  Gan gan({});
  gan.Step(1.5, kInf);  // log(sigmoid(inf)) is 0, its gradient 0 * inf
  EXPECT_TRUE(gan.d_optimizer.last_step_skipped());
  EXPECT_FALSE(gan.g_optimizer.last_step_skipped());
  EXPECT_EQ(gan.d_scaler.scale(), 48);
  EXPECT_EQ(gan.g_scaler.scale(), 1024);
  EXPECT_EQ(gan.d.value().item(), 0.25);
  EXPECT_NE(gan.g.value().item(), 0.5);
}

TEST(Restricted, F47UnknownOptimizer) {
  Parameter w(Shape{}, Constant(1));
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = w * in[0];
    loss.backward({.optimizers = {"optimizer7"}});
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD({w.storage()}));
  const absl::Status status = CallStatus(graph, {F32({}, {1})});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("backward: this graph has no optimizer \"optimizer7\""));
}

TEST(Restricted, F47AnOptimizerThatNoLossReachesIsNoted) {
  Parameter a(Shape{}, Constant(1)), b(Shape{}, Constant(1));
  OptimizerHandle oa, ob;
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = a * in[0] + b * in[0];
    loss.backward({.optimizers = {oa}});
    return {loss};
  });
  graph.add_parameter("a", a);
  graph.add_parameter("b", b);
  oa = graph.add_optimizer(optim::SGD({a.storage()}, {.lr = 1}));
  ob = graph.add_optimizer(optim::SGD({b.storage()}, {.lr = 1}));
  Call(graph, {F32({}, {3})});
  EXPECT_EQ(a.value().item(), -2);
  EXPECT_EQ(b.value().item(), 1);
  EXPECT_EQ(ob.applied_steps(), 0);
  EXPECT_THAT(graph.notes(), Contains("optimizer1: no loss of this step reaches it"));
}

TEST(Restricted, F47LossesOfOneScalerAddUp) {
  // The first reaches both, the second only the first optimizer.
  Parameter a(Shape{}, Constant(1)), b(Shape{}, Constant(1));
  OptimizerHandle oa, ob;
  FnGraph graph([&](const Values& in) -> Values {
    const Value shared = a * in[0] + b * in[0], own = a * in[1] + b * in[1];
    shared.backward();
    own.backward({.optimizers = {oa}});
    return {shared};
  });
  graph.add_parameter("a", a);
  graph.add_parameter("b", b);
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 8}));
  oa = graph.add_optimizer(optim::SGD({a.storage()}, {.lr = 1}));
  ob = graph.add_optimizer(optim::SGD({b.storage()}, {.lr = 1}));
  Call(graph, {F32({}, {3}), F32({}, {5})});
  EXPECT_EQ(a.value().item(), 1 - 8);
  EXPECT_EQ(b.value().item(), 1 - 3);
}

// Parameters a, b, c of one optimizer. The first loss, a x0 + c x2, has scaler s0; the second,
// b x1 + c x3, has s1.
class TwoScales : public FnGraph {
 public:
  explicit TwoScales(amp::GradScalerOptions first, amp::GradScalerOptions second,
                     optim::SGDOptions sgd = {.lr = 1}, bool optimizer_names_one = true)
      : FnGraph([this](const Values& in) -> Values {
          const Value l0 = a * in[0] + c * in[2], l1 = b * in[1] + c * in[3];
          l0.backward({.scaler = s0});
          l1.backward({.scaler = s1});
          return {l0, l1};
        }),
        a(Shape{}, Constant(0)),
        b(Shape{}, Constant(0)),
        c(Shape{}, Constant(0)) {
    add_parameter("a", a);
    add_parameter("b", b);
    add_parameter("c", c);
    s0 = add_scaler(amp::GradScaler(first));
    s1 = add_scaler(amp::GradScaler(second));
    if (optimizer_names_one) sgd.scaler = s0;
    optimizer = add_optimizer(optim::SGD(parameters(), sgd));
  }
  void Step(double x0, double x1, double x2, double x3) {
    Call(*this, {F32({}, {x0}), F32({}, {x1}), F32({}, {x2}), F32({}, {x3})});
  }
  std::vector<double> Weights() const {
    return {a.value().item(), b.value().item(), c.value().item()};
  }
  Parameter a, b, c;
  ScalerHandle s0, s1;
  OptimizerHandle optimizer;
};

TEST(TwoScales, F39EachGradientIsUnscaledByItsOwnScale) {
  for (const bool named : {true, false}) {
    TwoScales graph({.init_scale = 1024}, {.init_scale = 3}, {.lr = 1}, named);
    graph.Step(2, 3, 5, 7);
    EXPECT_THAT(graph.Weights(), ElementsAre(-2, -3, -12));
    EXPECT_EQ(graph.optimizer.applied_steps(), 1);
    EXPECT_EQ(graph.s0.total_steps(), 1);
    EXPECT_EQ(graph.s1.total_steps(), 1);
  }
}

TEST(TwoScales, F39OneThatIsNotFiniteSkipsTheStepAndFallsAlone) {
  for (const int bad : {0, 1, 2, 3}) {
    TwoScales graph({.init_scale = 1024}, {.init_scale = 64});
    double x[] = {1, 1, 1, 1};
    x[bad] = kInf;
    graph.Step(x[0], x[1], x[2], x[3]);
    EXPECT_THAT(graph.Weights(), ElementsAre(0, 0, 0)) << bad;
    EXPECT_TRUE(graph.optimizer.last_step_skipped());
    const bool first = bad == 0 || bad == 2;
    EXPECT_EQ(graph.s0.scale(), first ? 512 : 1024);
    EXPECT_EQ(graph.s1.scale(), first ? 64 : 32);
    EXPECT_EQ(graph.s0.skipped_count(), first ? 1 : 0);
    EXPECT_EQ(graph.s1.skipped_count(), first ? 0 : 1);
    EXPECT_EQ(graph.first_nonfinite_param(), bad == 0 ? "a" : bad == 1 ? "b" : "c");
    graph.Step(1, 2, 3, 4);
    EXPECT_THAT(graph.Weights(), ElementsAre(-1, -2, -7));
  }
}

TEST(TwoScales, F39InfinitiesThatCancelSkipToo) {
  TwoScales graph({.init_scale = 4}, {.init_scale = 2});
  graph.Step(1, 1, kInf, -kInf);
  EXPECT_THAT(graph.Weights(), ElementsAre(0, 0, 0));
  EXPECT_EQ(graph.s0.scale(), 2);
  EXPECT_EQ(graph.s1.scale(), 1);
}

TEST(TwoScales, F39ASumThatOverflowsSkipsAndIsNoMatterOfTheScales) {
  TwoScales graph({.init_scale = 1}, {.init_scale = 0.5, .min_scale = 0.25});
  graph.Step(1, 1, 3e38, 3e38);
  EXPECT_THAT(graph.Weights(), ElementsAre(0, 0, 0));
  EXPECT_TRUE(graph.optimizer.last_step_skipped());
  EXPECT_EQ(graph.s0.scale(), 1);
  EXPECT_EQ(graph.s1.scale(), 0.5);
}

TEST(TwoScales, F39NormAndClippingSeeTrueGradients) {
  TwoScales graph({.init_scale = 1024}, {.init_scale = 8}, {.lr = 1, .clip_norm = 1});
  graph.Step(3, 4, 0, 0);
  EXPECT_NEAR(graph.optimizer.grad_norm(), 5, 1e-6);
  EXPECT_NEAR(graph.a.value().item(), -0.6, 1e-6);
  EXPECT_NEAR(graph.b.value().item(), -0.8, 1e-6);
}

TEST(TwoScales, F39StaticAndDisabledOnes) {
  TwoScales fixed({.init_scale = 1024}, {.init_scale = 64, .dynamic = false});
  fixed.Step(1, kInf, 1, 1);
  EXPECT_EQ(fixed.s1.scale(), 64);
  EXPECT_THAT(fixed.Weights(), ElementsAre(0, 0, 0));
  fixed.Step(2, 3, 5, 7);
  EXPECT_THAT(fixed.Weights(), ElementsAre(-2, -3, -12));

  TwoScales disabled({.init_scale = 1024}, {.enabled = false});
  disabled.Step(2, 3, 5, 7);
  EXPECT_THAT(disabled.Weights(), ElementsAre(-2, -3, -12));
  TwoScales both_disabled({.enabled = false}, {.enabled = false});
  both_disabled.Step(2, 3, 5, 7);
  EXPECT_THAT(both_disabled.Weights(), ElementsAre(-2, -3, -12));
}

TEST(TwoScales, F39OneParameterAndStateOfTheOptimizer) {
  // Momentum 0.5: the buffer holds true gradients.
  TwoScales graph({.init_scale = 256}, {.init_scale = 2}, {.lr = 1, .momentum = 0.5});
  graph.Step(0, 0, 1, 2);
  EXPECT_EQ(graph.c.value().item(), -3);
  graph.Step(0, 0, kInf, 2);
  EXPECT_EQ(graph.c.value().item(), -3);
  graph.Step(0, 0, 4, 8);
  EXPECT_EQ(graph.c.value().item(), -3 - (12 + 1.5));
}

// One group of the optimizer has its gradients from a scaled loss, the other from one that is not.
TEST(TwoScales, F39GroupsSkipTogether) {
  Parameter a(Shape{}, Constant(0)), b(Shape{}, Constant(0));
  ScalerHandle scaler;
  FnGraph graph([&](const Values& in) -> Values {
    (a * in[0]).backward({.scaler = scaler});
    (b * in[1]).backward();
    return {};
  });
  graph.add_parameter("a", a);
  graph.add_parameter("b", b);
  scaler = graph.add_scaler(amp::GradScaler({.init_scale = 8}));
  graph.add_optimizer(optim::SGD({{{a}, {}}, {{b}, {.lr = 2}}}, {.lr = 1}));
  Call(graph, {F32({}, {3}), F32({}, {5})});
  EXPECT_EQ(a.value().item(), -3);
  EXPECT_EQ(b.value().item(), -10);
  Call(graph, {F32({}, {kInf}), F32({}, {5})});
  EXPECT_EQ(a.value().item(), -3);
  EXPECT_EQ(b.value().item(), -10);
  EXPECT_EQ(scaler.scale(), 4);
}

// The mean of a product in f16, times a small factor: each gradient in w is factor / 64.
FnGraph::Fn SmallGradients(const Parameter& w, double factor) {
  return [&w, factor](const Values& in) -> Values {
    const Value h = matmul(in[0], w);
    const Value loss = mean(h) * factor;
    const Values dx = gradients(loss, {w, h});
    loss.backward();
    return {dx[0], dx[1]};
  };
}

class F16Gradients : public FnGraph {
 public:
  explicit F16Gradients(double factor) : w(Shape{64, 64}, Constant(1)) {
    fn = SmallGradients(w, factor);
    add_parameter("w", w);
    optimizer = add_optimizer(optim::SGD({w.storage()}, {.lr = 0}));
    config.enable_amp(true, {.dtype = DType::kF16});
    to(Device::Reference());
  }
  std::vector<Tensor> Step() { return Call(*this, {Tensor::Full(DType::kF32, {64, 64}, 1)}); }
  Parameter w;
  OptimizerHandle optimizer;
};

TEST(TrueGradients, F29SmallOnesSurviveF16) {
  F16Gradients power(0x1p-21);
  const std::vector<Tensor> exact = power.Step();
  EXPECT_EQ(exact.at(0).ToVector()[0], 0x1p-27);
  EXPECT_EQ(exact.at(1).ToVector()[0], 0x1p-33) << "of a value that is 16 bit: far below f16";
  EXPECT_EQ(exact.at(0).dtype(), DType::kF32);
  EXPECT_EQ(exact.at(1).dtype(), DType::kF32);

  F16Gradients decimal(64e-8);
  EXPECT_NEAR(decimal.Step().at(0).ToVector()[0], 1e-8, 1e-8 * 5e-3);
}

TEST(TrueGradients, F29AreUnscaledWhateverTheScale) {
  for (const double scale : {1024.0, 1000.0, 0x1p20}) {
    F16Gradients graph(0x1p-16);
    graph.set_grad_scaler(amp::GradScaler({.init_scale = scale}));
    EXPECT_NEAR(graph.Step().at(0).ToVector()[0], 0x1p-22, 0x1p-22 * 1e-2) << scale;
  }
  F16Gradients disabled(0x1p-21);
  disabled.set_grad_scaler(amp::GradScaler({.enabled = false}));
  EXPECT_EQ(disabled.Step().at(0).ToVector()[0], 0) << "nothing scales them";
}

TEST(TrueGradients, F29InEvaluation) {
  F16Gradients graph(0x1p-21);
  graph.set_grad_scaler(amp::GradScaler());
  graph.eval();
  EXPECT_EQ(graph.Step().at(0).ToVector()[0], 0x1p-27);
  EXPECT_EQ(graph.grad_scaler().total_steps(), 0);
}

TEST(TrueGradients, F29OneSweepServesLossAndGradients) {
  F16Gradients graph(1);
  graph.Step();
  const std::string text = graph.compiled_text();
  size_t products = 0;
  for (size_t at = text.find("matmul("); at != std::string::npos;
       at = text.find("matmul(", at + 1)) {
    ++products;
  }
  EXPECT_EQ(products, 1u) << "of the gradient in w; nothing reads the forward one";
}

TEST(TrueGradients, F29OfAValueThatTheUserMade16Bit) {
  for (const bool scaled : {false, true}) {
    FnGraph graph([](const Values& in) -> Values {
      const Value h = cast(in[0], DType::kF16);
      return {gradients(sum(cast(h, DType::kF32) * 3.0), {h})[0]};
    });
    if (scaled) graph.set_grad_scaler(amp::GradScaler({.init_scale = 16}));
    const std::vector<Tensor> out = Call(graph, {F32({2}, {1, 2})});
    EXPECT_EQ(out.at(0).dtype(), scaled ? DType::kF32 : DType::kF16);
    EXPECT_THAT(out.at(0).ToVector(), ElementsAre(3, 3));
  }
}

// 65536 times 3 is no f16, and without a step nothing lowers the scale.
TEST(TrueGradients, F29WithoutATrainingStepAnAutomaticScalerStaysOut) {
  FnGraph graph([](const Values& in) -> Values {
    const Value h = cast(in[0], DType::kF16);
    return {gradients(sum(cast(h, DType::kF32) * 3.0), {h})[0]};
  });
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  const std::vector<Tensor> out = Call(graph, {F32({2}, {1, 2})});
  EXPECT_THAT(out.at(0).ToVector(), ElementsAre(3, 3));
}

TEST(TrueGradients, F29InALoss) {
  // l = w^2 x, penalty (dl/dw)^2 = 4 w^2 x^2, whose derivative is 8 w x^2 = 72 at w = 1, x = 3.
  for (const bool scaled : {false, true}) {
    Parameter w(Shape{}, Constant(1));
    FnGraph graph([&](const Values& in) -> Values {
      const Value g = gradients(w * w * in[0], {w})[0];
      const Value penalty = g * g;
      penalty.backward();
      return {penalty};
    });
    graph.add_parameter("w", w);
    graph.add_optimizer(optim::SGD({w.storage()}, {.lr = 1}));
    if (scaled) graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
    EXPECT_THAT(Call1(graph, {F32({}, {3})}), ElementsAre(36));
    EXPECT_EQ(w.value().item(), 1 - 72);
  }
}

}  // namespace
}  // namespace halftone::nn
