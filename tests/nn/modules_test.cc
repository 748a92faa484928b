// Modules: names, initial values, forward passes against their formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<std::string> Names(const std::vector<std::pair<std::string, Parameter>>& named) {
  std::vector<std::string> names;
  for (const auto& entry : named) names.push_back(entry.first);
  return names;
}

TEST(ModuleNames, ArePyTorchs) {
  EXPECT_THAT(Names(Linear(2, 3).named_parameters()), ElementsAre("weight", "bias"));
  EXPECT_THAT(Names(Linear(2, 3, false).named_parameters()), ElementsAre("weight"));
  EXPECT_THAT(Names(Conv2d(2, 3, 1).named_parameters()), ElementsAre("weight", "bias"));
  BatchNorm2d norm(3);
  EXPECT_THAT(Names(norm.named_parameters()), ElementsAre("weight", "bias"));
  EXPECT_THAT(Names(norm.named_buffers()),
              ElementsAre("running_mean", "running_var", "num_batches_tracked"));
  EXPECT_EQ(norm.num_batches_tracked.dtype(), DType::kI64);
  EXPECT_THAT(Names(LayerNorm({4, 5}).named_parameters()), ElementsAre("weight", "bias"));
  EXPECT_THAT(Names(Embedding(7, 2).named_parameters()), ElementsAre("weight"));
  EXPECT_EQ(Conv2d(4, 6, {3, 5}, {.groups = 2}).weight.shape(), (Shape{6, 2, 3, 5}));
  EXPECT_EQ(Linear(2, 3).weight.shape(), (Shape{3, 2}));
}

TEST(ModuleNames, NestedModulesJoinWithDots) {
  class Block : public Module {
   public:
    Block()
        : net_(Linear(2, 2), ReLU()), scale(Shape{2}, {ir::Initializer::Kind::kConstant, 2, 0}) {
      register_module("net", net_);
      register_parameter("scale", scale);
    }
    Value forward(const Value& x) override { return net_(x) * scale; }
    Sequential net_;
    Parameter scale;
  };
  Block block;
  EXPECT_THAT(Names(block.named_parameters()), ElementsAre("scale", "net.0.weight", "net.0.bias"));
  FnGraph graph([&](const Values& in) -> Values { return {block(in[0])}; });
  graph.add_module("block", block);
  ASSERT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {1, 2})}).ok());
  EXPECT_THAT(Names(graph.named_parameters()),
              ElementsAre("block.scale", "block.net.0.weight", "block.net.0.bias"));
  // The scope of a node is the path of its module.
  bool found = false;
  for (const auto& node : graph.compiled_graph()->nodes()) {
    found = found || node->path() == "block/net/0/linear";
  }
  EXPECT_TRUE(found) << graph.compiled_text();
}

TEST(ModuleNames, TwoMembersOfOneName) {
  class Twice : public Module {
   public:
    Twice() : a_(1, 1), b_(1, 1) {
      register_module("fc", a_);
      register_module("fc", b_);
    }
    Linear a_, b_;
  };
  EXPECT_EQ(Message(Twice().status()), "a module has two members named \"fc\"");
}

TEST(Initialisation, BoundsAndMomentsArePyTorchs) {
  Linear linear(100, 200);
  Conv2d conv(8, 32, 5, {.groups = 2});
  Embedding embedding(500, 40);
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("linear", linear);
  graph.add_module("conv", conv);
  graph.add_module("embedding", embedding);
  ASSERT_TRUE(graph.initialize().ok());
  const auto check_uniform = [](const Parameter& p, double bound) {
    const std::vector<double> values = p.value().ToVector();
    double sum_of_squares = 0;
    for (double v : values) {
      EXPECT_LE(std::abs(v), bound);
      sum_of_squares += v * v;
    }
    // A uniform distribution has variance bound^2 / 3.
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(sum_of_squares / n, bound * bound / 3, 4 * bound * bound / 3 / std::sqrt(n));
  };
  check_uniform(linear.weight, 1 / std::sqrt(100.0));
  check_uniform(linear.bias, 1 / std::sqrt(100.0));
  check_uniform(conv.weight, 1 / std::sqrt(4.0 * 25));
  check_uniform(conv.bias, 1 / std::sqrt(4.0 * 25));
  double mean = 0;
  double square = 0;
  for (double v : embedding.weight.value().ToVector()) {
    mean += v / 20000;
    square += v * v / 20000;
  }
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(20000.0));
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2.0 / 20000));
}

TEST(Initialisation, NormsStartAtOneAndZero) {
  BatchNorm2d batch(2);
  LayerNorm layer({2});
  for (const Parameter& p : {batch.weight, batch.running_var, layer.weight}) {
    EXPECT_THAT(p.value().ToVector(), ElementsAre(1, 1));
  }
  for (const Parameter& p : {batch.bias, batch.running_mean, layer.bias}) {
    EXPECT_THAT(p.value().ToVector(), ElementsAre(0, 0));
  }
}

