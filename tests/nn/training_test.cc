// Whole training steps through nn::Graph.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The program of design and README.
class Classifier : public Graph {
 public:
  explicit Classifier(bool with_amp = false) : fc1_(256, 128), fc2_(128, 10) {
    add_module("fc1", fc1_);
    add_module("fc2", fc2_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
    config.enable_amp(with_amp);
    if (with_amp) {
      set_grad_scaler(amp::GradScaler({.init_scale = 4096,
                                       .growth_factor = 2.0,
                                       .backoff_factor = 0.5,
                                       .growth_interval = 1000}));
    }
  }
  Values build(const Values& in) override {
    Value logits = fc2_(relu(fc1_(in[0])));
    Value loss = cross_entropy(logits, in[1]);
    loss.backward();
    return {logits, loss};
  }
  Linear fc1_, fc2_;
};

// Labels that depend on the input, so that there is something to learn.
std::vector<Tensor> Batch(int64_t n) {
  const Tensor x = testing::RandomTensor(DType::kF32, {n, 256}, 1);
  Tensor y = Tensor::Empty(DType::kI64, {n});
  for (int64_t i = 0; i < n; ++i) y.set(i, x.at(i * 256) > 0 ? 3 : 7);
  return {x, y};
}

class Training : public ::testing::TestWithParam<bool> {};

TEST_P(Training, LossOfTheClassifierFalls) {
  Classifier graph(GetParam());
  const std::vector<Tensor> batch = Batch(128);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 40; ++step) {
    const std::vector<Tensor> out = Call(graph, batch);
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].shape(), (Shape{128, 10}));
    EXPECT_EQ(out[0].dtype(), DType::kF32);
    last = out[1].item();
    if (step == 0) first = last;
  }
  // Ten classes and small weights: near ln 10 at the start.
  EXPECT_NEAR(first, std::log(10.0), 0.2);
  EXPECT_LT(last, 0.5 * first);
}

INSTANTIATE_TEST_SUITE_P(Amp, Training, ::testing::Bool());

TEST(TrainingStep, SgdByHand) {
  // loss = sum((w * x - t)^2), dw = 2 (w x - t) x; w = 1, x = 3, t = 1: loss 4, dw 12.
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value error = w * in[0] - in[1];
    const Value loss = sum(error * error);
    loss.backward();
    return {loss, w};
  });
  graph.add_parameter("w", w);
  graph.config.track_grad_norm = true;
  OptimizerHandle optimizer = graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.125}));
  const std::vector<Tensor> out = Call(graph, {F32({1}, {3}), F32({1}, {1})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].item(), 4);
  // An output that is a variable has its value at the start of the step.
  EXPECT_EQ(out[1].item(), 1);
  EXPECT_EQ(w.value().item(), 1 - 0.125 * 12);
  EXPECT_EQ(optimizer.grad_norm(), 12);
  EXPECT_EQ(optimizer.applied_steps(), 1);
  EXPECT_FALSE(graph.last_step_skipped());
  EXPECT_EQ(graph.run_count(), 1u);
}

TEST(TrainingStep, SeveralBackwardCallsAddUp) {
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 2, 0});
  FnGraph graph([&](const Values& in) -> Values {
    sum(w * in[0]).backward();
    sum(w * in[1]).backward();
    return {w};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  Call(graph, {F32({1}, {0.25}), F32({1}, {0.5})});
  EXPECT_EQ(w.value().item(), 2 - 0.75);
}

TEST(TrainingStep, SetLrCompilesNothing) {
  Parameter w(Shape{}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values&) -> Values {
    const Value loss = w * 1.0;
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  OptimizerHandle optimizer = graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.5}));
  EXPECT_EQ(optimizer.lr(), 0.5);
  Call(graph, {});
  EXPECT_EQ(w.value().item(), 0.5);
  ASSERT_TRUE(optimizer.set_lr(0.25).ok());
  Call(graph, {});
  EXPECT_EQ(w.value().item(), 0.25);
  EXPECT_EQ(graph.builds, 1);
  EXPECT_EQ(Message(optimizer.set_lr(-1)),
            "set_lr: lr = -1; expected a number >= 0 that is finite in f32");
  EXPECT_EQ(optimizer.lr(), 0.25);
}

