// An operand is overwritten only where its elements lie where the result's do.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/memory_plan_check.h"

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

constexpr char kStep[] = R"(graph @g(%x: f32[4]) {
  %w = variable "w" : f32[4]
  %low = cast(%w) {kept=true, to=f16} : f16[4]
  %low_32 = cast(%low) {to=f32} : f32[4]
  %y = mul(%x, %low_32)
  %next = sub(%w, %y)
  commit "w" = %next
  return %y
})";

TEST(MemoryPlanInPlace, KeptValuesLieBesideTheArenaAndDoNotRun) {
  auto graph = ir::Parse(kStep);
  ASSERT_TRUE(graph.ok());
  const MemoryPlan plan = PlanMemory(**graph);
  EXPECT_TRUE(CheckMemoryPlan(**graph, plan).ok());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if ((*graph)->nodes()[i]->name() != "low") continue;
    EXPECT_FALSE(plan.nodes[i].runs);
    EXPECT_EQ(plan.nodes[i].outputs[0], (Slot{Slot::Space::kKept, 0, 0, 8}));
  }
  // A plan that runs it after all is found, and one that writes over it.
  MemoryPlanOptions options;
  options.keep_casts = false;
  const MemoryPlan running = PlanMemory(**graph, options);
  EXPECT_TRUE(CheckMemoryPlan(**graph, running, options).ok());
  EXPECT_EQ(Message(CheckMemoryPlan(**graph, running)),
            "memory plan: cast(%low): is not where kept values are");
  MemoryPlan wrong = plan;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if ((*graph)->nodes()[i]->name() == "y") {
      wrong.nodes[i].outputs[0] = {Slot::Space::kKept, 0, 0, 16};
    }
  }
  EXPECT_EQ(Message(CheckMemoryPlan(**graph, wrong)), "memory plan: mul(%y): writes a kept value");
}

// The update has written the cast for the next step when %late reads it.
TEST(MemoryPlanInPlace, CheckerSeesAKeptCastReadAfterItsUpdate) {
  constexpr char kUpdate[] = R"(graph @g(%g: f32[4], %r: f32[], %ok: bool[], %n: i64[]) {
    %w = variable "w" : f32[4]
    %low = cast(%w) {kept=true, to=f16} : f16[4]
    %early = neg(%low) : f16[4]
    %next = sgd_update(%w, %g, %r, %r, %r, %ok, %n) {low=f16} : f32[4]
    commit "w" = %next
    return %early
  })";
  auto graph = ir::Parse(kUpdate);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(CheckMemoryPlan(**graph, PlanMemory(**graph)).ok());
  std::string late = kUpdate;
  late.replace(late.find("return %early"), 13,
               "%late = exp(%low) : f16[4]\n    return %early, %late");
  graph = ir::Parse(late);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Message(CheckMemoryPlan(**graph, PlanMemory(**graph))),
            "memory plan: exp(%late): reads %low, whose bytes hold the next variable \"w\"");
}

TEST(MemoryPlanInPlace, OnlyNodesThatMayWriteAVariable) {
  const Planned anyone = Plan(kStep);
  EXPECT_EQ(anyone.SlotOf("next").space, Slot::Space::kVariable);
  MemoryPlanOptions options;
  options.may_write_variable = [](const ir::Node& node) { return node.op().name != "sub"; };
  const MemoryPlan plan = PlanMemory(*anyone.graph, options);
  EXPECT_EQ(plan.variables_in_place, 0);
  EXPECT_EQ(plan.commit_copies.size(), 1u);
  EXPECT_TRUE(CheckMemoryPlan(*anyone.graph, plan, options).ok());
  EXPECT_EQ(Message(CheckMemoryPlan(*anyone.graph, anyone.plan, options)),
            "memory plan: sub(%next): may not write variable \"w\"");
}

}  // namespace
}  // namespace halftone::passes
