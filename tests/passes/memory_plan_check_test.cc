#include "halftone/passes/memory/memory_plan_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "halftone/graph/ir/text.h"

namespace halftone::passes {
namespace {

using ::testing::HasSubstr;
using Space = Slot::Space;

// The checker must see a planted mistake of every kind.
class PlantedMistake : public ::testing::Test {
 protected:
  std::string Refusal(const std::string& text,
                      const std::function<void(ir::Graph&, MemoryPlan&)>& plant) {
    const auto graph = ir::Parse(text);
    HT_CHECK(graph.ok(), "a graph of the test does not parse");
    MemoryPlan plan = PlanMemory(**graph);
    EXPECT_TRUE(CheckMemoryPlan(**graph, plan).ok());
    plant(**graph, plan);
    const absl::Status status = CheckMemoryPlan(**graph, plan, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return Message(status);
  }
};

constexpr const char kChain[] = R"(graph @g(%x: f32[4,4]) {
    %a = exp(%x)
    %b = matmul(%a, %a)
    %c = matmul(%b, %a)
    %y = neg(%c)
    return %y
  })";

TEST_F(PlantedMistake, TwoLiveValuesOverlap) {
  EXPECT_EQ(Refusal(kChain,
                    [](ir::Graph&, MemoryPlan& plan) {
                      plan.nodes[3].outputs[0] = plan.nodes[1].outputs[0];  // c over a
                    }),
            "memory plan: matmul(%c): writes output 0 over operand 1");
  EXPECT_EQ(Refusal(R"(graph @g(%x: f32[4,4]) {
              %a = exp(%x)
              %b = matmul(%x, %x)
              %y = add(%b, %a)
              return %y
            })",
                    [](ir::Graph&, MemoryPlan& plan) {
                      plan.nodes[2].outputs[0] = plan.nodes[1].outputs[0];
                    }),
            "memory plan: add(%y): reads %a, whose bytes hold %b");
}

TEST_F(PlantedMistake, PartialOverlap) {
  EXPECT_THAT(Refusal(R"(graph @g(%x: f32[8,4], %z: f32[4,8]) {
              %a = exp(%x)
              %b = matmul(%x, %z)
              %c = matmul(%b, %a)
              return %c
            })",
                      [](ir::Graph&, MemoryPlan& plan) {
                        plan.nodes[3].outputs[0].offset = 64;  // b: 64..320
                        plan.nodes[2].outputs[0].offset = 0;   // a: 0..128
                        plan.arena_bytes = 512;
                      }),
              HasSubstr("reads %a, whose bytes hold %b"));
}

TEST_F(PlantedMistake, ScratchOverAnOperand) {
  EXPECT_THAT(Refusal(kChain,
                      [](ir::Graph&, MemoryPlan& plan) {
                        plan.nodes[2].workspace_bytes = 8;
                        plan.nodes[2].workspace_offset = plan.nodes[1].outputs[0].offset;
                      }),
              HasSubstr("matmul(%b): writes output -1 over operand"));
}

TEST_F(PlantedMistake, OutsideTheArenaOrMisaligned) {
  const std::string text = "are misaligned or outside the arena";
  EXPECT_THAT(Refusal(kChain, [](ir::Graph&, MemoryPlan& plan) { plan.arena_bytes -= 64; }),
              HasSubstr(text));
  EXPECT_THAT(Refusal(kChain,
                      [](ir::Graph&, MemoryPlan& plan) {
                        plan.nodes[1].outputs[0].offset += 4;
                        plan.arena_bytes += 64;
                      }),
              HasSubstr(text));
}

TEST_F(PlantedMistake, WrongSize) {
  EXPECT_EQ(
      Refusal(kChain, [](ir::Graph&, MemoryPlan& plan) { plan.nodes[1].outputs[0].bytes = 60; }),
      "memory plan: exp(%a): output 0 has 60 bytes; expected 64");
}

TEST_F(PlantedMistake, InputIsWritten) {
  EXPECT_EQ(Refusal(kChain,
                    [](ir::Graph&, MemoryPlan& plan) {
                      plan.nodes[1].outputs[0] = {Space::kInput, 0, 0, 64};
                    }),
            "memory plan: exp(%a): writes a graph input or a constant");
}

TEST_F(PlantedMistake, VariableIsWrittenTooEarly) {
  EXPECT_EQ(Refusal(R"(graph @g(%g: f32[4]) {
              %w = variable "w" : f32[4]
              %next = sub(%w, %g)
              %y = neg(%w)
              commit "w" = %next
              return %y
            })",
                    [](ir::Graph&, MemoryPlan& plan) {
                      plan.nodes[2].outputs[0] = {Space::kVariable, 0, 0, 16};
                      plan.commit_copies.clear();
                    }),
            "memory plan: neg(%y): reads variable \"w\", whose bytes hold %next");
}

TEST_F(PlantedMistake, VariableIsWrittenBeforeAPossibleFault) {
  EXPECT_EQ(Refusal(R"(graph @g(%g: f32[4], %i: i64[2]) {
              %w = variable "w" : f32[4]
              %next = sub(%w, %g)
              %y = gather(%g, %i)
              commit "w" = %next
              return %y
            })",
                    [](ir::Graph&, MemoryPlan& plan) {
                      plan.nodes[3].outputs[0] = {Space::kVariable, 0, 0, 16};
                      plan.commit_copies.clear();
                    }),
            "memory plan: gather(%y): may fault after variable \"w\" is written");
}

TEST_F(PlantedMistake, CopyIsMissing) {
  EXPECT_EQ(Refusal(R"(graph @g(%g: f32[4]) {
              %w = variable "w" : f32[4]
              commit "w" = %g
              return %w
            })",
                    [](ir::Graph&, MemoryPlan& plan) { plan.commit_copies.clear(); }),
            "memory plan: reads %g, whose bytes hold variable \"w\"");
  EXPECT_EQ(Refusal("graph @g(%x: f32[4]) {\n  return %x\n}\n",
                    [](ir::Graph&, MemoryPlan& plan) { plan.output_copies.clear(); }),
            "memory plan: reads %x, whose bytes hold nothing");
}

TEST_F(PlantedMistake, SwapWithoutStaging) {
  EXPECT_EQ(Refusal(R"(graph @g() {
              %a = variable "a" : f32[4]
              %b = variable "b" : f32[4]
              commit "a" = %b
              commit "b" = %a
              return %a
            })",
                    [](ir::Graph&, MemoryPlan& plan) {
                      for (CommitCopy& copy : plan.commit_copies) copy.staged = false;
                    }),
            "memory plan: reads variable \"a\", whose bytes hold variable \"b\"");
}

}  // namespace
}  // namespace halftone::passes
