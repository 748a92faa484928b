// A07, huggingface/accelerate#4289: after a load the scale was back at its initial value.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/optim/grad_scaler.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

// A step whose scaler is `scaler`; state that was loaded before goes into the variables.
StepRunner CompileWith(const amp::GradScaler& scaler) {
  auto graph = ir::Parse(R"g(graph @g(%c: f32[]) {
    %w = variable "w" {init="constant(1)"} : f32[]
    %l = mul(%w, %c)
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], scaler="s"}
  })g");
  HT_CHECK(graph.ok(), "the graph parses");
  ir::Builder b(graph->get());
  b.Root("scaler", {}, scaler.ToMarker("s"));
  HT_CHECK(b.status().ok(), "the marker is well formed");
  StepRunner run = StepRunner::CompileOrDie((*graph)->ToString());
  for (const auto& [name, value] : scaler.StateTensors("s")) run.state()[name] = value;
  return run;
}

amp::GradScaler Fresh() { return amp::GradScaler({.init_scale = 2048, .growth_interval = 2}); }

amp::StateDict Saved() {
  amp::GradScaler scaler = Fresh();
  StepRunner run = CompileWith(scaler);
  run.StepOrDie({{"c", F32(kInf)}});
  run.StepOrDie({{"c", F32(1)}});
  EXPECT_TRUE(scaler.SetStateTensors("s", run.state()).ok());
  return scaler.state_dict();
}

void ExpectTrajectory(StepRunner& run) {
  const std::pair<double, double> expected[] = {{2048, 0}, {2048, 1}, {4096, 0}};
  for (const auto& [scale, tracker] : expected) {
    run.StepOrDie({{"c", F32(1)}});
    EXPECT_EQ(run.at("s.scale"), scale);
    EXPECT_EQ(run.at("s.growth_tracker"), tracker);
  }
}

TEST(CaseA07, LoadBeforeTheGraphIsBuilt) {
  amp::GradScaler scaler = Fresh();
  ASSERT_TRUE(scaler.load_state_dict(Saved()).ok());
  EXPECT_EQ(scaler.state().scale, 1024);
  EXPECT_EQ(scaler.state().growth_tracker, 1);
  StepRunner run = CompileWith(scaler);
  EXPECT_EQ(run.at("s.scale"), 1024);
  EXPECT_EQ(run.at("s.growth_tracker"), 1);
  EXPECT_EQ(run.at("s.total_steps"), 2);
  EXPECT_EQ(run.at("s.skipped_steps"), 1);
  ExpectTrajectory(run);
}

TEST(CaseA07, LoadAfterADummyStep) {
  amp::GradScaler scaler = Fresh();
  StepRunner run = CompileWith(scaler);
  run.StepOrDie({{"c", F32(1)}});
  ASSERT_TRUE(scaler.load_state_dict(Saved()).ok());
  for (const auto& [name, value] : scaler.StateTensors("s")) run.state()[name] = value;
  ExpectTrajectory(run);
}

TEST(CaseA07, OptionsAreRestoredToo) {
  amp::GradScaler other({.growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 7});
  ASSERT_TRUE(other.load_state_dict(Saved()).ok());
  EXPECT_EQ(other.options().growth_factor, 2);
  EXPECT_EQ(other.options().backoff_factor, 0.5);
  EXPECT_EQ(other.options().growth_interval, 2);
  StepRunner run = CompileWith(other);
  ExpectTrajectory(run);
}

}  // namespace
}  // namespace halftone::testing