TEST(ConstructorChecks, NameTheOption) {
  EXPECT_EQ(Message(Conv2d(3, 4, 3, {.groups = 2}).status()),
            "Conv2d: groups is 2; expected a divisor of 3 and 4 channels");
  EXPECT_EQ(Message(Conv2d(3, 4, {0, 3}).status()),
            "Conv2d: kernel height is 0; expected at least 1");
  EXPECT_EQ(Message(BatchNorm2d(0).status()),
            "BatchNorm2d: num_features is 0; expected at least 1");
  EXPECT_EQ(Message(Embedding(4, 2, {.padding_idx = 4}).status()),
            "Embedding: padding_idx is 4; expected 0..3");
  EXPECT_THAT(Message(LayerNorm({}).status()), HasSubstr("LayerNorm: normalized_shape is []"));
  EXPECT_THAT(Message(LayerNorm({-1}).status()), HasSubstr("LayerNorm: "));
}

TEST(BatchNorm, StatisticsInTrainingAndEvaluation) {
  BatchNorm2d norm(2, {.eps = 0, .momentum = 0.25});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  // Channel 0: 1 3 5 7, mean 4, biased variance 5, unbiased 20/3; channel 1: 0 0 2 2, mean 1,
  // biased 1, unbiased 4/3. Shape [2,2,1,2].
  const Tensor x = F32({2, 2, 1, 2}, {1, 3, 0, 0, 5, 7, 2, 2});
  const double r5 = std::sqrt(5.0);
  EXPECT_THAT(Call1(graph, {x}),
              Pointwise(DoubleNear(1e-6),
                        std::vector<double>{-3 / r5, -1 / r5, -1, -1, 1 / r5, 3 / r5, 1, 1}));
  EXPECT_THAT(norm.running_mean.value().ToVector(), ElementsAre(1, 0.25));
  EXPECT_THAT(
      norm.running_var.value().ToVector(),
      ElementsAre(DoubleNear(0.75 + 0.25 * 20 / 3, 1e-6), DoubleNear(0.75 + 0.25 * 4 / 3, 1e-6)));
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 1);

  graph.eval();
  ASSERT_TRUE(norm.running_mean.set_value(F32({2}, {3, 1})).ok());
  ASSERT_TRUE(norm.running_var.set_value(F32({2}, {4, 0.25})).ok());
  EXPECT_THAT(Call1(graph, {x}),
              Pointwise(DoubleNear(1e-6), std::vector<double>{-1, 0, -2, -2, 1, 2, 2, 2}));
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 1);
  EXPECT_THAT(norm.running_mean.value().ToVector(), ElementsAre(3, 1));
}

TEST(BatchNorm, CalledTwiceInOneStepMovesTwice) {
  BatchNorm2d norm(1, {.eps = 0, .momentum = 0.5});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0]), norm(in[1])}; });
  graph.add_module("norm", norm);
  Call(graph, {F32({2, 1}, {1, 3}), F32({2, 1}, {6, 8})});
  // 0 -> (0 + 2) / 2 = 1 -> (1 + 7) / 2 = 4.
  EXPECT_THAT(norm.running_mean.value().ToVector(), ElementsAre(4));
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 2);
}

TEST(BatchNorm, WithoutAffine) {
  BatchNorm2d norm(1, {.eps = 0, .affine = false});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  EXPECT_THAT(Call1(graph, {F32({2, 1}, {1, 3})}), ElementsAre(-1, 1));
  EXPECT_THAT(Names(graph.named_parameters()), ElementsAre());
}

TEST(LayerNormModule, OverTheLastAxes) {
  LayerNorm norm({2, 2}, {.eps = 0});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  ASSERT_TRUE(norm.weight.set_value(F32({2, 2}, {1, 1, 2, 2})).ok());
  ASSERT_TRUE(norm.bias.set_value(F32({2, 2}, {0, 1, 0, 1})).ok());
  // Mean 3, deviation 1.
  EXPECT_THAT(Call1(graph, {F32({1, 2, 2}, {2, 4, 2, 4})}), ElementsAre(-1, 2, -2, 3));
}

class DropoutModel : public FnGraph {
 public:
  explicit DropoutModel(uint64_t seed)
      : FnGraph([this](const Values& in) -> Values {
          return {first(in[0]), first(in[0]), second(in[0])};
        }) {
    config.seed = seed;
    add_module("first", first);
    add_module("second", second);
  }
  Dropout first{0.25};
  Dropout second{0.25};
};

