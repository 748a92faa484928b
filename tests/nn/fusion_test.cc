// Fusion as a user of nn::Graph sees it: one node in the compiled step, and every op by its name in
// what explains the step.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// relu(norm(linear(x))): 64 * 64 elements, enough to fuse.
class NormedLayer : public FnGraph {
 public:
  NormedLayer()
      : FnGraph([this](const Values& in) -> Values { return {relu(norm(layer(in[0])))}; }),
        layer(64, 64),
        norm(64) {
    add_module("layer", layer);
    add_module("norm", norm);
  }
  Linear layer;
  BatchNorm1d norm;
};

Tensor Ramp() {
  Tensor x = Tensor::Zeros(DType::kF32, {64, 64});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, static_cast<double>(i % 97) / 16 - 3);
  return x;
}

TEST(Fusion, KeepsBitsAndCanBeSwitchedOff) {
  NormedLayer fused, apart;
  apart.config.allow_fusion = false;
  const Tensor x = Ramp();
  const std::vector<Tensor> one = Call(fused, {x}), each = Call(apart, {x});
  EXPECT_THAT(fused.compiled_text(), HasSubstr("{body=\"relu(batch_norm_apply(%0"));
  EXPECT_THAT(apart.compiled_text(), AllOf(HasSubstr(" = batch_norm("), HasSubstr(" = relu("),
                                           Not(HasSubstr("fused")), Not(HasSubstr("no_fusion"))));
  EXPECT_TRUE(BitEqual(one.at(0), each.at(0)));
}

TEST(Fusion, TheTableOfMixedPrecisionHasEveryOp) {
  NormedLayer fused, apart;
  apart.config.allow_fusion = false;
  for (NormedLayer* graph : {&fused, &apart}) {
    graph->config.enable_amp(true, {.dtype = DType::kBF16});
    Call(*graph, {Ramp()});
    EXPECT_THAT(graph->amp_table(), AllOf(HasSubstr("norm/batch_norm "), HasSubstr("relu "),
                                          Not(HasSubstr("batch_norm_")), Not(HasSubstr("fused"))));
  }
  EXPECT_EQ(fused.amp_table(), apart.amp_table());
}

// Of 0 / 0 in the first op of what is one node, and of the same step under `allow_fusion = false`.
TEST(Fusion, TheFirstNonFiniteValueIsThatOfAnOp) {
  for (const bool fuse : {true, false}) {
    FnGraph graph([](const Values& in) -> Values { return {relu(neg(in[0] / in[0]))}; });
    graph.config.allow_fusion = fuse;
    const Tensor zeros = Tensor::Zeros(DType::kF32, {64, 64});
    Call(graph, {zeros});
    EXPECT_EQ(graph.compiled_text().find("fused(") != std::string::npos, fuse);
    const auto found = graph.first_nonfinite_node({zeros});
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(found->has_value());
    EXPECT_EQ((*found)->node, "div");
  }
}

}  // namespace
}  // namespace halftone::nn
