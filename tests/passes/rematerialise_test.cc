// Values that are made anew: every bit of every result stays, and budgets are met, on graphs nobody
// wrote by hand, for a CPU and for a device that joins updates and keeps casts.
#include "halftone/passes/memory/rematerialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_replace.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/memory_plan_check.h"
#include "halftone/passes/memory/recomputation.h"
#include "halftone/passes/pipeline.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tests/support/graph_runner.h"
#include "halftone/tests/support/random_gradients.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

class Rematerialisation : public ::testing::TestWithParam<std::string> {
 protected:
  Rematerialisation() {
    context_.target = *kernels::FindFixedTarget(GetParam());
    context_.evaluator = &evaluator_;
  }

  absl::Status Lower(ir::Graph& graph) { return passes::RunPipeline(graph, context_); }

  // The arena that such a device takes for a lowered graph.
  int64_t ArenaBytes(const ir::Graph& graph) const {
    const auto options =
        passes::PlanOptionsFor(graph, passes::StepTraitsOf(*context_.target),
                               [this](const ir::Node& n) { return context_.target->TraitsOf(n); });
    const passes::MemoryPlan plan = passes::PlanMemory(graph, options);
    const absl::Status sound = passes::CheckMemoryPlan(graph, plan, options);
    EXPECT_TRUE(sound.ok()) << sound;
    return plan.arena_bytes;
  }

  void ExpectSameResults(const ir::Graph& a, const ir::Graph& b, uint64_t seed) const {
    const GraphFeeds feeds = RandomFeeds(a, {.lo = -1, .hi = 1}, seed);
    const auto want = RunGraph(a, feeds, evaluator_), got = RunGraph(b, feeds, evaluator_);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(want->outputs.size(), got->outputs.size());
    for (size_t i = 0; i < want->outputs.size(); ++i) {
      EXPECT_TRUE(BitEqual(want->outputs[i], got->outputs[i])) << "seed " << seed << ", " << i;
    }
    for (const auto& [name, value] : want->commits) {
      EXPECT_TRUE(BitEqual(value, got->commits.at(name))) << "seed " << seed << ", " << name;
    }
  }

  kernels::ReferenceEvaluator evaluator_;
  passes::PassContext context_;
};

INSTANTIATE_TEST_SUITE_P(Targets, Rematerialisation,
                         ::testing::Values("cpu-avx512bf16", "cuda-sm90"), [](const auto& info) {
                           return std::string(info.param == "cuda-sm90" ? "Cuda" : "Cpu");
                         });

int Repeated(const ir::Graph& graph) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(),
                    [](const auto& node) { return passes::IsRecomputed(*node); }));
}

// The number behind `before` in a message.
int64_t NumberAfter(const std::string& message, const std::string& before) {
  const size_t at = message.find(before);
  return at == std::string::npos ? -1 : std::atoll(message.c_str() + at + before.size());
}

