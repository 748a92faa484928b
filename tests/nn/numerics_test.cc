// What a graph allows kernels: TF32, sums in any order, weight gradients of 16 bit.
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

// Of the compiled graph: the dtypes of its convolutions' weight gradients, and how many casts to f32 read them.
struct WeightGradients {
  std::vector<DType> dtypes;
  int casts = 0;
};
WeightGradients WeightGradientsOf(const ir::Graph& compiled) {
  WeightGradients found;
  for (const auto& node : compiled.nodes()) {
    if (node->op().name == "conv2d_grad_weight") found.dtypes.push_back(node->output_type().dtype);
    if (node->op().name == "cast" && node->input(0).node->op().name == "conv2d_grad_weight") {
      EXPECT_EQ(node->output_type().dtype, DType::kF32);
      ++found.casts;
    }
  }
  return found;
}

TEST_F(Numerics, WeightGradientsStayLowOnRequest) {
  for (const DType low : {DType::kF16, DType::kBF16}) {
    graph_.config.enable_amp(true, {.dtype = low, .trim = false});
    for (const bool allowed : {false, true}) {
      graph_.config.allow_low_weight_gradients = allowed;
      EXPECT_EQ(Attributes("low_result"), (Found{{"conv2d_grad_weight", allowed}}));
      const WeightGradients found = WeightGradientsOf(*graph_.compiled_graph());
      EXPECT_THAT(found.dtypes, ::testing::ElementsAre(allowed ? low : DType::kF32));
    }
  }
  graph_.config.enable_amp(false);
  EXPECT_EQ(Attributes("low_result"), (Found{{"conv2d_grad_weight", false}}));
}

// dw is the scale times 4/3 everywhere, dy the scale / 48: at 2^16 only a rounded dw is infinite.
TEST(LowWeightGradients, TheScalerFindsWhatTheRoundingMadeInfinite) {
  for (const bool low : {false, true}) {
    Conv2d conv(2, 3, 3, {.bias = false});
    FnGraph graph;
    graph.add_module("conv", conv);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
    const ScalerHandle scaler = graph.set_grad_scaler(amp::GradScaler({.init_scale = 65536.0}));
    graph.config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
    graph.config.allow_low_weight_gradients = low;
    graph.fn = [&](const Values& in) -> Values {
      const Value loss = mean(cast(conv(in[0]), DType::kF32));
      loss.backward();
      return {loss};
    };
    const Tensor x = Tensor::Full(DType::kF32, {1, 2, 6, 6}, 4);
    const double before = Call1(graph, {x}).at(0);
    EXPECT_EQ(graph.last_step_skipped(), low);
    EXPECT_EQ(scaler.scale(), low ? 32768 : 65536);
    EXPECT_EQ(Call1(graph, {x}).at(0) == before, low);
    EXPECT_FALSE(graph.last_step_skipped());
    EXPECT_LT(Call1(graph, {x}).at(0), before) << "it trains";
  }
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
