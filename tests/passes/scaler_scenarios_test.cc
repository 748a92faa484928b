// The loss scaler in whole training steps: overflow, bounds, modes, clipping, resuming. Each graph
// is a gradient probe: loss = sum(w * c), so that the gradient of w is c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/step_runner.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

StepRunner Probe(const std::string& optimizer, const std::string& scaler,
                 const std::string& amp = "") {
  return StepRunner::CompileOrDie("graph @g(%c: f32[]) {\n" + amp + R"g(
    %w = variable "w" {init="constant(1)"} : f32[]
    %p = mul(%w, %c)
    %l = sum(%p) {axes=[]}
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {params=["w"], scaler="s", )g" +
                                  optimizer + R"g(}
    scaler() {name="s")g" + (scaler.empty() ? "" : ", " + scaler) +
                                  R"g(}
    return norm=%norm, applied=%applied, loss=%l
  })g");
}
constexpr char kSgd[] = "rule=\"sgd\", lr=0.1";

TEST(ScalerScenarios, TheFirstStepOverflows) {
  StepRunner run = Probe(kSgd, "");
  TensorMap out = run.StepOrDie({{"c", F32(kInf)}});
  EXPECT_EQ(out["applied"].item(), 0);
  EXPECT_EQ(out["norm"].item(), kInf);
  EXPECT_EQ(run.at("w"), 1);
  EXPECT_EQ(run.at("s.scale"), 32768);
  EXPECT_EQ(run.at("s.skipped_steps"), 1);
  EXPECT_EQ(run.at("s.consecutive_skips"), 1);
  run.StepOrDie({{"c", F32(1)}});
  EXPECT_EQ(run.at("s.consecutive_skips"), 0);
  EXPECT_EQ(run.at("s.skipped_steps"), 1);
  EXPECT_EQ(run.at("s.total_steps"), 2);
}

TEST(ScalerScenarios, TheLossIsTheTrueOne) {
  TensorMap out = Probe(kSgd, "").StepOrDie({{"c", F32(3)}});
  EXPECT_EQ(out["loss"].item(), 3);
  EXPECT_EQ(out["norm"].item(), 3);
}

// The product in f16: its gradient dy * c arrives in f16.
TEST(ScalerScenarios, TheLargestF16GradientIsFiniteTheNextIsNot) {
  const std::string amp = "amp() {dtype=f16, allow=[\"p\"]}";
  StepRunner run = Probe(kSgd, "init_scale=1, growth_interval=100", amp);
  EXPECT_EQ(run.StepOrDie({{"c", F32(65504)}})["applied"].item(), 1);
  EXPECT_EQ(run.at("s.scale"), 1);
  StepRunner scaled = Probe(kSgd, "init_scale=2, growth_interval=100", amp);
  EXPECT_EQ(scaled.StepOrDie({{"c", F32(65504)}})["applied"].item(), 0)
      << "2 * 65504 is inf in f16";
  EXPECT_EQ(scaled.at("s.scale"), 1);
}

TEST(ScalerScenarios, BackoffStopsAtMinScale) {
  StepRunner run = Probe(kSgd, "init_scale=4, min_scale=1");
  for (double scale : {2, 1, 1, 1}) {
    run.StepOrDie({{"c", F32(kInf)}});
    EXPECT_EQ(run.at("s.scale"), scale);
  }
  EXPECT_EQ(run.at("s.consecutive_skips"), 4);
  StepRunner low = Probe(kSgd, "init_scale=1, min_scale=0.25");
  for (double scale : {0.5, 0.25, 0.25}) {
    low.StepOrDie({{"c", F32(kInf)}});
    EXPECT_EQ(low.at("s.scale"), scale);
  }
  EXPECT_EQ(low.StepOrDie({{"c", F32(1)}})["norm"].item(), 1) << "a scale below 1 unscales too";
}

TEST(ScalerScenarios, GrowthStopsAtMaxScale) {
  StepRunner run = Probe(kSgd, "init_scale=4, growth_interval=1, max_scale=10");
  for (double scale : {8, 8, 8}) {
    run.StepOrDie({{"c", F32(1)}});
    EXPECT_EQ(run.at("s.scale"), scale);
  }
}

TEST(ScalerScenarios, HysteresisToleratesOneBadStep) {
  StepRunner run = Probe(kSgd, "init_scale=8, hysteresis=2");
  auto step = [&](double c) {
    run.StepOrDie({{"c", F32(c)}});
    return run.at("s.scale");
  };
  EXPECT_EQ(step(kInf), 8);
  EXPECT_EQ(step(kInf), 4);
  EXPECT_EQ(step(1), 4) << "resets the patience";
  EXPECT_EQ(step(kInf), 4);
  EXPECT_EQ(step(kInf), 2);
}

