// Grad scalers of graphs: limits of the scale, the automatic scaler, which gradient was not finite.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using testing::kInf;

// A parameter w of one element, 1 at first, with the loss sum(w * in[0]): its gradient is in[0].
class Probe : public FnGraph {
 public:
  explicit Probe(std::optional<amp::GradScalerOptions> options = {}, optim::SGDOptions sgd = {})
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(w * in[0]);
          loss.backward();
          return {loss};
        }),
        w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("w", w);
    optimizer = add_optimizer(optim::SGD({w.storage()}, sgd));
    if (options.has_value()) scaler = set_grad_scaler(amp::GradScaler(*options));
  }
  void Step(double gradient) { Call(*this, {F32({1}, {gradient})}); }

  Parameter w;
  OptimizerHandle optimizer;
  ScalerHandle scaler;
};

TEST(ScaleLimits, F31AFloorNeverRaisesTheScale) {
  const float low = 0.001f;
  Probe initial({{.init_scale = 0.001, .min_scale = 1}});
  Probe set({{.min_scale = 1}});
  ASSERT_TRUE(set.scaler.set_scale(0.001).ok());
  Probe loaded({{.min_scale = 1}});
  amp::StateDict state = *loaded.scaler.state_dict();
  state["scale"] = low;
  ASSERT_TRUE(loaded.scaler.load_state_dict(state).ok());
  Probe loaded_whole({{.min_scale = 1}});
  StateDict whole = *loaded_whole.state_dict();
  whole["scaler0.scale"] = F32({}, {low});
  ASSERT_TRUE(loaded_whole.load_state_dict(whole).ok());
  for (Probe* probe : {&initial, &set, &loaded, &loaded_whole}) {
    for (int step = 0; step < 3; ++step) {
      probe->Step(kInf);
      EXPECT_EQ(probe->scaler.scale(), low);
      EXPECT_TRUE(probe->last_step_skipped());
    }
    probe->Step(1);
    EXPECT_FALSE(probe->last_step_skipped());
    EXPECT_NEAR(probe->w.value().item(), 1 - 1e-3, 1e-6) << "unscaled by 1 / 0.001";
  }
}

TEST(ScaleLimits, F31BackingOffStopsAtTheFloor) {
  Probe probe({{.init_scale = 3, .min_scale = 1}});
  for (const double expected : {1.5, 1.0, 1.0}) {
    probe.Step(kInf);
    EXPECT_EQ(probe.scaler.scale(), expected);
  }
}

TEST(ScaleLimits, F31GrowthLeadsBackOverTheFloor) {
  Probe probe({{.init_scale = 0.25, .growth_interval = 1, .min_scale = 1}});
  for (const double expected : {0.5, 1.0, 2.0}) {
    probe.Step(1);
    EXPECT_EQ(probe.scaler.scale(), expected);
  }
  for (const double expected : {1.0, 1.0}) {
    probe.Step(kInf);
    EXPECT_EQ(probe.scaler.scale(), expected);
  }
}

TEST(ScaleLimits, F31AScaleBeyondTheCeilingStays) {
  Probe probe({{.init_scale = 1024, .growth_interval = 1, .max_scale = 64}});
  probe.Step(1);
  EXPECT_EQ(probe.scaler.scale(), 1024);
  probe.Step(kInf);
  EXPECT_EQ(probe.scaler.scale(), 512);
}

TEST(ScaleLimits, F31HysteresisBelowTheFloor) {
  Probe probe({{.init_scale = 0.5, .min_scale = 1, .hysteresis = 2}});
  for (int step = 0; step < 4; ++step) {
    probe.Step(kInf);
    EXPECT_EQ(probe.scaler.scale(), 0.5);
  }
}

// Two parameters, of which the second gets what the call gives.
class TwoScaled : public FnGraph {
 public:
  explicit TwoScaled(optim::SGDOptions options = {})
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(a * 2.0) + sum(b * in[0]);
          loss.backward();
          return {loss};
        }),
        a(Shape{2}, {ir::Initializer::Kind::kConstant, 1, 0}),
        b(Shape{2}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("a", a);
    add_parameter("b", b);
    add_optimizer(optim::SGD(parameters(), options));
  }
  Parameter a, b;
};

