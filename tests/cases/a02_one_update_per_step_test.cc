// A02, huggingface/accelerate#439: one scaler shared by two optimizers was updated twice a step.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

StepRunner TwoOptimizers(int growth_interval) {
  return StepRunner::CompileOrDie(Concat(R"g(graph @g(%c0: f32[], %c1: f32[]) {
    %w0 = variable "w0" {init="constant(1)"} : f32[]
    %w1 = variable "w1" {init="constant(1)"} : f32[]
    %l0 = mul(%w0, %c0)
    %l1 = mul(%w1, %c1)
    backward(%l0) {scaler="s"}
    backward(%l1) {scaler="s"}
    %n0, %applied0 = optimizer() {name="o0", rule="sgd", params=["w0"], lr=0.1, scaler="s"}
    %n1, %applied1 = optimizer() {name="o1", rule="sgd", params=["w1"], lr=0.1, scaler="s"}
    scaler() {name="s", init_scale=1024, growth_interval=)g",
                                         growth_interval, R"g(}
    return applied0=%applied0, applied1=%applied1
  })g"));
}

TEST(CaseA02, GrowsOncePerIteration) {
  StepRunner run = TwoOptimizers(4);
  for (double scale : {1024, 1024, 1024, 2048, 2048, 2048, 2048, 4096}) {
    run.StepOrDie({{"c0", F32(1)}, {"c1", F32(1)}});
    EXPECT_EQ(run.at("s.scale"), scale);
  }
}

TEST(CaseA02, EachOptimizerSkipsOnItsOwnGradients) {
  StepRunner run = TwoOptimizers(4);
  for (int i = 0; i < 4; ++i) run.StepOrDie({{"c0", F32(1)}, {"c1", F32(1)}});
  ASSERT_EQ(run.at("s.scale"), 2048);
  const double w0 = run.at("w0"), w1 = run.at("w1");
  TensorMap out = run.StepOrDie({{"c0", F32(1)}, {"c1", F32(kInf)}});
  EXPECT_EQ(out["applied0"].item(), 1);
  EXPECT_EQ(out["applied1"].item(), 0);
  EXPECT_LT(run.at("w0"), w0);
  EXPECT_EQ(run.at("w1"), w1);
  EXPECT_EQ(run.at("o0.applied_steps"), 5);
  EXPECT_EQ(run.at("o1.applied_steps"), 4);
  EXPECT_EQ(run.at("s.scale"), 1024);
  EXPECT_EQ(run.at("s.growth_tracker"), 0);
}

TEST(CaseA02, EveryGradientIsUnscaledByTheScaleOfItsBackward) {
  StepRunner run = TwoOptimizers(1);
  run.StepOrDie({{"c0", F32(3)}, {"c1", F32(5)}});
  EXPECT_NEAR(run.at("w0"), 0.7, 1e-6);
  EXPECT_NEAR(run.at("w1"), 0.5, 1e-6);
  EXPECT_EQ(run.at("s.scale"), 2048);
}

}  // namespace
}  // namespace halftone::testing
