// What scale-losses, insert-optimizers and update-scalers refuse, and graphs they leave alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/passes/amp/scale_losses.h"
#include "halftone/passes/amp/update_scalers.h"
#include "halftone/passes/autodiff/insert_optimizers.h"
#include "halftone/tests/passes/amp_test_util.h"

namespace halftone::testing {
namespace {

absl::Status RunOn(passes::Pass& pass, const std::string& text) {
  AmpRun run;
  run.graph = ParseGraph(text);
  return RunPass(pass, &run).status();
}

void ExpectRefused(passes::Pass& pass, const std::string& text, const std::string& message) {
  absl::Status status = RunOn(pass, text);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(Message(status), message);
}

TEST(ScaleLosses, RefusesUnknownAndRepeatedScalers) {
  auto pass = passes::MakeScaleLosses();
  ExpectRefused(*pass, R"(graph @g(%l: f32[]) {
    %s = loss_seed(%l) {scaler="a"}
    scaler() {name="b"} scaler() {name="c"}
    return %s
  })",
                "loss_seed(%s): scaler \"a\" is not declared; known: b, c");
  ExpectRefused(*pass, R"(graph @g(%l: f32[]) {
    %n, %a = optimizer() {rule="sgd", params=["w"], scaler="a"}
  })",
                "optimizer(%n): scaler \"a\" is not declared; known: none");
  ExpectRefused(*pass, R"(graph @g() { scaler() {name="b"} scaler() {name="b"} })",
                "scaler \"b\" is declared twice; expected once");
}

TEST(ScaleLosses, AnF16LossIsSeededInF32) {
  AmpRun run;
  run.graph = ParseGraph(R"(graph @g(%l: f16[]) {
    %s = loss_seed(%l) {scaler="s"}
    scaler() {name="s"}
    return %s
  })");
  ASSERT_TRUE(RunPass(*passes::MakeScaleLosses(), &run).ok());
  const ir::Value seed = run.graph->outputs()[0].value;
  EXPECT_EQ(seed.dtype(), DType::kF32);
  EXPECT_EQ(seed.node->attrs().GetString("name"), "s.scale");
}

// A gradient of w from nowhere: autodiff is not what is tested.
std::string WithOptimizer(const std::string& attrs, const std::string& more = "") {
  return R"g(graph @g(%c: f32[]) {
    %w = variable "w" {init="constant(1)"} : f32[]
    %n, %a = optimizer(%c) {rule="sgd", params=["w"], grad_params=["w"])g" +
         attrs + "}\n" + more + "}";
}

TEST(InsertOptimizers, Refuses) {
  auto pass = passes::MakeInsertOptimizers();
  EXPECT_TRUE(RunOn(*pass, WithOptimizer("")).ok());
  ExpectRefused(*pass, WithOptimizer(", schedule=\"step(\""),
                "schedule \"step(\", column 6: expected a whole number");
  ExpectRefused(*pass, WithOptimizer("", "commit \"w\" = %c"),
                "optimizer0: parameter \"w\" is already changed by a commit; expected one writer");
  ExpectRefused(*pass,
                WithOptimizer("",
                              "%n1, %a1 = optimizer(%c) {name=\"o1\", rule=\"sgd\", "
                              "params=[\"w\"], grad_params=[\"w\"]}"),
                "o1: parameter \"w\" is already changed by optimizer0; expected one writer");
  ExpectRefused(*pass, WithOptimizer("", "%n1, %a1 = optimizer() {rule=\"sgd\", params=[\"w\"]}"),
                "optimizer \"optimizer0\" is declared twice; expected once");
  ExpectRefused(*pass, R"(graph @g(%c: f32[]) {
    %n, %a = optimizer(%c) {rule="sgd", params=["v"], grad_params=["v"]}
  })",
                "optimizer0: parameter \"v\" is not a variable of the graph");
}

TEST(InsertOptimizers, RefusesGroupsThatDisagree) {
  auto pass = passes::MakeInsertOptimizers();
  const std::string group = "%n1, %a1 = optimizer() {rule=\"sgd\", params=[\"w\"], group=1";
  const std::string again = "%n2, %a2 = optimizer() {rule=\"sgd\", params=[\"w\"], group=1}";
  EXPECT_TRUE(RunOn(*pass, WithOptimizer("", group + ", lr=7}")).ok());
  ExpectRefused(*pass, WithOptimizer("", group + ", clip_norm=7}"),
                "optimizer \"optimizer0\": clip_norm of group 1 is not that of group 0; "
                "expected one for the optimizer");
  ExpectRefused(*pass, WithOptimizer("", group + "}\n" + again),
                "optimizer \"optimizer0\" is declared twice; expected once");
  const std::string other =
      "%v = variable \"v\" {} : f32[]\n %n1, %a1 = optimizer(%c) {name=\"o1\", rule=\"sgd\", "
      "params=[\"v\"], grad_params=[\"v\"], clip_norm_of_all=2}";
  ExpectRefused(
      *pass, WithOptimizer(", clip_norm_of_all=1", other),
      "optimizer \"o1\": clip_norm_of_all is 2, that of \"optimizer0\" is 1; expected one for all");
}

TEST(ScalingPasses, LeaveAGraphWithoutMarkersAlone) {
  for (auto make :
       {passes::MakeScaleLosses, passes::MakeInsertOptimizers, passes::MakeUpdateScalers}) {
    AmpRun run;
    run.graph = ParseGraph("graph @g(%x: f32[4]) { %t = tanh(%x) return %t }");
    absl::StatusOr<bool> changed = RunPass(*make(), &run);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_FALSE(*changed);
  }
}

}  // namespace
}  // namespace halftone::testing