TEST(SetScalerOptions, AreSetBetweenSteps) {
  Probe probe({{.init_scale = 64, .growth_interval = 5}});
  probe.Step(1);
  probe.Step(1);
  ASSERT_TRUE(probe.scaler.set_growth_interval(3).ok());
  ASSERT_TRUE(probe.scaler.set_growth_factor(4).ok());
  ASSERT_TRUE(probe.scaler.set_backoff_factor(0.25).ok());
  EXPECT_EQ(probe.scaler.growth_tracker(), 2) << "state stays";
  probe.Step(1);
  EXPECT_EQ(probe.scaler.scale(), 256);
  probe.Step(kInf);
  EXPECT_EQ(probe.scaler.scale(), 64);
  EXPECT_EQ(probe.scaler.growth_interval(), 3);
  EXPECT_EQ(probe.scaler.growth_factor(), 4);
  EXPECT_EQ(probe.scaler.backoff_factor(), 0.25);
  EXPECT_EQ((*probe.scaler.state_dict())["growth_interval"], 3);
  const int builds = probe.builds;
  ASSERT_TRUE(probe.scaler.set_growth_factor(4).ok());
  probe.Step(1);
  EXPECT_EQ(probe.builds, builds) << "the same value compiles nothing";
}

// PyTorch's tracker would pass the interval by and never meet it.
TEST(SetScalerOptions, AnIntervalBelowTheTrackerGrowsAtTheNextStep) {
  Probe probe({{.init_scale = 64, .growth_interval = 100}});
  for (int i = 0; i < 5; ++i) probe.Step(1);
  ASSERT_TRUE(probe.scaler.set_growth_interval(3).ok());
  probe.Step(1);
  EXPECT_EQ(probe.scaler.scale(), 128);
  EXPECT_EQ(probe.scaler.growth_tracker(), 0);
}

