// Graphs that share modules, and the cache of executables.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parameter Scalar(double value) {
  return Parameter(Shape{}, {ir::Initializer::Kind::kConstant, value, 0});
}

TEST(SharedModules, TwoGraphsUpdateTheirOwnPartOfOneModel) {
  // As in a GAN: loss g * d; one graph moves g, the other d. Steps alternate:
  //   g = 2, d = 3: first graph g -= d -> -1; second graph d -= g -> 4; first g -= d -> -5.
  Parameter g = Scalar(2);
  Parameter d = Scalar(3);
  const auto loss = [&](const Values&) -> Values {
    const Value product = g * d;
    product.backward();
    return {product};
  };
  FnGraph generator(loss);
  generator.add_parameter("g", g);
  generator.add_parameter("d", d);
  generator.add_optimizer(optim::SGD({g.storage()}, {.lr = 1}));
  FnGraph discriminator(loss);
  discriminator.add_parameter("other_name_of_g", g);
  discriminator.add_parameter("d", d);
  discriminator.add_optimizer(optim::SGD({d.storage()}, {.lr = 1}));

  EXPECT_THAT(Call1(generator, {}), ElementsAre(6));
  EXPECT_EQ(g.value().item(), -1);
  EXPECT_EQ(d.value().item(), 3);
  EXPECT_THAT(Call1(discriminator, {}), ElementsAre(-3));
  EXPECT_EQ(g.value().item(), -1);
  EXPECT_EQ(d.value().item(), 4);
  EXPECT_THAT(Call1(generator, {}), ElementsAre(-4));
  EXPECT_EQ(g.value().item(), -5);
}

TEST(SharedModules, EvaluationGraphSeesTraining) {
  Linear fc(1, 1);
  FnGraph training([&](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {loss};
  });
  training.add_module("fc", fc);
  training.add_optimizer(optim::SGD(training.parameters(), {.lr = 1}));
  FnGraph evaluation([&](const Values& in) -> Values { return {fc(in[0])}; });
  evaluation.add_module("model", fc);
  evaluation.eval();

  ASSERT_TRUE(fc.weight.set_value(F32({1, 1}, {10})).ok());
  ASSERT_TRUE(fc.bias.set_value(F32({1}, {1})).ok());
  EXPECT_THAT(Call1(evaluation, {F32({1, 1}, {2})}), ElementsAre(21));
  Call(training, {F32({1, 1}, {2})});
  // dw = x = 2, db = 1.
  EXPECT_THAT(Call1(evaluation, {F32({1, 1}, {2})}), ElementsAre(8 * 2 + 0));
}

TEST(SharedModules, HostWritesAreSeenByTheNextRun) {
  Parameter w = Scalar(1);
  FnGraph graph([&](const Values& in) -> Values { return {w * in[0]}; });
  graph.add_parameter("w", w);
  EXPECT_THAT(Call1(graph, {F32({}, {3})}), ElementsAre(3));
  ASSERT_TRUE(w.set_value(F32({}, {5})).ok());
  EXPECT_THAT(Call1(graph, {F32({}, {3})}), ElementsAre(15));
  EXPECT_EQ(graph.builds, 1);
  EXPECT_EQ(Message(w.set_value(F32({1}, {5}))), "got f32[1], expected f32[]");
  EXPECT_EQ(Message(w.set_value(I64({}, {5}))), "got i64[], expected f32[]");
  EXPECT_EQ(w.value().item(), 5);
}

TEST(SharedModules, TiedParametersAreOne) {
  Linear a(2, 2, false);
  Linear b(2, 2, false);
  b.weight = a.weight;
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(b(a(in[0])));
    loss.backward();
    return {loss};
  });
  graph.add_module("a", a);
  graph.add_module("b", b);
  EXPECT_EQ(graph.named_parameters().size(), 2u);
  ASSERT_EQ(graph.parameters().size(), 1u);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(a.weight.set_value(F32({2, 2}, {1, 0, 0, 1})).ok());
  // y = x W^T W^T; at W = I the two contributions to dW are 1 x^T each.
  EXPECT_THAT(Call1(graph, {F32({1, 2}, {0.25, 0.5})}), ElementsAre(0.75));
  EXPECT_THAT(b.weight.value().ToVector(), ElementsAre(1 - 0.5, -1.0, -0.5, 1 - 1.0));
}

