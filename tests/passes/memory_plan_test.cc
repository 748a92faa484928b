#include "halftone/passes/memory/memory_plan.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/passes/memory/memory_plan_check.h"

namespace halftone::passes {
namespace {

using Space = Slot::Space;

std::unique_ptr<ir::Graph> ParseOrDie(const std::string& text) {
  auto graph = ir::Parse(text);
  HT_CHECK(graph.ok(), "a graph of the test does not parse");
  return *std::move(graph);
}

// Plans, and has the checker agree.
MemoryPlan PlanAndCheck(const ir::Graph& graph, const MemoryPlanOptions& options = {}) {
  MemoryPlan plan = PlanMemory(graph, options);
  const absl::Status status = CheckMemoryPlan(graph, plan, options);
  EXPECT_TRUE(status.ok()) << status;
  return plan;
}

const Slot& SlotOf(const ir::Graph& graph, const MemoryPlan& plan, const std::string& name,
                   int output = 0) {
  for (size_t p = 0; p < graph.nodes().size(); ++p) {
    if (graph.nodes()[p]->name() == name) return plan.nodes[p].outputs[output];
  }
  HT_CHECK(false, "no such node");
  return plan.nodes[0].outputs[0];
}

TEST(MemoryPlan, PlacesSourcesAndOutputsOutsideTheArena) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[32], %z: f32[32]) {
    %w = variable "w" : f32[32]
    %c = constant {value=splat<f32[32]>(2)} : f32[32]
    %a = add(%x, %w)
    %b = mul(%a, %c)
    %y = add(%b, %z)
    return %y
  })");
  const MemoryPlan plan = PlanAndCheck(*graph);
  EXPECT_EQ(SlotOf(*graph, plan, "x"), (Slot{Space::kInput, 0, 0, 128}));
  EXPECT_EQ(SlotOf(*graph, plan, "z"), (Slot{Space::kInput, 1, 0, 128}));
  EXPECT_EQ(SlotOf(*graph, plan, "w"), (Slot{Space::kVariable, 0, 0, 128}));
  EXPECT_EQ(SlotOf(*graph, plan, "c"), (Slot{Space::kConstant, 0, 0, 128}));
  EXPECT_EQ(SlotOf(*graph, plan, "y"), (Slot{Space::kOutput, 0, 0, 128}));
  // b is written over a.
  EXPECT_EQ(SlotOf(*graph, plan, "b"), SlotOf(*graph, plan, "a"));
  EXPECT_EQ(plan.operands_reused, 1);
  EXPECT_EQ(plan.arena_bytes, 128);
  EXPECT_EQ(plan.unshared_bytes, 256);
}

TEST(MemoryPlan, DoesNotWriteOverWhatIsStillRead) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[32]) {
    %a = neg(%x)
    %b = abs(%a)
    %c = add(%b, %a)
    %d = mul(%c, %c)
    %y = neg(%d)
    return %y
  })");
  const MemoryPlan plan = PlanAndCheck(*graph);
  EXPECT_NE(SlotOf(*graph, plan, "b"), SlotOf(*graph, plan, "a"));
  // Both operands of c die there; it takes the first.
  EXPECT_EQ(SlotOf(*graph, plan, "c"), SlotOf(*graph, plan, "b"));
  // mul reads c through two ports: only one of them would be the pair.
  EXPECT_NE(SlotOf(*graph, plan, "d"), SlotOf(*graph, plan, "c"));
}

TEST(MemoryPlan, ReshapeSharesItsOperandsBytes) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[4,8]) {
    %a = neg(%x)
    %r = reshape(%a) {shape=[32]}
    %b = exp(%r)
    %c = exp(%a)
    return %b, %c
  })");
  const MemoryPlan plan = PlanAndCheck(*graph);
  EXPECT_EQ(SlotOf(*graph, plan, "r"), SlotOf(*graph, plan, "a"));
  EXPECT_FALSE(plan.nodes[2].runs);
  EXPECT_EQ(plan.arena_bytes, 128);
}

TEST(MemoryPlan, ReshapedOutputIsComputedInPlace) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[4,8]) {
    %a = neg(%x)
    %r = reshape(%a) {shape=[32]}
    return %r, %a, %x
  })");
  const MemoryPlan plan = PlanAndCheck(*graph);
  EXPECT_EQ(SlotOf(*graph, plan, "a"), (Slot{Space::kOutput, 0, 0, 128}));
  ASSERT_EQ(plan.output_copies.size(), 2u);  // the same value again, and an input
  EXPECT_EQ(plan.output_copies[0].output, 1);
  EXPECT_EQ(plan.output_copies[1].from, (Slot{Space::kInput, 0, 0, 128}));
  EXPECT_EQ(plan.arena_bytes, 0);
}

constexpr const char kSgdStep[] = R"(graph @g(%x: f32[4], %g: f32[4]) {
    %w = variable "w" : f32[4]
    %lr = constant {value=dense<f32[]>(0.1)} : f32[]
    %one = constant {value=dense<f32[]>(1)} : f32[]
    %yes = constant {value=dense<bool[]>(true)} : bool[]
    %step = constant {value=dense<i64[]>(1)} : i64[]
    %y = mul(%x, %w)
    %next = sgd_update(%w, %g, %lr, %one, %one, %yes, %step)
    commit "w" = %next
    return %y
  })";

