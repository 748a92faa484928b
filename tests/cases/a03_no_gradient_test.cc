// A03, neuro-ml/deep_pipe#75: an optimizer none of whose parameters has a gradient.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

std::string Text(const std::string& rule, const std::string& loss) {
  return R"g(graph @g() {
    %u = variable "u" {init="constant(7)"} : f32[]
    %w = variable "w" {init="constant(1)"} : f32[]
    %two = constant {value=dense<f32[]>(2)}
    %zero = constant {value=dense<f32[]>(0)}
    %l = )g" +
         loss + R"g(
    backward(%l) {scaler="s"}
    %nu, %au = optimizer() {name="ou", params=["u"], lr=0.5, weight_decay=0.1, scaler="s", rule=")g" +
         rule + R"g("}
    %nw, %aw = optimizer() {name="ow", rule="sgd", params=["w"], lr=0.5, scaler="s"}
    scaler() {name="s", growth_interval=2}
    return au=%au, aw=%aw, nu=%nu
  })g";
}

void ExpectUntouched(const std::string& rule) {
  StepRunner run = StepRunner::CompileOrDie(Text(rule, "mul(%w, %two)"));
  TensorMap out = run.StepOrDie();
  EXPECT_EQ(run.at("u"), 7) << "not even decay moves it";
  EXPECT_EQ(run.at("ou.applied_steps"), 0);
  EXPECT_EQ(out["au"].item(), 0);
  EXPECT_EQ(out["nu"].item(), 0);
  EXPECT_EQ(run.at("w"), 0);
  EXPECT_EQ(out["aw"].item(), 1);
  EXPECT_EQ(run.at("s.scale"), 65536);
  EXPECT_EQ(run.at("s.growth_tracker"), 1);
  run.StepOrDie();
  EXPECT_EQ(run.at("s.scale"), 131072) << "the normal rule";
  EXPECT_EQ(run.at("s.skipped_steps"), 0);
}

TEST(CaseA03, SgdWithoutGradientIsUntouched) { ExpectUntouched("sgd"); }
TEST(CaseA03, AdamWithoutGradientIsUntouched) { ExpectUntouched("adam"); }
TEST(CaseA03, AdamWWithoutGradientIsUntouched) { ExpectUntouched("adamw"); }

TEST(CaseA03, AStepWithoutAnyGradientIsANoOp) {
  StepRunner good = StepRunner::CompileOrDie(Text("adam", "mul(%w, %two)"));
  good.StepOrDie();
  StepRunner none = StepRunner::CompileOrDie(Text("adam", "mul(%zero, %two)"));
  none.state() = good.state();
  const TensorMap before = none.state();
  TensorMap out = none.StepOrDie();
  EXPECT_EQ(out["au"].item(), 0);
  EXPECT_EQ(out["aw"].item(), 0);
  for (const auto& [name, value] : before) {
    EXPECT_TRUE(BitEqual(none.state().at(name), value)) << name;
  }
}

}  // namespace
}  // namespace halftone::testing