TEST(ScalerScenarios, AnIntervalBelowTheTrackerGrowsAtTheNextStep) {
  StepRunner run = Probe(kSgd, "init_scale=8, growth_interval=3");
  run.state()["s.growth_tracker"] = Tensor::Scalar(DType::kI32, 7);
  run.StepOrDie({{"c", F32(1)}});
  EXPECT_EQ(run.at("s.scale"), 16);
  EXPECT_EQ(run.at("s.growth_tracker"), 0);
}

TEST(ScalerScenarios, AStaticScaleChecksAndSkipsButStays) {
  StepRunner run = Probe(kSgd, "mode=\"static\", init_scale=128, growth_interval=1");
  EXPECT_EQ(run.StepOrDie({{"c", F32(kInf)}})["applied"].item(), 0);
  EXPECT_EQ(run.at("w"), 1);
  EXPECT_EQ(run.StepOrDie({{"c", F32(1)}})["applied"].item(), 1);
  EXPECT_EQ(run.at("s.scale"), 128);
  EXPECT_EQ(run.at("s.skipped_steps"), 1);
}

TEST(ScalerScenarios, ADisabledScalerIsPlainF32BitForBit) {
  const std::string adam = "rule=\"adam\", lr=0.1, clip_norm=0.7";
  StepRunner disabled = Probe(adam, "mode=\"disabled\"");
  StepRunner plain = StepRunner::CompileOrDie(R"g(graph @g(%c: f32[]) {
    %w = variable "w" {init="constant(1)"} : f32[]
    %p = mul(%w, %c)
    %l = sum(%p) {axes=[]}
    backward(%l)
    %norm, %applied = optimizer() {params=["w"], )g" +
                                              adam + "}\n}");
  EXPECT_EQ(disabled.state().count("s.scale"), 0u);
  for (double c : {0.3, -1.7, 0.9}) {
    disabled.StepOrDie({{"c", F32(c)}});
    plain.StepOrDie({{"c", F32(c)}});
  }
  ASSERT_EQ(disabled.state().size(), plain.state().size());
  for (const auto& [name, value] : plain.state()) {
    EXPECT_TRUE(BitEqual(disabled.state().at(name), value)) << name;
  }
  disabled.StepOrDie({{"c", F32(std::nan(""))}});
  EXPECT_TRUE(std::isnan(disabled.at("w"))) << "without a scaler nothing is checked";
}

TEST(ScalerScenarios, ClippingWithANonFiniteNormIsSkipped) {
  StepRunner run = Probe("rule=\"sgd\", lr=0.1, momentum=0.9, clip_norm=1", "");
  run.StepOrDie({{"c", F32(10)}});
  const TensorMap before = run.state();
  TensorMap out = run.StepOrDie({{"c", F32(std::nan(""))}});
  EXPECT_EQ(out["norm"].item(), kInf);
  EXPECT_TRUE(BitEqual(run.state().at("w"), before.at("w")));
  EXPECT_TRUE(BitEqual(run.state().at("optimizer0.w.momentum_buffer"),
                       before.at("optimizer0.w.momentum_buffer")));
}

TEST(ScalerScenarios, ResumingInTheMiddleOfAWindowGivesTheSameTrajectory) {
  const std::string scaler = "init_scale=1024, growth_interval=3";
  const double probes[] = {1, 1, kInf, 1, 1, 1, 1, kInf, 1, 1, 1, 1};
  StepRunner whole = Probe(kSgd, scaler);
  std::vector<double> scales;
  for (double c : probes) {
    whole.StepOrDie({{"c", F32(c)}});
    scales.push_back(whole.at("s.scale"));
  }
  StepRunner first = Probe(kSgd, scaler);
  for (int i = 0; i < 5; ++i) first.StepOrDie({{"c", F32(probes[i])}});
  StepRunner second = Probe(kSgd, scaler);
  second.state() = first.state();
  for (int i = 5; i < 12; ++i) {
    second.StepOrDie({{"c", F32(probes[i])}});
    EXPECT_EQ(second.at("s.scale"), scales[i]) << "step " << i;
  }
  EXPECT_TRUE(BitEqual(second.state().at("w"), whole.state().at("w")));
}

