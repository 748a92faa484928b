// A01, pytorch/pytorch#98828: with tiny gradients the scale kept doubling until it was inf.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

// loss (w - 2)^2 at w = 2: the gradient is exactly 0.
StepRunner ZeroGradient(const std::string& scaler) {
  return StepRunner::CompileOrDie(R"g(graph @g() {
    %w = variable "w" {init="constant(2)"} : f32[]
    %two = constant {value=dense<f32[]>(2)}
    %d = sub(%w, %two)
    %l = mul(%d, %d)
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], lr=0.1, scaler="s"}
    scaler() {name="s", growth_interval=1, )g" +
                                  scaler + "}\n}");
}

TEST(CaseA01, ScaleStopsAtTheLargestFinitePower) {
  StepRunner run = ZeroGradient("init_scale=65536");
  for (int step = 1; step <= 150; ++step) {
    run.StepOrDie();
    EXPECT_EQ(run.at("s.scale"), std::ldexp(1.0, std::min(16 + step, 127))) << "step " << step;
  }
  EXPECT_EQ(run.at("w"), 2.0);
  EXPECT_EQ(run.at("s.skipped_steps"), 0);
  EXPECT_EQ(run.at("s.total_steps"), 150);
}

TEST(CaseA01, AGrowthThatIsNotFiniteIsDropped) {
  StepRunner run = ZeroGradient("init_scale=65536, growth_factor=1e10");
  const double expected[] = {6.5536e14, 6.5536e24, 6.5536e34, 6.5536e34, 6.5536e34, 6.5536e34};
  for (double scale : expected) {
    run.StepOrDie();
    EXPECT_NEAR(run.at("s.scale"), scale, scale * 1e-6);
  }
}

TEST(CaseA01, AtTheLargestScaleSmallGradientsSurvive) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%c: f32[]) {
    %w = variable "w" {init="constant(0)"} : f32[]
    %l = mul(%w, %c)
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], lr=1, scaler="s"}
    scaler() {name="s", init_scale=1.7014118346046923e+38}
    return norm=%norm, applied=%applied
  })g");
  ASSERT_EQ(run.at("s.scale"), 0x1p127);
  TensorMap out = run.StepOrDie({{"c", F32(1e-30)}});
  EXPECT_EQ(out["applied"].item(), 1);
  EXPECT_NEAR(out["norm"].item(), 1e-30, 1e-36);
  EXPECT_NEAR(run.at("w"), -1e-30, 1e-36) << "the unscaled gradient";
}

}  // namespace
}  // namespace halftone::testing
