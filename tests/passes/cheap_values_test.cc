// Cheap values are made anew where that saves memory worth the time, and nowhere else; no bit of a
// result changes.
#include "halftone/passes/memory/cheap_values.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/memory_plan_check.h"
#include "halftone/passes/pipeline.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tests/support/graph_runner.h"
#include "halftone/tests/support/random_gradients.h"

namespace halftone::testing {
namespace {

class CheapValuesOf : public ::testing::TestWithParam<std::string> {
 protected:
  CheapValuesOf() {
    context_.target = *kernels::FindFixedTarget(GetParam());
    context_.evaluator = &evaluator_;
  }

  std::unique_ptr<ir::Graph> Lowered(const std::string& text) {
    auto graph = ir::Parse(text);
    EXPECT_TRUE(graph.ok()) << graph.status();
    const absl::Status status = passes::RunPipeline(**graph, context_);
    EXPECT_TRUE(status.ok()) << status;
    return *std::move(graph);
  }

  int64_t ArenaBytes(const ir::Graph& graph) const {
    const auto options =
        passes::PlanOptionsFor(graph, passes::StepTraitsOf(*context_.target),
                               [this](const ir::Node& n) { return context_.target->TraitsOf(n); });
    const passes::MemoryPlan plan = passes::PlanMemory(graph, options);
    const absl::Status sound = passes::CheckMemoryPlan(graph, plan, options);
    EXPECT_TRUE(sound.ok()) << sound;
    return plan.arena_bytes;
  }

  kernels::ReferenceEvaluator evaluator_;
  passes::PassContext context_;
};

INSTANTIATE_TEST_SUITE_P(Targets, CheapValuesOf, ::testing::Values("cpu-avx512bf16", "cuda-sm90"),
                         [](const auto& info) {
                           return std::string(info.param == "cuda-sm90" ? "Cuda" : "Cpu");
                         });

std::vector<std::string> RepeatedOps(const ir::Graph& graph) {
  std::vector<std::string> ops;
  for (const auto& node : graph.nodes()) {
    if (passes::IsRecomputed(*node)) ops.push_back(node->op().name);
  }
  return ops;
}

// Six feed-forward blocks, trained: two values of `rows` times 4096 f32 a block wait for the
// backward pass, of which the second is gelu of the first.
std::string FeedForward(int rows, const std::string& marker) {
  std::string text = Concat("graph @g(%x: f32[", rows, ",2048]) {\n"), names, h = "%x";
  for (int i = 0; i < 6; ++i) {
    text += Concat("%u", i, " = variable \"u", i, "\" {init=\"normal(0,0.1)\"} : f32[2048,4096]\n");
    text += Concat("%d", i, " = variable \"d", i, "\" {init=\"normal(0,0.1)\"} : f32[4096,2048]\n");
    text += Concat("%m", i, " = matmul(", h, ", %u", i, ")\n%a", i, " = gelu(%m", i, ")\n");
    text += Concat("%n", i, " = matmul(%a", i, ", %d", i, ")\n");
    h = Concat("%n", i);
    names += Concat(i == 0 ? "" : ", ", "\"u", i, "\", \"d", i, "\"");
  }
  return text + "%loss = mean(" + h + ") {axes=[0, 1]}\nbackward(%loss)\n" +
         "%n, %a = optimizer() {params=[" + names + "], rule=\"sgd\"}\n" + marker +
         "return %loss\n}";
}

TEST_P(CheapValuesOf, ActivationsAreMadeAnewInALargeStep) {
  const auto less = Lowered(FeedForward(4096, "")),
             held = Lowered(FeedForward(4096, "hold_cheap_values()\n"));
  EXPECT_TRUE(RepeatedOps(*held).empty());
  const std::vector<std::string> ops = RepeatedOps(*less);
  EXPECT_GE(ops.size(), 4u);
  for (const std::string& op : ops) EXPECT_EQ(op, "gelu");
  EXPECT_LE(ArenaBytes(*less), ArenaBytes(*held) * 85 / 100);
  EXPECT_NE(ir::Print(*less, ir::TextOptions::Lossless()).find("recompute(\"cheap: 67108864 bytes"),
            std::string::npos);
  const std::string once = less->ToString();
  ASSERT_TRUE(passes::RunPipeline(*less, context_).ok());
  EXPECT_EQ(less->ToString(), once) << "no second time";
}

TEST_P(CheapValuesOf, NothingIsMadeAnewInASmallStepOrBesideABudgetThatIsMet) {
  EXPECT_TRUE(RepeatedOps(*Lowered(FeedForward(64, ""))).empty());
  EXPECT_TRUE(
      RepeatedOps(*Lowered(FeedForward(4096, "memory_budget() {bytes=1000000000000}\n"))).empty());
}

// Every value waits, and is as cheap as what a step of a few products does.
TEST_P(CheapValuesOf, NothingIsMadeAnewWhereTheStepDoesLittleElse) {
  std::string text = "graph @g(%x: f32[4096,1024]) {\n%w = variable \"w\" : f32[1024]\n", h = "%x";
  for (int i = 0; i < 16; ++i) {
    text += Concat("%m", i, " = mul(", h, ", %w)\n%t", i, " = gelu(%m", i, ")\n");
    h = Concat("%t", i);
  }
  text += "%loss = mean(" + h + ") {axes=[0, 1]}\nbackward(%loss)\n" +
          "%n, %a = optimizer() {params=[\"w\"], rule=\"sgd\"}\nreturn %loss\n}";
  EXPECT_TRUE(RepeatedOps(*Lowered(text)).empty());
}

// With limits that let everything cheap go, on graphs that nobody wrote by hand.
TEST_P(CheapValuesOf, RandomStepsKeepTheirBits) {
  const passes::CheapLimits any{.most_of_step = 1, .least_bytes = 1, .least_of_arena = 0};
  int repeated = 0;
  for (uint64_t seed = 2000; seed < 2150; ++seed) {
    const std::unique_ptr<ir::Graph> whole = RandomGradients(seed);
    if (whole == nullptr) continue;
    ASSERT_TRUE(passes::RunPipeline(*whole, context_).ok());
    const auto cheap = passes::FindCheapValues(*whole, *context_.target, any);
    ASSERT_TRUE(cheap.ok()) << cheap.status();
    if (cheap->repeats.empty()) continue;
    const std::unique_ptr<ir::Graph> less = whole->Clone();
    ASSERT_TRUE(passes::RepeatValues(*less, cheap->repeats).ok());
    repeated += static_cast<int>(RepeatedOps(*less).size());
    EXPECT_EQ(ArenaBytes(*less), cheap->arena_after) << "seed " << seed;
    EXPECT_EQ(ArenaBytes(*whole), cheap->arena_before) << "seed " << seed;
    EXPECT_LT(cheap->arena_after, cheap->arena_before) << "seed " << seed;
    const GraphFeeds feeds = RandomFeeds(*whole, {.lo = -1, .hi = 1}, seed);
    const auto want = RunGraph(*whole, feeds, evaluator_), got = RunGraph(*less, feeds, evaluator_);
    ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
    for (size_t i = 0; i < want->outputs.size(); ++i) {
      EXPECT_TRUE(BitEqual(want->outputs[i], got->outputs[i])) << "seed " << seed << ", " << i;
    }
  }
  EXPECT_GT(repeated, 20) << "the graphs give the search little to do";
}

}  // namespace
}  // namespace halftone::testing