TEST_P(Rematerialisation, RandomGraphsKeepTheirBitsWithinAnyBudgetThatCanBeMet) {
  int met = 0, refused = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const std::unique_ptr<ir::Graph> graph = RandomGradients(seed);
    if (graph == nullptr) continue;
    const std::unique_ptr<ir::Graph> whole = graph->Clone();
    ASSERT_TRUE(Lower(*whole).ok());
    const int64_t arena = ArenaBytes(*whole);
    for (int tenths : {9, 7, 5}) {
      const auto lower = [&](int64_t budget, std::unique_ptr<ir::Graph>& lowered) {
        lowered = graph->Clone();
        ir::Builder(lowered.get()).Root("memory_budget", {}, {{"bytes", budget}});
        return Lower(*lowered);
      };
      int64_t budget = std::max<int64_t>(1, arena * tenths / 10);
      std::unique_ptr<ir::Graph> lowered;
      absl::Status status = lower(budget, lowered);
      if (!status.ok()) {
        ++refused;
        EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
        const int64_t smallest = NumberAfter(Message(status), "and no less than ");
        ASSERT_GT(smallest, budget) << status;
        EXPECT_LE(NumberAfter(Message(status), " alone takes "), smallest) << status;
        budget = smallest;
        status = lower(budget, lowered);
      }
      ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
      EXPECT_LE(ArenaBytes(*lowered), budget) << "seed " << seed;
      ExpectSameResults(*whole, *lowered, seed);
      met += Repeated(*lowered) > 0 ? 1 : 0;
      const auto undone = passes::WithoutRepeats(*lowered);
      ASSERT_TRUE(undone.ok()) << undone.status();
      // A reshape that only the backward pass reads is there once, under the new name.
      EXPECT_EQ(absl::StrReplaceAll((*undone)->ToString(), {{".again", ""}}), whole->ToString())
          << "seed " << seed;
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(met, 30) << "the graphs give the pass little to do";
  EXPECT_GT(refused, 0);
}

// Every third op belongs to a call of a module that asks for recomputation.
TEST_P(Rematerialisation, RandomModulesKeepTheirBits) {
  int repeated = 0;
  for (uint64_t seed = 500; seed < 650; ++seed) {
    const std::unique_ptr<ir::Graph> graph = RandomGradients(seed);
    if (graph == nullptr) continue;
    const std::unique_ptr<ir::Graph> whole = graph->Clone();
    int position = 0;
    for (const auto& node : graph->nodes()) {
      const int call = position++ / 8;
      if (!passes::IsSource(*node) && call % 2 == 0) node->recompute = Concat("layer#", call);
    }
    ASSERT_TRUE(Lower(*whole).ok());
    ASSERT_TRUE(Lower(*graph).ok());
    repeated += Repeated(*graph);
    ExpectSameResults(*whole, *graph, seed);
    const std::string once = graph->ToString();
    ASSERT_TRUE(Lower(*graph).ok());
    EXPECT_EQ(graph->ToString(), once) << "what is made anew is neither merged nor made anew again";
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(repeated, 20);
}

// n layers of one width, trained: activations of all are held, in 16 bit, with casts of weights.
std::string Layers(int n, int64_t budget) {
  std::string text = "graph @g(%x: f32[1024,64]) {\n", names, h = "%x";
  for (int i = 0; i < n; ++i) {
    text += Concat("%w", i, " = variable \"w", i, "\" {init=\"normal(0,0.1)\"} : f32[64,64]\n");
    text += Concat("%m", i, " = matmul(", h, ", %w", i, ")\n%t", i, " = tanh(%m", i, ")\n");
    h = Concat("%t", i);
    names += Concat(i == 0 ? "" : ", ", "\"w", i, "\"");
  }
  text += "%loss = mean(" + h + ") {axes=[0, 1]}\nbackward(%loss)\namp() {dtype=bf16}\n" +
          "%n, %a = optimizer() {params=[" + names + "], rule=\"sgd\"}\n";
  if (budget > 0) text += Concat("memory_budget() {bytes=", budget, "}\n");
  return text + "return %loss\n}";
}

TEST_P(Rematerialisation, AChainTakesAThird) {
  auto whole = ir::Parse(Layers(64, 0));
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(Lower(**whole).ok());
  const int64_t budget = ArenaBytes(**whole) / 3;
  auto graph = ir::Parse(Layers(64, budget));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::Status status = Lower(**graph);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_LE(ArenaBytes(**graph), budget);
  // Every node of the forward pass at most once more, and not all of them.
  EXPECT_GT(Repeated(**graph), 32);
  EXPECT_LT(Repeated(**graph), 3 * 64);
  EXPECT_THAT(ir::Print(**graph, ir::TextOptions::Lossless()),
              HasSubstr("recompute(\"memory_budget: 131072 bytes are not held for "));
}

}  // namespace
}  // namespace halftone::testing
