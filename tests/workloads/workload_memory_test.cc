// What of the reference workloads is computed again unasked: of transformers activations and norms,
// for a good part of the arena; of the others nothing.
#include <gtest/gtest.h>

#include <set>

#include "halftone/benchmarks/support/traced_step.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/budget_search.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::testing {
namespace {

struct LoweredStep {
  std::set<std::string> repeated;  // ops
  double effort = 0, effort_again = 0;
  int64_t arena_bytes = 0;
};

LoweredStep LowerStep(const std::string& name, const std::string& precision, bool hold) {
  LoweredStep step;
  const auto workload = benchmarks::MakeWorkload(name);
  EXPECT_TRUE(workload.ok()) << workload.status();
  if (!workload.ok()) return step;
  auto graph = benchmarks::TraceStep(**workload, precision);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return step;
  if (hold) ir::Builder(graph->get()).Root("hold_cheap_values", {});
  const ir::Target& target = **kernels::FindFixedTarget("cpu-avx512bf16");
  const absl::Status status = runtime::Lower(**graph, target);
  EXPECT_TRUE(status.ok()) << status;
  for (const auto& node : (*graph)->nodes()) {
    if (node->op().has_side_effect || passes::IsSource(*node)) continue;
    if (passes::IsStorageAlias(*node)) continue;
    const double effort = passes::Effort(*node);
    step.effort += effort;
    if (!passes::IsRecomputed(*node)) continue;
    step.effort_again += effort;
    step.repeated.insert(node->op().name);
  }
  const auto options =
      passes::PlanOptionsFor(**graph, passes::StepTraitsOf(target),
                             [&](const ir::Node& node) { return target.TraitsOf(node); });
  step.arena_bytes = passes::PlanMemory(**graph, options).arena_bytes;
  return step;
}

class WorkloadMemory : public ::testing::TestWithParam<std::tuple<const char*, const char*, bool>> {
};

TEST_P(WorkloadMemory, CheapValuesAreComputedAgainWhereItPays) {
  const auto& [name, precision, pays] = GetParam();
  const LoweredStep less = LowerStep(name, precision, false);
  const LoweredStep held = LowerStep(name, precision, true);
  EXPECT_TRUE(held.repeated.empty());
  EXPECT_EQ(!less.repeated.empty(), pays);
  if (!pays) {
    EXPECT_EQ(less.arena_bytes, held.arena_bytes);
    return;
  }
  EXPECT_LE(less.arena_bytes, held.arena_bytes * 86 / 100);
  EXPECT_LE(less.effort_again, 0.0125 * held.effort);
  for (const char* product : {"linear", "matmul", "attention", "conv2d"}) {
    EXPECT_EQ(less.repeated.count(product), 0u) << product;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Some, WorkloadMemory,
    ::testing::Values(
        std::make_tuple("mlp", "off", false), std::make_tuple("mlp", "bf16", false),
        std::make_tuple("fashion_cnn", "off", false), std::make_tuple("fashion_cnn", "bf16", false),
        std::make_tuple("resnet50", "off", false), std::make_tuple("resnet50", "bf16", false),
        std::make_tuple("bert_base", "off", true), std::make_tuple("bert_base", "bf16", true),
        std::make_tuple("gpt2_small", "off", true), std::make_tuple("gpt2_small", "bf16", true)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
    });

}  // namespace
}  // namespace halftone::testing
