#include "halftone/kernels/reference_evaluator.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/tests/support/literals.h"

namespace halftone::kernels {
namespace {

using testing::Is;
using testing::Vec;

TEST(ReferenceEvaluator, RunsANode) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Expr x = b.Input("x", {DType::kF32, Shape{2}});
  const ir::Node& node = *(x + x).value().node;
  const auto y =
      ReferenceEvaluator().Evaluate(node, {Vec({1, 2}, DType::kF32), Vec({3, 4}, DType::kF32)});
  ASSERT_TRUE(y.ok());
  EXPECT_THAT((*y)[0], Is({4, 6}));
}

TEST(ReferenceEvaluator, GivesConstants) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Node& node = *b.Constant(Vec({7, 8})).value().node;
  EXPECT_THAT((*ReferenceEvaluator().Evaluate(node, {}))[0], Is({7, 8}));
}

// Tensors are plain whatever the node's layouts.
TEST(ReferenceEvaluator, TakesPlainTensorsForAnyLayout) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::ValueType type = {DType::kF64, Shape{1, 2, 1, 2}, ir::Layout::kChannelsLast};
  const ir::Expr x = b.Input("x", type);
  ir::Node& node = *b.Op("neg", {x}).value().node;
  x.value().node->mutable_output_types()[0] = type;
  node.mutable_output_types()[0] = type;
  const Tensor in = Tensor::Of(DType::kF64, type.shape, {1, 2, 3, 4});
  const auto y = ReferenceEvaluator().Evaluate(node, {in});
  ASSERT_TRUE(y.ok());
  EXPECT_THAT((*y)[0], Is(type.shape, {-1, -2, -3, -4}));
}

TEST(ReferenceEvaluator, Refuses) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Expr x = b.Input("x", {DType::kF32, Shape{2}});
  const ir::Node& neg = *(-x).value().node;
  const ReferenceEvaluator evaluator;
  const auto message = [&](const ir::Node& node, std::vector<Tensor> inputs) {
    return Message(evaluator.Evaluate(node, inputs).status());
  };
  EXPECT_EQ(message(neg, {}), "neg(%neg): 0 tensors; expected 1");
  EXPECT_EQ(message(neg, {Vec({1}, DType::kF32)}), "neg(%neg): input 0 is f32[1]; expected f32[2]");
  EXPECT_EQ(message(neg, {Vec({1, 2})}), "neg(%neg): input 0 is f64[2]; expected f32[2]");
  EXPECT_EQ(message(*x.value().node, {}), "input(%x) of (): no kernel is registered");
}

TEST(ReferenceEvaluator, ReportsFaults) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Expr idx = b.Input("i", {DType::kI64, Shape{1}});
  const ir::Node& node = *b.Op("gather", {b.Input("x", {DType::kF32, Shape{0}}), idx}).value().node;
  const auto y = ReferenceEvaluator().Evaluate(node, {Vec({}, DType::kF32), Vec({4}, DType::kI64)});
  EXPECT_EQ(y.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(y.status()),
            "gather(%gather): index 4 at [0] out of range; there is nothing to index");
}

}  // namespace
}  // namespace halftone::kernels
