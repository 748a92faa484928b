// The independent checker accepts the plan of every golden graph and of random steps, whatever the
// options.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan_check.h"
#include "halftone/passes/pipeline.h"
#include "halftone/tests/support/golden.h"
#include "halftone/tests/support/random_step.h"

namespace halftone::testing {
namespace {

using passes::MemoryPlan;
using passes::MemoryPlanOptions;

// Some kernels need scratch, by no rule.
int64_t SomeWorkspace(const ir::Node& node) { return node.id() % 3 == 0 ? 0 : 40 * node.id(); }

void CheckAllOptions(const ir::Graph& graph) {
  for (int bits = 0; bits < 8; ++bits) {
    MemoryPlanOptions options;
    options.reuse_operands = (bits & 1) != 0;
    options.write_variables_in_place = options.keep_casts = (bits & 2) != 0;
    if ((bits & 4) != 0) options.workspace_bytes = SomeWorkspace;
    const MemoryPlan plan = passes::PlanMemory(graph, options);
    const absl::Status status = passes::CheckMemoryPlan(graph, plan, options);
    ASSERT_TRUE(status.ok()) << "options " << bits << ": " << status << "\n" << graph.ToString();
    EXPECT_LE(plan.arena_bytes, plan.unshared_bytes + 64 * 2 * graph.nodes().size());
  }
}

bool AnyMarker(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op().is_marker) return true;
  }
  return false;
}

absl::Status Lower(ir::Graph& graph, const std::string& target) {
  const kernels::ReferenceEvaluator evaluator;
  passes::PassContext context;
  context.target = *kernels::FindFixedTarget(target);
  context.evaluator = &evaluator;
  return passes::RunPipeline(graph, context);
}

TEST(MemoryPlanGraphs, GoldenGraphsBeforeAndAfterThePipeline) {
  int planned = 0;
  for (const std::string& path : GoldenFiles(HALFTONE_SOURCE_DIR)) {
    SCOPED_TRACE(path);
    const auto golden = ReadGolden(path);
    ASSERT_TRUE(golden.ok()) << golden.status();
    auto graph = ir::Parse(golden->input);
    ASSERT_TRUE(graph.ok()) << graph.status();
    if (!AnyMarker(**graph)) CheckAllOptions(**graph);
    // Golden graphs of single passes need not make sense as a whole (a policy that matches nothing,
    // half of the markers): those are skipped, and counted.
    if (!Lower(**graph, golden->option("target", "cpu-avx512bf16")).ok()) continue;
    CheckAllOptions(**graph);
    ++planned;
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(planned, 40);
}

TEST(MemoryPlanGraphs, RandomSteps) {
  int64_t arena = 0;
  int64_t unshared = 0;
  int in_place = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto graph = RandomStep(seed, {.steps = 50});
    CheckAllOptions(*graph);
    ASSERT_TRUE(Lower(*graph, "cuda-sm90").ok());
    CheckAllOptions(*graph);
    if (HasFatalFailure()) return;
    const MemoryPlan plan = passes::PlanMemory(*graph);
    arena += plan.arena_bytes;
    unshared += plan.unshared_bytes;
    in_place += plan.variables_in_place + plan.operands_reused;
  }
  EXPECT_LT(arena, unshared) << "sharing saves nothing";
  EXPECT_GT(in_place, 700);
}

}  // namespace
}  // namespace halftone::testing
