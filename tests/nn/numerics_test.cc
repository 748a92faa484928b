// What a graph allows kernels: TF32, and sums in any order.
#include <map>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::halftone::testing::RandomTensor;

class Numerics : public ::testing::Test {
 protected:
  Numerics() : conv_(2, 3, 3), fc_(48, 2) {
    graph_.add_module("conv", conv_);
    graph_.add_module("fc", fc_);
    graph_.add_optimizer(optim::SGD(graph_.parameters(), {.lr = 0.1}));
    graph_.fn = [this](const Values& in) -> Values {
      const Value loss = mean(fc_(flatten(conv_(in[0]))));
      loss.backward();
      return {loss};
    };
  }

  // Of the compiled graph: the nodes with the attribute, by op, and their value.
  std::multimap<std::string, bool> Attributes(const char* name) {
    std::multimap<std::string, bool> found;
    const absl::Status status = graph_.compile({RandomTensor(DType::kF32, {1, 2, 6, 6}, 1)});
    EXPECT_TRUE(status.ok()) << status;
    for (const auto& node : graph_.compiled_graph()->nodes()) {
      if (node->attrs().Has(name)) found.emplace(node->op().name, node->attrs().GetBool(name));
    }
    return found;
  }

  Conv2d conv_;
  Linear fc_;
  FnGraph graph_;
};

using Found = std::multimap<std::string, bool>;

TEST_F(Numerics, NothingIsAllowedUnlessAsked) {
  // Of linear, the product for its input and that for its weight.
  EXPECT_EQ(Attributes("tf32"), (Found{{"conv2d", false},
                                       {"conv2d_grad_weight", false},
                                       {"linear", false},
                                       {"matmul", false},
                                       {"matmul", false}}));
  EXPECT_EQ(Attributes("deterministic"), (Found{{"conv2d", true}, {"conv2d_grad_weight", true}}));
}

TEST_F(Numerics, StandOnEveryNodeThatTheyConcern) {
  graph_.config.allow_tf32 = true;
  graph_.config.deterministic = false;
  EXPECT_EQ(Attributes("tf32"), (Found{{"conv2d", true},
                                       {"conv2d_grad_weight", true},
                                       {"linear", true},
                                       {"matmul", true},
                                       {"matmul", true}}));
  EXPECT_EQ(Attributes("deterministic"), (Found{{"conv2d", false}, {"conv2d_grad_weight", false}}));
}

TEST_F(Numerics, SixteenBitOperandsAreNotConcerned) {
  graph_.config.allow_tf32 = true;
  graph_.config.enable_amp(true, {.dtype = DType::kBF16, .trim = false});
  for (const auto& [op, allowed] : Attributes("tf32")) EXPECT_FALSE(allowed) << op;
}

TEST_F(Numerics, AChangeCompilesAnewAndBackFindsTheFirst) {
  Attributes("tf32");
  const ir::Graph* strict = graph_.compiled_graph();
  graph_.config.allow_tf32 = true;
  Attributes("tf32");
  EXPECT_NE(graph_.compiled_graph(), strict);
  graph_.config.allow_tf32 = false;
  Attributes("tf32");
  EXPECT_EQ(graph_.compiled_graph(), strict);
}

}  // namespace
}  // namespace halftone::nn
