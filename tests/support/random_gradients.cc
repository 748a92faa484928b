#include "halftone/tests/support/random_gradients.h"

#include <gtest/gtest.h>

#include <vector>

#include "halftone/graph/ir/builder.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tests/support/random_graph.h"

namespace halftone::testing {

std::unique_ptr<ir::Graph> RandomGradients(uint64_t seed) {
  std::unique_ptr<ir::Graph> graph = RandomGraph(seed, {.steps = 40, .casts = false});
  ir::Builder b(graph.get());
  ir::Expr loss;
  std::vector<ir::Expr> operands;
  for (const ir::Output& output : graph->outputs()) {
    if (output.value.dtype() != DType::kF32) continue;
    std::vector<int64_t> axes;
    for (int i = 0; i < output.value.shape().rank(); ++i) axes.push_back(i);
    const ir::Expr sum = b.Op("mean", {b.Wrap(output.value)}, {{"axes", axes}});
    loss = loss.valid() ? loss + sum : sum;
  }
  if (!loss.valid()) return nullptr;
  operands.push_back(loss);
  for (const auto& node : graph->nodes()) {
    const bool is_source = passes::IsOp(*node, "input") || passes::IsOp(*node, "variable");
    if (is_source && node->output_type().dtype == DType::kF32) {
      operands.push_back(b.Wrap(node->output()));
    }
  }
  if (operands.size() == 1) return nullptr;
  for (const ir::Expr& dx : b.Make("gradient", operands)) {
    graph->outputs().push_back({"", dx.value()});
  }
  EXPECT_TRUE(b.status().ok()) << b.status();
  EXPECT_TRUE(graph->Sort().ok());
  return graph;
}

}  // namespace halftone::testing