TEST(SetScalerOptions, BadOnesChangeNothing) {
  Probe probe({{.growth_interval = 7}});
  EXPECT_EQ(Message(probe.scaler.set_growth_interval(0)),
            "set_growth_interval: GradScaler: growth_interval = 0; expected 1 to 2147483647");
  EXPECT_EQ(Message(probe.scaler.set_growth_factor(1)),
            "set_growth_factor: GradScaler: growth_factor = 1; expected > 1");
  EXPECT_EQ(probe.scaler.set_backoff_factor(1.5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(probe.scaler.growth_interval(), 7);
  Probe none;
  EXPECT_EQ(Message(none.scaler.set_growth_factor(2)),
            "set_growth_factor: the handle belongs to no graph");
  EXPECT_EQ(none.scaler.growth_interval(), amp::GradScalerOptions().growth_interval);
}

TEST(FirstNonFinite, F30WithScalerWithoutAndDisabled) {
  enum class Kind { kScaler, kStatic, kTracked, kClipped, kDisabledAndTracked };
  for (const Kind kind :
       {Kind::kScaler, Kind::kStatic, Kind::kTracked, Kind::kClipped, Kind::kDisabledAndTracked}) {
    SCOPED_TRACE(static_cast<int>(kind));
    TwoScaled graph({.clip_norm = kind == Kind::kClipped ? 1.0 : 0.0});
    if (kind == Kind::kScaler) graph.set_grad_scaler(amp::GradScaler());
    if (kind == Kind::kStatic) graph.set_grad_scaler(amp::GradScaler({.dynamic = false}));
    if (kind == Kind::kDisabledAndTracked) {
      graph.set_grad_scaler(amp::GradScaler({.enabled = false}));
    }
    graph.config.track_grad_norm = kind == Kind::kTracked || kind == Kind::kDisabledAndTracked;
    EXPECT_EQ(graph.first_nonfinite_param(), "");
    Call(graph, {F32({2}, {1, 1})});
    EXPECT_EQ(graph.first_nonfinite_param(), "");
    for (const double bad : {kInf, -kInf, std::nan("")}) {
      Call(graph, {F32({2}, {1, bad})});
      EXPECT_EQ(graph.first_nonfinite_param(), "b");
      EXPECT_EQ(graph.last_step_skipped(), kind == Kind::kScaler || kind == Kind::kStatic);
    }
    Call(graph, {F32({2}, {1, 1})});
    EXPECT_EQ(graph.first_nonfinite_param(), "");
  }
}

TEST(FirstNonFinite, F30NothingLooksAtTheGradients) {
  TwoScaled graph;
  Call(graph, {F32({2}, {1, kInf})});
  EXPECT_EQ(graph.first_nonfinite_param(), "") << "documented: it needs someone who looks";
}

TEST(FirstNonFinite, F30StateLoadsWithAndWithoutTracking) {
  TwoScaled tracked, plain;
  tracked.config.track_grad_norm = true;
  Call(tracked, {F32({2}, {1, 1})});
  Call(plain, {F32({2}, {1, 1})});
  EXPECT_TRUE(plain.load_state_dict(*tracked.state_dict()).ok());
  EXPECT_TRUE(tracked.load_state_dict(*plain.state_dict()).ok());
}

// The mean of a product, which f16 lowers, times `factor`: for an input of ones each gradient is
// factor / 64.
class F16Probe : public FnGraph {
 public:
  explicit F16Probe(double factor = 1, double lr = 1e-3)
      : FnGraph([this, factor](const Values& in) -> Values {
          const Value loss = mean(matmul(in[0], w)) * factor;
          loss.backward();
          return {loss};
        }),
        w(Shape{64, 64}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("w", w);
    add_optimizer(optim::SGD({w.storage()}, {.lr = lr}));
    config.enable_amp(true, {.dtype = DType::kF16});
    to(Device::Reference());
  }
  void Step(double x = 1) { Call(*this, {Tensor::Full(DType::kF32, {64, 64}, x)}); }
  Parameter w;
};

TEST(AutomaticScaler, F42AHandleFromBeforeTheFirstCallFollows) {
  F16Probe graph;
  ScalerHandle scaler = graph.grad_scaler();
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_EQ(scaler.name(), "");
  graph.Step();
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.name(), "scaler0");
  EXPECT_EQ(scaler.total_steps(), 1);
  graph.Step(kInf);
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaler.skipped_count(), 1);
  EXPECT_THAT(graph.notes(), Contains(HasSubstr("scaler0: a grad scaler was added")));
}

TEST(AutomaticScaler, F42AHandleFollowsTheOneThatIsSetLater) {
  F16Probe graph;
  ScalerHandle scaler = graph.grad_scaler();
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 16}));
  EXPECT_EQ(scaler.scale(), 16);
  graph.Step();
  EXPECT_EQ(scaler.total_steps(), 1);
  EXPECT_THAT(graph.notes(), IsEmpty());
}

TEST(AutomaticScaler, F42ItCanBeSetBeforeTheFirstCall) {
  F16Probe graph;
  ScalerHandle scaler = graph.grad_scaler();
  ASSERT_TRUE(scaler.set_scale(256).ok());
  graph.Step();
  EXPECT_EQ(scaler.scale(), 256);

  F16Probe loaded;
  ASSERT_TRUE(loaded.grad_scaler().load_state_dict(*scaler.state_dict()).ok());
  EXPECT_EQ(loaded.grad_scaler().scale(), 256);
  EXPECT_EQ(loaded.grad_scaler().total_steps(), 1);
  loaded.Step();
  EXPECT_EQ(loaded.grad_scaler().total_steps(), 2);
}

TEST(AutomaticScaler, F42NoneWhereNothingIsF16) {
  F16Probe graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16, .deny = {"matmul"}});
  graph.Step();
  EXPECT_THAT(graph.notes(), Contains(HasSubstr("the automatic scaler is off")));
  EXPECT_THAT(graph.notes(), Not(Contains(HasSubstr("a grad scaler was added"))));

  F16Probe f32;
  f32.config.enable_amp(false);
  ScalerHandle scaler = f32.grad_scaler();
  f32.Step();
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_THAT(f32.notes(), IsEmpty());
}

