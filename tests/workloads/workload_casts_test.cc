// What mixed precision makes of the seven reference workloads: no step casts a weight, every node has
// a reason, and the guide says how many casts are left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "halftone/benchmarks/support/traced_step.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/graph/runtime/step_plan.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/cast_report.h"
#include "halftone/tools/support/table.h"

namespace halftone::testing {
namespace {

constexpr const char* kWorkloads[] = {"mlp",       "fashion_cnn", "resnet50",       "edsr",
                                      "bert_base", "gpt2_small",  "ssd512_resnet50"};

// The traced step, or null after a failure.
std::unique_ptr<ir::Graph> Trace(const std::string& name, const std::string& low) {
  const auto workload = benchmarks::MakeWorkload(name);
  EXPECT_TRUE(workload.ok()) << workload.status();
  if (!workload.ok()) return nullptr;
  auto traced = benchmarks::TraceStep(**workload, low);
  EXPECT_TRUE(traced.ok()) << traced.status();
  return traced.ok() ? *std::move(traced) : nullptr;
}

// Whole numbers, and what the caller or the graph gives as it is, have no precision to decide.
bool WorksOnFloats(const ir::Node& node) {
  bool floats = passes::IsOp(node, "variable") && IsFloat(node.output_type().dtype);
  for (const ir::Value& input : node.inputs()) floats |= IsFloat(input.dtype());
  return floats;
}

// After the passes that decide.
void ExpectReasons(const ir::Graph& traced, const ir::Target& target) {
  const auto graph = traced.Clone();
  passes::PassManagerOptions options;
  options.stop_after = "verify-amp-dtypes";
  ASSERT_TRUE(runtime::Lower(*graph, target, options).ok());
  int decided = 0;
  for (const auto& node : graph->nodes()) {
    if (node->op().is_marker || passes::IsOp(*node, "commit")) continue;
    if (node->provenance.pass == "insert-amp-casts") continue;
    if (!WorksOnFloats(*node)) continue;
    EXPECT_FALSE(node->amp.reason.empty()) << node->path();
    decided += node->amp.decided ? 1 : 0;
  }
  EXPECT_GT(decided, 3);
}

// Every weight that is read in 16 bit is kept so, and written by the update that moves it.
void ExpectNoCastsOfWeights(const ir::Graph& lowered) {
  EXPECT_EQ(tools::CountCasts(lowered).weights.casts, 0);
  int kept = 0, written = 0;
  for (const auto& node : lowered.nodes()) {
    kept += passes::IsKeptCast(*node) ? 1 : 0;
    written += passes::MayWriteLow(*node) && ops::LowCopyOf(*node).has_value() ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_EQ(written, kept);
}

// Kernels and memory of this CPU agree: no kernel of the step casts a weight, and what it commits,
// updates write in 16 bit too.
void ExpectPlanKeepsWeights(std::unique_ptr<ir::Graph> lowered) {
  const auto target = runtime::TargetOf(Device::Cpu());
  ASSERT_TRUE(target.ok()) << target.status();
  const auto plan =
      runtime::PlanStep(std::move(lowered), Device::Kind::kCpu, passes::StepTraitsOf(**target));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::set<int> committed(plan->written.begin(), plan->written.end());
  EXPECT_FALSE(plan->kept.empty());
  for (const runtime::StepPlan::KeptCast& kept : plan->kept) {
    EXPECT_TRUE(kept.written_by_update || committed.count(kept.variable) == 0)
        << kept.call.nodes[0]->Label();
  }
  for (const runtime::StepPlan::Call& call : plan->calls) {
    for (const ir::Node* node : call.nodes) {
      const bool is_of_weight =
          passes::IsCast(*node) && passes::IsOp(*node->input(0).node, "variable");
      EXPECT_FALSE(is_of_weight && IsLow(node->output_type().dtype)) << node->Label();
    }
  }
}

class Workloads : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Workloads, CastNoWeightAndGiveReasons) {
  const std::string name = std::get<0>(GetParam());
  const auto traced = Trace(name, std::get<1>(GetParam()));
  ASSERT_NE(traced, nullptr);
  const auto here = runtime::TargetOf(Device::Cpu());
  ASSERT_TRUE(here.ok());
  ExpectReasons(*traced, **here);
  auto lowered = traced->Clone();
  ASSERT_TRUE(runtime::Lower(*lowered, **here).ok());
  ExpectNoCastsOfWeights(*lowered);
  if (name == "fashion_cnn" || name == "bert_base") ExpectPlanKeepsWeights(std::move(lowered));
}

INSTANTIATE_TEST_SUITE_P(Both, Workloads,
                         ::testing::Combine(::testing::ValuesIn(kWorkloads),
                                            ::testing::Values("bf16", "f16")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

// "| mlp | 12, 1.2 MiB | ... |", a row of the table in docs/guide/mixed_precision.md.
std::string Row(const std::string& workload, const tools::CastReport& report) {
  std::string row = "| " + workload;
  const auto add = [&row](const tools::CastTraffic& traffic) {
    row += Concat(" | ", traffic.casts);
    if (traffic.casts > 0) row += ", " + tools::FormatBytes(static_cast<double>(traffic.bytes));
  };
  for (const tools::CastsOfStep* casts : {&report.naive, &report.step}) {
    add(casts->weights);
    add(casts->activations);
    add(casts->gradients);
  }
  return row + " |";
}

TEST(Guide, TellsTheCastsOfTheWorkloads) {
  std::ifstream file(Concat(HALFTONE_SOURCE_DIR, "/docs/guide/mixed_precision.md"));
  std::stringstream guide;
  guide << file.rdbuf();
  for (const char* name : kWorkloads) {
    const auto traced = Trace(name, "bf16");
    ASSERT_NE(traced, nullptr);
    const auto report =
        tools::MakeCastReport(*traced, **kernels::FindFixedTarget("cpu-avx512bf16"));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(guide.str(), ::testing::HasSubstr(Row(name, *report) + "\n"));
  }
}

}  // namespace
}  // namespace halftone::testing
