// enable_amp with DType::kF8: matrix products of training steps on operands scaled to 8 bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "halftone/passes/amp/quantise_matmuls.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
// The inner name keeps helpers apart from those of other files in a batched compile.
namespace f8_training {
namespace {

using ::testing::HasSubstr;
using testing::RandomTensor;

constexpr int64_t kBatch = 32, kIn = 48, kHidden = 64, kClasses = 10;

// A perceptron whose last layer has 10 columns, which 8-bit products do not take.
class Model {
 public:
  explicit Model(std::optional<DType> amp, int64_t accumulated = 1)
      : fc1_(kIn, kHidden), fc2_(kHidden, kHidden), fc3_(kHidden, kClasses) {
    graph.add_module("fc1", fc1_);
    graph.add_module("fc2", fc2_);
    graph.add_module("fc3", fc3_);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1, .momentum = 0.9}));
    graph.fn = [this](const Values& in) -> Values {
      const Value logits = fc3_(relu(fc2_(relu(fc1_(in[0])))));
      const Value loss = cross_entropy(logits, in[1]);
      loss.backward();
      return {loss};
    };
    if (amp.has_value()) graph.config.enable_amp(true, {.dtype = *amp, .trim = false});
    graph.config.accumulate_calls(static_cast<int>(accumulated));
    graph.config.seed = 5;
  }
  double Step(uint64_t seed, int64_t rows = kBatch) {
    const Tensor x = RandomTensor(DType::kF32, {rows, kIn}, seed);
    // The class is that of the largest of the first columns: something to learn.
    Tensor labels = Tensor::Zeros(DType::kI64, {rows});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t c = 1; c < kClasses; ++c) {
        if (x.at(i * kIn + c) > x.at(i * kIn + labels.data<int64_t>()[i])) {
          labels.data<int64_t>()[i] = c;
        }
      }
    }
    return Call(graph, {x, labels})[0].item();
  }
  double Train(int steps) {
    double loss = 0;
    for (int i = 0; i < steps; ++i) loss = Step(static_cast<uint64_t>(i % 8));
    return loss;
  }
  StateDict State() {
    auto state = graph.state_dict();
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : StateDict();
  }
  std::map<std::string, Tensor> F8State() {
    std::map<std::string, Tensor> found;
    for (const auto& [name, value] : State()) {
      if (passes::F8StateType(name).has_value()) found[name] = value;
    }
    return found;
  }

  FnGraph graph;

 private:
  Linear fc1_, fc2_, fc3_;
};

TEST(F8, TrainingFollowsF32) {
  Model f32({}), f8(DType::kF8);
  const double first = f32.Step(0);
  EXPECT_NEAR(f8.Step(0), first, 0.1);
  const double f32_loss = f32.Train(120), f8_loss = f8.Train(120);
  EXPECT_LT(f32_loss, 0.5 * first);
  EXPECT_LT(f8_loss, 0.5 * first);
  EXPECT_NEAR(f8_loss, f32_loss, 0.15 * first);
}

TEST(F8, TheTableSaysWhichProductsAreInEightBitsAndWhyOthersAreNot) {
  Model model(DType::kF8);
  model.Step(0);
  const std::string table = model.graph.amp_table();
  EXPECT_THAT(table, HasSubstr("f8e4m3"));
  EXPECT_THAT(table, HasSubstr("2 of them on 8-bit operands"));
  EXPECT_THAT(table, HasSubstr("; not f8: columns 10, no multiple of 16"));
}

// x and w of two layers, and x of the third, whose weight gradient alone is of fitting extents, in
// f8e4m3; the gradients of all three in f8e5m2.
TEST(F8, EachQuantisedValueHasAScaleThatFollowsIt) {
  Model model(DType::kF8);
  model.Train(3);
  const auto state = model.F8State();
  int scales = 0, gradients = 0;
  for (const auto& [name, history] : state) {
    if (!name.ends_with(".amax_history")) continue;
    ASSERT_EQ(history.shape(), Shape{passes::kF8History}) << name;
    const std::string base = name.substr(0, name.rfind('.'));
    ASSERT_EQ(state.count(base + ".scale"), 1u) << base;
    const double scale = state.at(base + ".scale").item();
    double seen = 0;
    for (int64_t i = 0; i < 3; ++i) seen = std::max(seen, history.at(i));
    EXPECT_GT(history.at(2), 0) << name;
    EXPECT_EQ(history.at(3), 0) << name << ": three steps";
    // The largest value comes to lie in the upper half of one of the formats.
    const bool e4m3 = scale * seen <= 448 && scale * seen > 224;
    const bool e5m2 = scale * seen <= 57344 && scale * seen > 28672;
    EXPECT_TRUE(e4m3 || e5m2) << name << " " << scale << " " << seen;
    EXPECT_EQ(std::exp2(std::ilogb(scale)), scale) << "a power of two";
    ++scales;
    gradients += e5m2;
  }
  EXPECT_EQ(scales, 8);
  EXPECT_EQ(gradients, 3);
}

