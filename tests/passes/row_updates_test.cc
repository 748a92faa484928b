// Updates of rows write their tables in place, so that a step never copies one.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/pipeline.h"

namespace halftone::passes {
namespace {

std::unique_ptr<ir::Graph> Lowered(const std::string& text) {
  auto graph = ir::Parse(text);
  HT_CHECK(graph.ok(), "the test's graph parses");
  const kernels::ReferenceEvaluator evaluator;
  PassContext context;
  context.target = *kernels::FindFixedTarget("cpu-avx512bf16");
  context.evaluator = &evaluator;
  const absl::Status status = RunPipeline(**graph, context);
  EXPECT_TRUE(status.ok()) << status;
  return *std::move(graph);
}

// Two tables, a layer between them and the loss. Everything that may fault, the rows of both
// gradients included, comes before the first update.
std::string TwoTables(const std::string& rule, const std::string& clip, const std::string& sparse) {
  return R"(graph @g(%i: i64[3], %j: i64[3], %t: i64[3]) {
    %a = variable "a" : f32[1000,4]
    %b = variable "b" : f32[500,4]
    %w = variable "w" : f32[4,4]
    %x = embedding(%a, %i) )" +
         sparse + R"(
    %y = embedding(%b, %j) )" +
         sparse + R"(
    %xy = add(%x, %y)
    %h = linear(%xy, %w)
    %z = add(%h, %y)
    %l = cross_entropy(%z, %t)
    backward(%l)
    %n0, %a0 = optimizer() {name="tables", params=["a", "b"], rule=")" +
         rule + "\"" + clip + R"(}
    %n1, %a1 = optimizer() {name="rest", params=["w"], rule="sgd"}
    return %l
  })";
}

TEST(RowUpdates, WriteTablesInPlace) {
  for (const char* rule : {"sgd", "adagrad", "sparse_adam"}) {
    for (const char* clip : {"", ", clip_norm=1", ", skip_nonfinite=true"}) {
      const auto graph = Lowered(TwoTables(rule, clip, "{sparse=true}"));
      int updates = 0;
      for (const auto& node : graph->nodes()) {
        updates += node->op().name ==
                   Concat(rule == std::string("sparse_adam") ? "adam" : rule, "_update_rows");
        EXPECT_NE(node->op().name, "embedding_grad");
      }
      EXPECT_EQ(updates, 2);
      const MemoryPlan plan = PlanMemory(*graph);
      EXPECT_TRUE(plan.commit_copies.empty()) << rule << clip << "\n" << graph->ToString();
      EXPECT_LT(plan.arena_bytes, 500 * 4 * 4) << "there is no room for a table in it";
    }
  }
}

// The twin: dense gradients are tables.
TEST(RowUpdates, DenseGradientsAreAsLargeAsTheirTables) {
  const auto graph = Lowered(TwoTables("sgd", "", "{}"));
  EXPECT_GE(PlanMemory(*graph).arena_bytes, 1000 * 4 * 4);
}

}  // namespace
}  // namespace halftone::passes
