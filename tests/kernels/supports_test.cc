// Refusals that kernels of all devices share, for nodes whose operands lie in one way or another.
#include "halftone/kernels/supports.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {
namespace {

constexpr ir::Layout kPlain = ir::Layout::kPlain, kLast = ir::Layout::kChannelsLast;

class SupportsTest : public ::testing::Test {
 protected:
  // add(a, b), its operands and its result in these layouts.
  const ir::Node& Add(ir::Layout a, ir::Layout b, ir::Layout y) {
    ir::Builder builder(&graph_);
    const ir::Expr left = builder.Input("a", {DType::kF32, Shape{1, 2, 3, 4}});
    const ir::Expr right = builder.Input("b", {DType::kF32, Shape{1, 2, 3, 4}});
    ir::Node* node = builder.Op("add", {left, right}).value().node;
    // As assign-layouts leaves them; the ops themselves have no say in it.
    left.value().node->mutable_output_types()[0].layout = a;
    right.value().node->mutable_output_types()[0].layout = b;
    node->mutable_output_types()[0].layout = y;
    return *node;
  }
  ir::Graph graph_;
};

TEST_F(SupportsTest, PlainInputsLooksAtEveryInput) {
  EXPECT_TRUE(PlainInputs(Add(kPlain, kPlain, kLast)).ok());
  EXPECT_EQ(PlainInputs(Add(kLast, kPlain, kPlain)), Unimplemented("needs plain layout"));
  EXPECT_EQ(PlainInputs(Add(kPlain, kLast, kPlain)), Unimplemented("needs plain layout"));
}

TEST_F(SupportsTest, PlainThroughoutLooksAtOutputsToo) {
  EXPECT_TRUE(PlainThroughout(Add(kPlain, kPlain, kPlain)).ok());
  EXPECT_EQ(PlainThroughout(Add(kPlain, kPlain, kLast)), Unimplemented("needs plain layout"));
  EXPECT_EQ(PlainThroughout(Add(kPlain, kLast, kPlain)), Unimplemented("needs plain layout"));
}

TEST_F(SupportsTest, LayoutOfInputComparesFirstWithFirst) {
  EXPECT_TRUE(LayoutOfInput(Add(kLast, kPlain, kLast)).ok());
  EXPECT_TRUE(LayoutOfInput(Add(kPlain, kLast, kPlain)).ok());
  EXPECT_EQ(LayoutOfInput(Add(kLast, kLast, kPlain)), Unimplemented("layouts differ"));
}

TEST_F(SupportsTest, OneLayoutComparesAll) {
  EXPECT_TRUE(OneLayout(Add(kLast, kLast, kLast)).ok());
  EXPECT_TRUE(OneLayout(Add(kPlain, kPlain, kPlain)).ok());
  EXPECT_EQ(OneLayout(Add(kLast, kPlain, kLast)), Unimplemented("layouts differ"));
  EXPECT_EQ(OneLayout(Add(kLast, kLast, kPlain)), Unimplemented("layouts differ"));
}

}  // namespace
}  // namespace halftone::kernels