std::string TwoOptimizers(const std::string& skip) {
  return R"g(graph @g(%c0: f32[], %c1: f32[]) {
    %w0 = variable "w0" {init="constant(1)"} : f32[]
    %w1 = variable "w1" {init="constant(1)"} : f32[]
    %l0 = mul(%w0, %c0)
    %l1 = mul(%w1, %c1)
    backward(%l0) {scaler="s0"}
    backward(%l1) {scaler="s1"}
    %n0, %a0 = optimizer() {name="o0", rule="sgd", params=["w0"], scaler="s0", skip=")g" +
         skip + R"g("}
    %n1, %a1 = optimizer() {name="o1", rule="sgd", params=["w1"], scaler="s1"}
    scaler() {name="s0", init_scale=8}
    scaler() {name="s1", init_scale=64}
    return a0=%a0, a1=%a1
  })g";
}

TEST(ScalerScenarios, SeveralLossesWithAScalerEach) {
  StepRunner run = StepRunner::CompileOrDie(TwoOptimizers("own"));
  TensorMap out = run.StepOrDie({{"c0", F32(1)}, {"c1", F32(kInf)}});
  EXPECT_EQ(out["a0"].item(), 1);
  EXPECT_EQ(out["a1"].item(), 0);
  EXPECT_EQ(run.at("s0.scale"), 8);
  EXPECT_EQ(run.at("s1.scale"), 32);
}

TEST(ScalerScenarios, SkipAnyLooksAtEveryOptimizer) {
  StepRunner run = StepRunner::CompileOrDie(TwoOptimizers("any"));
  TensorMap out = run.StepOrDie({{"c0", F32(1)}, {"c1", F32(kInf)}});
  EXPECT_EQ(out["a0"].item(), 0);
  EXPECT_EQ(run.at("w0"), 1);
  EXPECT_EQ(run.at("s0.scale"), 8) << "its own gradients were finite";
  EXPECT_EQ(run.at("s0.growth_tracker"), 1);
  out = run.StepOrDie({{"c0", F32(1)}, {"c1", F32(1)}});
  EXPECT_EQ(out["a0"].item(), 1);
}

std::string Automatic(const std::string& amp) {
  return "graph @g(%x: f32[2,2]) {\n" + amp + R"g(
    %w = variable "w" {init="constant(1)"} : f32[2,2]
    %m = matmul(%x, %w)
    %l = mean(%m) {axes=[]}
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], scaler="s"}
    scaler() {name="s", automatic=true}
    return applied=%applied
  })g";
}

TEST(ScalerScenarios, AnAutomaticScalerIsForF16Only) {
  StepRunner f16 = StepRunner::CompileOrDie(Automatic("amp() {dtype=f16}"));
  EXPECT_EQ(f16.state().count("s.scale"), 1u);
  EXPECT_THAT(f16.notes(), ::testing::ElementsAre(::testing::HasSubstr(
                               "s: a grad scaler was added, as gradients in f16 need one")));
  for (const char* amp : {"amp() {dtype=bf16}", ""}) {
    StepRunner other = StepRunner::CompileOrDie(Automatic(amp));
    EXPECT_EQ(other.state().count("s.scale"), 0u) << amp;
    EXPECT_THAT(other.notes(), ::testing::ElementsAre(::testing::HasSubstr(
                                   "s: no value is f16, so gradients need no loss scale")));
  }
}

TEST(ScalerScenarios, AnExplicitScalerStaysInBf16) {
  std::string text = Automatic("amp() {dtype=bf16}");
  text.erase(text.find(", automatic=true"), std::string(", automatic=true").size());
  StepRunner run = StepRunner::CompileOrDie(text);
  EXPECT_EQ(run.state().count("s.scale"), 1u);
  EXPECT_THAT(run.notes(), ::testing::IsEmpty());
}

TEST(ScalerScenarios, AnOverflowDoesNotPoisonBuffers) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%c: f32[]) {
    %w = variable "w" {init="constant(1)"} : f32[]
    %mean = variable "mean" {kind="buffer", trainable=false, init="constant(5)"} : f32[]
    %p = mul(%w, %c)
    %l = sum(%p) {axes=[]}
    commit "mean" = %p
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], lr=0.1, scaler="s"}
    scaler() {name="s"}
  })g");
  run.StepOrDie({{"c", F32(kInf)}});
  EXPECT_EQ(run.at("mean"), 5);
  run.StepOrDie({{"c", F32(2)}});
  EXPECT_EQ(run.at("mean"), 2);
}

}  // namespace
}  // namespace halftone::testing
