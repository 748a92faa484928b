// A15, pytorch/pytorch#98691: the scale 65536 was converted to half, where it is inf.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

TEST(CaseA15, TheFirstStepOfAnF16ModelIsApplied) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%x: f32[4,1]) {
    amp() {dtype=f16}
    %w = variable "w" {init="constant(8)"} : f32[1,1]
    %y = matmul(%x, %w)
    %l = mean(%y) {axes=[]}
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], lr=0.1, scaler="s"}
    scaler() {name="s"}
    return loss=%l, applied=%applied, norm=%norm
  })g");
  EXPECT_EQ(run.graph().FindNode("y")->output_type().dtype, DType::kF16);
  TensorMap out =
      run.StepOrDie({{"x", Tensor::Of(DType::kF32, Shape{4, 1}, {0.125, 0.25, 0.375, 0.5})}});
  EXPECT_EQ(out["loss"].dtype(), DType::kF32);
  EXPECT_EQ(out["loss"].item(), 2.5) << "the loss itself is not scaled";
  EXPECT_EQ(out["applied"].item(), 1);
  EXPECT_EQ(out["norm"].item(), 0.3125);
  EXPECT_EQ(run.at("w"), 7.96875);
  EXPECT_EQ(run.at("s.scale"), 65536);
}

TEST(CaseA15, AnF16LossTimesTheScaleIsF32) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%l: f16[]) {
    %s = variable "s.scale" {kind="scaler", trainable=false, init="constant(65536)"} : f32[]
    %wide = cast(%l) {to=f32}
    %scaled = mul(%wide, %s)
    return scaled=%scaled
  })g");
  const double got = run.StepOrDie({{"l", Tensor::Scalar(DType::kF16, 0.01)}})["scaled"].item();
  EXPECT_NEAR(got, 655.5, 0.1);
}

}  // namespace
}  // namespace halftone::testing