// Gradients of a sum: 1 for the bias, the input for the weight.
TEST(Optimizers, TakeTheParametersOfModules) {
  Linear first(1, 1), second(1, 1);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(first(in[0]) + second(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("first", first);
  graph.add_module("second", second);
  graph.add_optimizer(optim::SGD(first.parameters(), {.lr = 1}));
  graph.add_optimizer(optim::SGD({second.weight, second.bias}, {.lr = 2}));
  for (Linear* layer : {&first, &second}) {
    ASSERT_TRUE(layer->weight.set_value(F32({1, 1}, {10})).ok());
    ASSERT_TRUE(layer->bias.set_value(F32({1}, {20})).ok());
  }
  EXPECT_EQ(Call1(graph, {F32({1, 1}, {3})}), std::vector<double>({100}));  // 2 (10 3 + 20)
  EXPECT_EQ(first.weight.value().ToVector(), std::vector<double>({7}));
  EXPECT_EQ(first.bias.value().ToVector(), std::vector<double>({19}));
  EXPECT_EQ(second.weight.value().ToVector(), std::vector<double>({4}));
  EXPECT_EQ(second.bias.value().ToVector(), std::vector<double>({18}));
}

TEST(Cache, LastShortBatchJustWorks) {
  Linear fc(3, 1);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = mean(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(fc.weight.set_value(F32({1, 3}, {1, 1, 1})).ok());
  ASSERT_TRUE(fc.bias.set_value(F32({1}, {0})).ok());
  // Mean over the batch of all-ones rows: loss 3, dw = 1, db = 1, whatever the batch.
  EXPECT_THAT(Call1(graph, {Tensor::Full(DType::kF32, {8, 3}, 1)}), ElementsAre(3));
  EXPECT_THAT(Call1(graph, {Tensor::Full(DType::kF32, {8, 3}, 1)}), ElementsAre(-1));
  EXPECT_THAT(Call1(graph, {Tensor::Full(DType::kF32, {5, 3}, 1)}), ElementsAre(-5));
  EXPECT_THAT(Call1(graph, {Tensor::Full(DType::kF32, {8, 3}, 1)}), ElementsAre(-9));
  EXPECT_EQ(graph.builds, 2);
  EXPECT_EQ(graph.run_count(), 4u);
}

TEST(Cache, LeastRecentlyUsedGoesFirst) {
  FnGraph graph([&](const Values& in) -> Values { return {relu(in[0])}; });
  graph.config.cache_size = 2;
  const auto call = [&](int64_t n) { Call(graph, {Tensor::Zeros(DType::kF32, {n})}); };
  call(1);
  call(2);
  call(1);
  EXPECT_EQ(graph.builds, 2);
  call(3);  // drops 2
  call(1);
  EXPECT_EQ(graph.builds, 3);
  call(2);  // drops 3
  EXPECT_EQ(graph.builds, 4);
  call(1);
  EXPECT_EQ(graph.builds, 4);
}

TEST(Cache, DtypeAndModeArePartOfTheSignature) {
  FnGraph graph([&](const Values& in) -> Values { return {relu(in[0])}; });
  Call(graph, {F32({1}, {2})});
  Call(graph, {Tensor::Of(DType::kF64, {1}, {2})});
  graph.eval();
  Call(graph, {F32({1}, {2})});
  EXPECT_EQ(graph.builds, 3);
}

TEST(Cache, ExecutablesShareOneArena) {
  FnGraph graph([&](const Values& in) -> Values {
    // A chain whose intermediate has the input's size.
    return {sum(exp(in[0]) * 0.5 + 1.0)};
  });
  const auto result = [&](int64_t n) { return Call1(graph, {Tensor::Zeros(DType::kF32, {n})}); };
  EXPECT_THAT(result(10), ElementsAre(15));
  const size_t small = graph.arena_bytes();
  EXPECT_THAT(result(1000), ElementsAre(1500));
  const size_t large = graph.arena_bytes();
  EXPECT_GT(large, small);
  // The first executable runs in the moved memory.
  EXPECT_THAT(result(10), ElementsAre(15));
  EXPECT_EQ(graph.arena_bytes(), large);
}

}  // namespace
}  // namespace halftone::nn