TEST(TrainingStep, FrozenParametersStay) {
  Linear fc(2, 1);
  fc.bias.set_requires_grad(false);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(graph.initialize().ok());
  const Tensor weight = fc.weight.value();
  const Tensor bias = fc.bias.value();
  Call(graph, {F32({1, 2}, {1, 2})});
  EXPECT_TRUE(BitEqual(fc.bias.value(), bias));
  EXPECT_FLOAT_EQ(static_cast<float>(fc.weight.value().at(1)),
                  static_cast<float>(weight.at(1)) - 2.0f);
}

TEST(TrainingStep, EvaluationModeUpdatesNothing) {
  Parameter w(Shape{}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values&) -> Values {
    const Value loss = w * 3.0;
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.5}));
  graph.eval();
  EXPECT_THAT(Call1(graph, {}), ElementsAre(3));
  EXPECT_EQ(w.value().item(), 1);
  graph.train();
  Call(graph, {});
  EXPECT_EQ(w.value().item(), -0.5);
  EXPECT_EQ(graph.builds, 2);
}

TEST(TrainingStep, GradientsAreValues) {
  // d sum(x^3) / dx = 3 x^2, also in evaluation mode.
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = sum(in[0] * in[0] * in[0]);
    return {gradients(y, {in[0]})[0]};
  });
  EXPECT_THAT(Call1(graph, {F32({3}, {1, 2, -3})}), ElementsAre(3, 12, 27));
  graph.eval();
  EXPECT_THAT(Call1(graph, {F32({3}, {1, 2, -3})}), ElementsAre(3, 12, 27));
}

TEST(TrainingStep, OutputsAreTheCallers) {
  FnGraph graph([&](const Values& in) -> Values { return {in[0] * 2.0, in[0]}; });
  const std::vector<Tensor> first = Call(graph, {F32({2}, {1, 2})});
  const std::vector<Tensor> second = Call(graph, {F32({2}, {5, 6})});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(first[0].ToVector(), ElementsAre(2, 4));
  EXPECT_THAT(first[1].ToVector(), ElementsAre(1, 2));
  EXPECT_THAT(second[0].ToVector(), ElementsAre(10, 12));
}

// Twelve layers with a mask each: one node, and a text that a person can read.
TEST(TrainingStep, EqualLargeConstantsAreOneNode) {
  constexpr int64_t kSize = 64 * 64;
  std::vector<double> values(kSize);
  for (int64_t i = 0; i < kSize; ++i) values[i] = static_cast<double>(i % 7);
  const Tensor mask = Tensor::Of(DType::kF32, {kSize}, values);
  values[kSize - 1] = -1;
  const Tensor other = Tensor::Of(DType::kF32, {kSize}, values);
  FnGraph graph([&](const Values& in) -> Values {
    Value x = in[0];
    for (int i = 0; i < 12; ++i) x = x * 0.5 + constant(mask.Clone());
    return {x + constant(other)};
  });
  const std::vector<Tensor> out = Call(graph, {Tensor::Zeros(DType::kF32, {kSize})});
  // The sum of the geometric series 1 + 1/2 + ... + 1/2^11, exact in f32, and the other constant.
  EXPECT_EQ(out[0].at(3), 3 * (2 - 0x1p-11) + 3);
  EXPECT_EQ(out[0].at(kSize - 1), ((kSize - 1) % 7) * (2 - 0x1p-11) - 1);
  const std::string text = graph.traced_text();
  size_t constants = 0;
  for (size_t at = 0; (at = text.find("value=file<f32[4096]>", at)) != text.npos; ++at) ++constants;
  EXPECT_EQ(constants, 2u) << text;
  EXPECT_LT(text.size(), 4096u);
}

TEST(TrainingStep, TextsShowTheStep) {
  Classifier graph;
  EXPECT_EQ(graph.traced_text(), "");
  ASSERT_TRUE(graph.compile(Batch(4)).ok());
  EXPECT_EQ(graph.run_count(), 0u);
  EXPECT_THAT(graph.traced_text(), HasSubstr("backward(%cross_entropy)"));
  EXPECT_THAT(graph.traced_text(), HasSubstr("%in0: f32[4,256], %in1: i64[4]"));
  EXPECT_THAT(graph.compiled_text(), HasSubstr("commit \"fc1.weight\""));
  EXPECT_THAT(graph.compiled_text(), Not(HasSubstr("backward(")));
  EXPECT_THAT(graph.kernel_log(), HasSubstr("%relu = relu: "));
}

}  // namespace
}  // namespace halftone::nn