TEST(MemoryPlan, WritesAVariableInPlace) {
  const auto graph = ParseOrDie(kSgdStep);
  const MemoryPlan plan = PlanAndCheck(*graph);
  EXPECT_EQ(SlotOf(*graph, plan, "next"), (Slot{Space::kVariable, 0, 0, 16}));
  EXPECT_TRUE(plan.commit_copies.empty());
  EXPECT_EQ(plan.variables_in_place, 1);

  MemoryPlanOptions options;
  options.write_variables_in_place = false;
  const MemoryPlan copied = PlanAndCheck(*graph, options);
  ASSERT_EQ(copied.commit_copies.size(), 1u);
  EXPECT_FALSE(copied.commit_copies[0].staged);
}

// Each graph has one reason why "w" must not be written before the end.
TEST(MemoryPlan, CopiesWhereTheOldValueIsStillNeeded) {
  const std::pair<const char*, const char*> cases[] = {
      {"a later reader", R"(graph @g(%g: f32[4]) {
        %w = variable "w" : f32[4]
        %next = sub(%w, %g)
        %y = neg(%w)
        commit "w" = %next
        return %y
      })"},
      {"a later reader of a reshape", R"(graph @g(%g: f32[4]) {
        %w = variable "w" : f32[4]
        %r = reshape(%w) {shape=[2,2]}
        %next = sub(%w, %g)
        %y = neg(%r)
        commit "w" = %next
        return %y
      })"},
      {"the old value is an output", R"(graph @g(%g: f32[4]) {
        %w = variable "w" : f32[4]
        %next = sub(%w, %g)
        commit "w" = %next
        return %w
      })"},
      {"the new value is an output", R"(graph @g(%g: f32[4]) {
        %w = variable "w" : f32[4]
        %next = sub(%w, %g)
        commit "w" = %next
        return %next
      })"},
      {"a later node may fault", R"(graph @g(%g: f32[4], %i: i64[2]) {
        %w = variable "w" : f32[4]
        %next = sub(%w, %g)
        %y = gather(%g, %i)
        commit "w" = %next
        return %y
      })"},
      {"the writer may fault", R"(graph @g(%g: f32[4], %i: i64[4]) {
        %w = variable "w" : f32[4]
        %next = gather(%g, %i)
        commit "w" = %next
        return %g
      })"},
      {"the writer reads it, and not in place", R"(graph @g(%g: f32[2,2]) {
        %w = variable "w" : f32[2,2]
        %next = matmul(%w, %g)
        commit "w" = %next
        return %g
      })"},
      {"the writer reads it twice", R"(graph @g(%g: f32[4]) {
        %w = variable "w" : f32[4]
        %next = mul(%w, %w)
        commit "w" = %next
        return %g
      })"},
      {"another variable takes the old value", R"(graph @g(%g: f32[4]) {
        %w = variable "w" : f32[4]
        variable "before" {kind="buffer"} : f32[4]
        commit "before" = %w
        %next = sub(%w, %g)
        commit "w" = %next
        return %g
      })"},
  };
  for (const auto& [reason, text] : cases) {
    SCOPED_TRACE(reason);
    const auto graph = ParseOrDie(text);
    const MemoryPlan plan = PlanAndCheck(*graph);
    EXPECT_EQ(plan.variables_in_place, 0);
    EXPECT_FALSE(plan.commit_copies.empty());
  }
}

TEST(MemoryPlan, StagesVariablesThatSwap) {
  const auto graph = ParseOrDie(R"(graph @g() {
    %a = variable "a" : f32[4]
    %b = variable "b" : f32[4]
    commit "a" = %b
    commit "b" = %a
    return %a
  })");
  const MemoryPlan plan = PlanAndCheck(*graph);
  ASSERT_EQ(plan.commit_copies.size(), 2u);
  EXPECT_TRUE(plan.commit_copies[0].staged);
  EXPECT_NE(plan.commit_copies[0].staging_offset, plan.commit_copies[1].staging_offset);
}

TEST(MemoryPlan, CommitOfTheOldValueCopiesNothing) {
  const auto graph = ParseOrDie(R"(graph @g() {
    %a = variable "a" : f32[4]
    commit "a" = %a
    return %a
  })");
  EXPECT_TRUE(PlanAndCheck(*graph).commit_copies.empty());
}

TEST(MemoryPlan, ScratchLivesForOneStep) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[32]) {
    %a = neg(%x)
    %b = exp(%a)
    %y = neg(%b)
    return %y
  })");
  MemoryPlanOptions options;
  options.workspace_bytes = [](const ir::Node& node) -> int64_t {
    return node.op().name == "exp" ? 1000 : 0;
  };
  const MemoryPlan plan = PlanAndCheck(*graph, options);
  EXPECT_EQ(plan.arena_bytes, 128 + 1024);
  EXPECT_EQ(plan.nodes[2].workspace_bytes, 1000);
  EXPECT_EQ(plan.nodes[1].workspace_bytes, 0);
}

TEST(MemoryPlan, EmptyTensorsNeedNoMemory) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[0,4]) {
    %a = neg(%x)
    %y = exp(%a)
    return %y
  })");
  EXPECT_EQ(PlanAndCheck(*graph).arena_bytes, 0);
}

}  // namespace
}  // namespace halftone::passes
