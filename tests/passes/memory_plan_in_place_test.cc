// An operand is overwritten only where its elements lie where the result's do.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/passes/memory_plan.h"
#include "halftone/passes/memory_plan_check.h"

namespace halftone::passes {
namespace {

struct Planned {
  std::unique_ptr<ir::Graph> graph;
  MemoryPlan plan;
  const Slot& SlotOf(const std::string& name) const {
    for (size_t i = 0; i < graph->nodes().size(); ++i) {
      if (graph->nodes()[i]->name() == name) return plan.nodes[i].outputs[0];
    }
    HT_CHECK(false, "no node of that name");
  }
};

Planned Plan(const std::string& text) {
  auto graph = ir::Parse(text);
  HT_CHECK(graph.ok(), "the test's graph parses");
  Planned planned{*std::move(graph), {}};
  planned.plan = PlanMemory(*planned.graph);
  return planned;
}

TEST(MemoryPlanInPlace, WritesOverAnOperandOfTheSameElements) {
  const Planned p = Plan(R"(graph @g(%x: i32[4], %y: i32[4]) {
    %a = neg(%x)
    %b = neg(%y)
    %c = add(%a, %b)
    %d = neg(%c)
    return %d
  })");
  EXPECT_EQ(p.SlotOf("c"), p.SlotOf("a"));
  EXPECT_GT(p.plan.operands_reused, 0);
}

// %a has the four bytes that %c needs, but every element of %c reads it.
TEST(MemoryPlanInPlace, SparesABroadcastOperandOfAsManyBytes) {
  const Planned p = Plan(R"(graph @g(%x: i32[1], %y: i32[4]) {
    %a = neg(%x)
    %b = neg(%y)
    %c = less(%b, %a)
    %d = logical_not(%c)
    return %d
  })");
  EXPECT_NE(p.SlotOf("c").offset, p.SlotOf("a").offset);
  EXPECT_TRUE(CheckMemoryPlan(*p.graph, p.plan).ok());
}

// The checker refuses a plan that does it all the same.
TEST(MemoryPlanInPlace, CheckerSeesABroadcastOperandOverwritten) {
  Planned p = Plan(R"(graph @g(%x: i32[1], %y: i32[4]) {
    %a = neg(%x)
    %b = neg(%y)
    %c = less(%b, %a)
    %d = logical_not(%c)
    return %d
  })");
  const Slot a = p.SlotOf("a");
  const_cast<Slot&>(p.SlotOf("c")).offset = a.offset;
  EXPECT_FALSE(CheckMemoryPlan(*p.graph, p.plan).ok());
}

}  // namespace
}  // namespace halftone::passes