TEST(F8, ALoadedStateGoesOnBitForBit) {
  Model whole(DType::kF8), half(DType::kF8), other(DType::kF8);
  whole.Train(4);
  half.Train(4);
  // Into a graph that is not compiled yet, whose scales are not there yet.
  const auto loaded = other.graph.load_state_dict(half.State());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (uint64_t step = 4; step < 8; ++step) {
    ASSERT_EQ(whole.Step(step), other.Step(step)) << step;
  }
  ExpectSameBits(other.State(), whole.State());
}

TEST(F8, OtherPrecisionsTakeTheStateAndGiveTheirs) {
  Model f8(DType::kF8), f32({}), fresh(DType::kF8);
  f8.Train(2);
  EXPECT_TRUE(f32.graph.load_state_dict(f8.State()).ok());
  EXPECT_TRUE(fresh.graph.load_state_dict(f32.State()).ok());
  fresh.Step(0);
}

// Executables of several shapes share the scales.
TEST(F8, ABatchOfAnotherSizeGoesOnWithTheScales) {
  Model model(DType::kF8);
  model.Train(2);
  const size_t count = model.F8State().size();
  model.Step(1, 16);
  EXPECT_EQ(model.F8State().size(), count);
  for (const auto& [name, value] : model.F8State()) {
    if (!name.ends_with(".amax_history")) continue;
    EXPECT_GT(value.at(2), 0) << name;
  }
}

TEST(F8, EvaluationIsThatOfBF16) {
  Model f8(DType::kF8), bf16(DType::kBF16);
  f8.Train(2);
  bf16.Train(0);
  ASSERT_TRUE(bf16.graph.load_state_dict(f8.State()).ok());
  f8.graph.eval();
  bf16.graph.eval();
  EXPECT_EQ(f8.Step(3), bf16.Step(3));
  EXPECT_THAT(f8.graph.amp_table(), HasSubstr("not f8: the step has no backward pass"));
}

TEST(F8, MicroBatchesAccumulate) {
  Model model(DType::kF8, /*accumulated=*/2);
  const double first = model.Step(0);
  EXPECT_LT(model.Train(160), 0.7 * first);
  EXPECT_EQ(model.F8State().size(), 16u);
}

// A gradient that is not finite is seen, and leaves no trace in the scales.
TEST(F8, AStepThatIsNotFiniteIsSkipped) {
  Linear fc(kIn, kHidden);
  FnGraph graph;
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 2}));
  graph.fn = [&](const Values& in) -> Values {
    const Value loss = mean(square(fc(in[0])) * in[1]);
    loss.backward();
    return {loss};
  };
  graph.config.enable_amp(true, {.dtype = DType::kF8, .trim = false});
  const Tensor x = RandomTensor(DType::kF32, {kBatch, kIn}, 1);
  const Tensor one = Tensor::Full(DType::kF32, {kBatch, kHidden}, 1);
  Tensor bad = Tensor::Full(DType::kF32, {kBatch, kHidden}, 1);
  bad.data<float>()[7] = HUGE_VALF;
  Call(graph, {x, one});
  const auto before = graph.state_dict();
  ASSERT_TRUE(before.ok());
  Call(graph, {x, bad});
  const auto after = graph.state_dict();
  ASSERT_TRUE(after.ok());
  EXPECT_TRUE(BitEqual(before->at("fc.weight"), after->at("fc.weight")));
  for (const auto& [name, value] : *after) {
    if (!passes::F8StateType(name).has_value()) continue;
    for (const double x_i : value.ToVector()) EXPECT_TRUE(std::isfinite(x_i)) << name;
  }
}

TEST(F8, OnlyTheForwardFormatIsAskedFor) {
  Model model(DType::kF8E5M2);
  const auto got = model.graph(
      {RandomTensor(DType::kF32, {kBatch, kIn}, 1), Tensor::Zeros(DType::kI64, {kBatch})});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(got.status()),
              HasSubstr("enable_amp: dtype is f8e5m2; expected f16, bf16 or f8"));
}

}  // namespace
}  // namespace f8_training
}  // namespace halftone::nn