TEST(DropoutModule, MasksAreReproducibleAndDiffer) {
  const Tensor x = Tensor::Full(DType::kF32, {4000}, 3);
  DropoutModel a(1), b(1), c(2);
  const std::vector<Tensor> first = Call(a, {x});
  const std::vector<Tensor> same = Call(b, {x});
  const std::vector<Tensor> other_seed = Call(c, {x});
  const std::vector<Tensor> next_run = Call(a, {x});
  ASSERT_EQ(first.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(BitEqual(first[i], same[i]));
    EXPECT_FALSE(BitEqual(first[i], other_seed[i]));
    EXPECT_FALSE(BitEqual(first[i], next_run[i]));
  }
  EXPECT_FALSE(BitEqual(first[0], first[1])) << "two calls of one module";
  EXPECT_FALSE(BitEqual(first[0], first[2])) << "two modules";
  int64_t kept = 0;
  for (double v : first[0].ToVector()) {
    EXPECT_TRUE(v == 0 || v == 4) << v;  // 3 / (1 - 0.25)
    kept += v != 0;
  }
  // 3000 expected, deviation sqrt(4000 * 0.25 * 0.75) = 27.
  EXPECT_NEAR(static_cast<double>(kept), 3000, 140);
  // The mask belongs to the count of runs, which the state carries.
  DropoutModel d(1);
  ASSERT_TRUE(d.load_state_dict({{"run_count", I64({}, {1})}}, false).ok());
  EXPECT_TRUE(BitEqual(Call(d, {x})[0], next_run[0]));
}

TEST(DropoutModule, DoesNothingInEvaluation) {
  DropoutModel model(1);
  model.eval();
  const Tensor x = testing::RandomTensor(DType::kF32, {100}, 5);
  for (const Tensor& y : Call(model, {x})) EXPECT_TRUE(BitEqual(y, x));
}

TEST(EmbeddingModule, ChoosesRowsAndLeavesThePaddingRow) {
  Embedding table(3, 2, {.padding_idx = 1});
  FnGraph graph([&](const Values& in) -> Values {
    const Value rows = table(in[0]);
    sum(rows).backward();
    return {rows};
  });
  graph.add_module("table", table);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(table.weight.set_value(F32({3, 2}, {1, 2, 3, 4, 5, 6})).ok());
  EXPECT_THAT(Call1(graph, {I64({4}, {2, 1, 2, 0})}), ElementsAre(5, 6, 3, 4, 5, 6, 1, 2));
  EXPECT_THAT(table.weight.value().ToVector(), ElementsAre(0, 1, 3, 4, 3, 4));
}

TEST(ConvModule, ByHand) {
  Conv2d conv(1, 1, 2, {.stride = 2});
  FnGraph graph([&](const Values& in) -> Values { return {conv(in[0])}; });
  graph.add_module("conv", conv);
  ASSERT_TRUE(conv.weight.set_value(F32({1, 1, 2, 2}, {1, 2, 3, 4})).ok());
  ASSERT_TRUE(conv.bias.set_value(F32({1}, {100})).ok());
  const Tensor x = F32({1, 1, 2, 4}, {1, 0, 0, 1, 0, 1, 1, 0});
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(105, 105));
}

TEST(SequentialModule, ActivationsAgreeWithTheirFunctions) {
  Sequential net{ReLU(), GELU(), Sigmoid(), Tanh(), SiLU(), Flatten()};
  EXPECT_EQ(net.size(), 6u);
  FnGraph graph([&](const Values& in) -> Values {
    const Value x = in[0];
    return {net(x), flatten(silu(tanh(sigmoid(gelu(relu(x))))))};
  });
  graph.add_module("net", net);
  const std::vector<Tensor> out = Call(graph, {testing::RandomTensor(DType::kF32, {2, 3, 4}, 3)});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].shape(), (Shape{2, 12}));
  EXPECT_TRUE(BitEqual(out[0], out[1]));
}

TEST(SequentialModule, MovedWithSubmodulesIsAnError) {
  class Block : public Module {
   public:
    Block() : fc_(1, 1) { register_module("fc", fc_); }
    Linear fc_;
  };
  Sequential net;
  net.emplace<Block>();
  EXPECT_TRUE(net.status().ok());
  Sequential moved{Block()};
  EXPECT_THAT(Message(moved.status()), HasSubstr("a module with registered submodules was moved"));
}

TEST(PoolingModules, StrideIsTheKernelByDefault) {
  MaxPool2d max_pool(2);
  AvgPool2d avg_pool({1, 2}, {.stride = {1, 1}});
  FnGraph graph([&](const Values& in) -> Values { return {max_pool(in[0]), avg_pool(in[0])}; });
  graph.add_module("max", max_pool);
  graph.add_module("avg", avg_pool);
  const std::vector<Tensor> out = Call(graph, {F32({1, 1, 2, 4}, {1, 2, 3, 4, 8, 7, 6, 5})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(8, 6));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(1.5, 2.5, 3.5, 7.5, 6.5, 5.5));
}

}  // namespace
}  // namespace halftone::nn