// A loss whose gradient in f16 overflows above a scale of 0.5: its true value is 2^16.
class JustTooHigh : public FnGraph {
 public:
  explicit JustTooHigh(amp::GradScalerOptions options)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(cast(cast(w, DType::kF16), DType::kF32) * in[0]);
          loss.backward();
          return {loss};
        }),
        w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("w", w);
    add_optimizer(optim::SGD({w.storage()}));
    scaler = set_grad_scaler(amp::GradScaler(options));
  }
  void Steps(int count, double gradient = 0x1p16) {
    for (int i = 0; i < count; ++i) Call(*this, {F32({1}, {gradient})});
  }
  Parameter w;
  ScalerHandle scaler;
};

TEST(StuckScaler, F32ANoteNamesTheFloor) {
  JustTooHigh graph({});
  graph.Steps(30);
  EXPECT_EQ(graph.scaler.skipped_count(), 30);
  EXPECT_EQ(graph.scaler.scale(), 1);
  ASSERT_EQ(graph.notes().size(), 1u) << "once";
  EXPECT_EQ(graph.notes()[0],
            "scaler0: 21 steps in a row were skipped, the last 5 at scale 1, which does not fall: "
            "min_scale = 1; gradients that are finite at a lower scale need a lower min_scale; "
            "first non-finite gradient: w");

  JustTooHigh lower({.min_scale = 0.5});
  lower.Steps(30);
  EXPECT_EQ(lower.scaler.skipped_count(), 17);
  EXPECT_THAT(lower.notes(), IsEmpty());
}

TEST(StuckScaler, F32BelowTheFloorAndStatic) {
  JustTooHigh below({.init_scale = 2, .min_scale = 4});
  below.Steps(8);
  EXPECT_THAT(below.notes(), Contains(HasSubstr("at scale 2, which does not fall: min_scale = 4")));
  JustTooHigh fixed({.init_scale = 8, .dynamic = false});
  fixed.Steps(5);
  EXPECT_THAT(fixed.notes(), IsEmpty());
  fixed.Steps(3);
  EXPECT_THAT(fixed.notes(),
              Contains(HasSubstr("at scale 8, which does not fall: dynamic = false; "
                                 "gradients that are finite at a lower scale need a lower "
                                 "init_scale")));
}

TEST(StuckScaler, F32NoneWhereStepsGoOn) {
  JustTooHigh graph({.init_scale = 1});
  for (int i = 0; i < 20; ++i) graph.Steps(1, i % 5 == 4 ? 1 : 0x1p16);
  EXPECT_EQ(graph.scaler.skipped_count(), 16);
  EXPECT_THAT(graph.notes(), IsEmpty());
  JustTooHigh falling({.init_scale = 0x1p40});
  falling.Steps(30);
  EXPECT_THAT(falling.notes(), IsEmpty()) << "the scale is still on its way";
}

TEST(DisabledScaler, F45IsAStepWithoutScaling) {
  // 2^-20 / 4096 arrives at the product's gradient; in f16, which ends at 2^-24, that is 0.
  for (const bool enabled : {false, true}) {
    F16Probe graph(0x1p-20, 0x1p25);
    graph.set_grad_scaler(amp::GradScaler({.enabled = enabled}));
    graph.Step();
    EXPECT_EQ(graph.w.value().ToVector()[0], enabled ? 1 - 0.5 : 1);
  }
  // In f32 it is, bit for bit, the step of a graph without scaler.
  Probe without, disabled({{.enabled = false}});
  for (const double gradient : {0.1, -3.7, 1e30}) {
    without.Step(gradient);
    disabled.Step(gradient);
    EXPECT_EQ(without.w.value().item(), disabled.w.value().item());
  }
  EXPECT_EQ(without.compiled_text(), disabled.compiled_text());
}

}  // namespace
}  // namespace halftone::nn
