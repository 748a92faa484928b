// A05, pytorch/pytorch#55585: the learning rate schedule advanced on a skipped step.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

TEST(CaseA05, ScheduleCountsAppliedSteps) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%c: f32[]) {
    %w = variable "w" {init="constant(1)"} : f32[]
    %l = mul(%w, %c)
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer()
        {rule="sgd", params=["w"], lr=0.1, schedule="step(1,0.5)", scaler="s"}
    scaler() {name="s"}
    return applied=%applied
  })g");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(run.StepOrDie({{"c", F32(inf)}})["applied"].item(), 0);
  EXPECT_EQ(run.at("w"), 1);
  EXPECT_EQ(run.StepOrDie({{"c", F32(1)}})["applied"].item(), 1);
  EXPECT_NEAR(run.at("w"), 0.9, 1e-6);
  EXPECT_EQ(run.StepOrDie({{"c", F32(1)}})["applied"].item(), 1);
  EXPECT_NEAR(run.at("w"), 0.85, 1e-6);
}

}  // namespace
}  // namespace halftone::testing
