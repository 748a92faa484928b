// Traits of single records: refinements of AMP classes (each with a twin that does not fire), cost.
#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

// What the record says of the node `name` in a graph text; "" if its class stays.
std::string RefinedNn(const std::string& text, const std::string& name) {
  const auto graph = ir::Parse(text);
  if (!graph.ok()) return Message(graph.status());
  const ir::Node* node = (*graph)->FindNode(name);
  const auto refinement = node->op().amp.refine(*node, DType::kBF16);
  return refinement ? Concat(ir::Name(refinement->amp_class), ": ", refinement->reason) : "";
}

constexpr const char* kDenied = "deny: feeds a loss: log probabilities keep few digits in 16 bit";

TEST(LogSoftmaxTrait, IsDeniedBeforeALoss) {
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[2,3], %t: f32[2,3]) {
    %p = log_softmax(%x)
    %m = mul(%p, %t)
    %l = mean(%m) {axes=[]}
    %n = neg(%l)
    backward(%n)
    return %x
  })",
                      "p"),
            kDenied);
  // An evaluation graph returns the same number.
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[2,3], %t: f32[2,3]) {
    %p = log_softmax(%x)
    %m = mul(%p, %t)
    %l = sum(%m) {axes=[]}
    return %l
  })",
                      "p"),
            kDenied);
}

TEST(LogSoftmaxTrait, StaysElsewhere) {
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[2,3]) {
    %p = log_softmax(%x)
    return %p
  })",
                      "p"),
            "");
  // A matmul lies between: the log probabilities are features.
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[2,3], %w: f32[3,4]) {
    %p = log_softmax(%x)
    %h = matmul(%p, %w)
    %l = mean(%h) {axes=[]}
    backward(%l)
    return %l
  })",
                      "p"),
            "");
  // Only the class picked by argmax goes on.
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[2,3]) {
    %p = log_softmax(%x)
    %i = argmax(%p) {axis=1}
    %c = cast(%i) {to=f32}
    %l = mean(%c) {axes=[]}
    return %l
  })",
                      "p"),
            "");
}

TEST(Conv2dTrait, DepthwiseFollowsItsNeighbours) {
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[1,4,5,5], %w: f32[4,1,3,3]) {
    %y = conv2d(%x, %w) {groups=4}
    return %y
  })",
                      "y"),
            "infer: depthwise: bound by memory, so 16 bit pays only beside 16 bit");
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[1,4,5,5], %w: f32[4,2,3,3]) {
    %y = conv2d(%x, %w) {groups=2}
    return %y
  })",
                      "y"),
            "");
  EXPECT_EQ(RefinedNn(R"(graph @g(%x: f32[1,1,5,5], %w: f32[4,1,3,3]) {
    %y = conv2d(%x, %w)
    return %y
  })",
                      "y"),
            "");
}

ir::Cost CostOf(const std::string& op, const std::vector<ir::ValueType>& types,
                ir::Attributes attrs = {}) {
  ir::Graph graph;
  ir::Builder b(&graph);
  std::vector<ir::Expr> inputs;
  for (const ir::ValueType& type : types) inputs.push_back(b.Input("x", type));
  const ir::Expr y = b.Op(op, inputs, std::move(attrs));
  HT_CHECK(y.valid(), "a cost needs a node");
  return y.value().node->op().cost(*y.value().node);
}

TEST(Cost, CountsMultiplicationsAndAdditions) {
  const auto f32 = [](Shape shape) { return ir::ValueType{DType::kF32, shape}; };
  // 2 m n k flops; (m k + k n + m n) floats.
  const ir::Cost matmul = CostOf("matmul", {f32({5, 3, 7}), f32({7, 4})});
  EXPECT_EQ(matmul.flops, 2.0 * 5 * 3 * 4 * 7);
  EXPECT_EQ(matmul.bytes, 4.0 * (105 + 28 + 60));
  const ir::Cost linear = CostOf("linear", {f32({6, 7}), f32({4, 7}), f32({4})});
  EXPECT_EQ(linear.flops, 2.0 * 6 * 4 * 7 + 6 * 4);
  // x 2x4x6x6, w 6x2x3x3 in two groups, y 2x6x4x4.
  const ir::Cost conv =
      CostOf("conv2d", {f32({2, 4, 6, 6}), f32({6, 2, 3, 3})}, {{"groups", int64_t{2}}});
  EXPECT_EQ(conv.flops, 2.0 * (2 * 6 * 4 * 4) * (2 * 3 * 3));
  EXPECT_EQ(conv.bytes, 4.0 * (288 + 108 + 192));
  const ir::Cost back = CostOf("conv2d_grad_weight", {f32({2, 4, 6, 6}), f32({2, 6, 4, 4})},
                               {{"groups", int64_t{2}}, {"shape", Ints{6, 2, 3, 3}}});
  EXPECT_EQ(back.flops, conv.flops);
  const ir::Cost volume = CostOf("conv3d", {f32({2, 4, 3, 6, 6}), f32({6, 2, 2, 3, 3}), f32({6})},
                                 {{"groups", int64_t{2}}});
  EXPECT_EQ(volume.flops, (2.0 * 2 * 2 * 3 * 3 + 1) * (2 * 6 * 2 * 4 * 4));
}

}  // namespace
}  // namespace halftone::testing
