// The whole pipeline on a training step, for every fixed target; and what passes refuse.
#include "halftone/passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan_check.h"
#include "halftone/passes/rewrite/decompose_unsupported.h"

namespace halftone::passes {
namespace {

using ::testing::HasSubstr;

constexpr const char kWholeStep[] = R"(graph @step(%x: f32[8,3,8,8], %t: i64[8]) {
    %w = variable "conv.weight" : f32[4,3,3,3]
    %b = variable "conv.bias" : f32[4]
    %v = variable "fc.weight" : f32[10,64]
    %c = conv2d(%x, %w, %b) {padding=[1, 1]}
    %r = relu(%c)
    %p, %i = max_pool2d(%r) {kernel=[2, 2], stride=[2, 2]}
    %f = reshape(%p) {shape=[8, 64]}
    %y = linear(%f, %v)
    %l, %s = cross_entropy(%y, %t)
    backward(%l) {scaler="s"}
    scaler() {name="s"}
    amp() {dtype=f16}
    %n, %a = optimizer() {params=["conv.weight", "conv.bias", "fc.weight"], rule="adam", scaler="s"}
    return %l, norm=%n
  })";

class PipelineTest : public ::testing::Test {
 protected:
  absl::Status Run(ir::Graph& graph, const std::string& target, std::string* summary = nullptr) {
    context_.target = *kernels::FindFixedTarget(target);
    context_.evaluator = &evaluator_;
    PassManagerOptions options;
    options.check_changed = true;
    return RunPipeline(graph, context_, options, summary);
  }
  static std::unique_ptr<ir::Graph> ParseOrDie(const std::string& text) {
    auto graph = ir::Parse(text);
    HT_CHECK(graph.ok(), "a graph of the test does not parse");
    return *std::move(graph);
  }

  kernels::ReferenceEvaluator evaluator_;
  PassContext context_;
};

TEST_F(PipelineTest, LowersATrainingStepOnEveryTarget) {
  for (const std::string& target : kernels::FixedTargetNames()) {
    SCOPED_TRACE(target);
    const auto graph = ParseOrDie(kWholeStep);
    std::string summary;
    const absl::Status status = Run(*graph, target, &summary);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(ir::Verify(*graph).ok());
    int relayouts = 0;
    for (const auto& node : graph->nodes()) {
      EXPECT_FALSE(node->op().is_marker) << node->Label();
      relayouts += node->op().name == "relayout" ? 1 : 0;
    }
    // The 16-bit input on the way in, the pooled image on the way out, its gradient on the way
    // back.
    EXPECT_EQ(relayouts, target == "reference" ? 0 : 3);
    // Three parameters with two moments each, and the state of optimizer and scaler.
    EXPECT_GE(graph->commits().size(), 9u);
    EXPECT_THAT(summary, HasSubstr("autodiff"));
    const MemoryPlan plan = PlanMemory(*graph);
    EXPECT_TRUE(CheckMemoryPlan(*graph, plan).ok()) << CheckMemoryPlan(*graph, plan);
    // Everything that adam writes goes straight into its variable.
    EXPECT_GE(plan.variables_in_place, 9);
  }
}

TEST_F(PipelineTest, NamesThePassInAnError) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[]) {
    backward(%x)
    %n, %a = optimizer() {params=["w"], rule="sgd"}
    return %x
  })");
  const absl::Status status = Run(*graph, "cpu-avx2");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "pass autodiff: optimizer(%n): parameter \"w\" is not a variable of the graph");
}

TEST(DecomposeUnsupported, RefusesAnOpWithoutKernelAndDecomposition) {
  const kernels::DescribedTarget target(
      {.name = "toy", .kernel_dtypes = {DType::kF32}, .cannot_run = {"matmul"}, .traits = {}});
  auto graph = ir::Parse("graph @g(%x: f32[2,2]) {\n  %y = matmul(%x, %x)\n  return %y\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  PassContext context;
  context.target = &target;
  const auto changed = MakeDecomposeUnsupported()->Run(**graph, context);
  EXPECT_EQ(changed.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(changed.status()),
            "matmul(%y): toy has no kernel for matmul, and the op has no decomposition");
}

}  // namespace
}  // namespace halftone::passes
