// optim::Weights: parameters kept in bf16, by stochastic rounding and by Kahan's summation.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "halftone/core/threads.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using optim::Weights;
using ::testing::HasSubstr;

constexpr Weights kLow[] = {Weights::kBF16Stochastic, Weights::kBF16Kahan};

// loss = sum(w * c): the gradient of w is the input c.
struct Linear1 {
  Linear1(int64_t n, double value, const optim::SGDOptions& options, bool scaler = false)
      : w(Shape{n}, {ir::Initializer::Kind::kConstant, value, 0}) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]);
      loss.backward();
      return {loss};
    };
    graph.add_parameter("w", w);
    optimizer = graph.add_optimizer(optim::SGD({w}, options));
    if (scaler) graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  }
  void Step(double gradient) { Call(graph, {Tensor::Full(DType::kF32, w.shape(), gradient)}); }
  std::vector<double> W() const { return w.value().ToVector(); }

  Parameter w;
  FnGraph graph;
  OptimizerHandle optimizer;
};

TEST(BF16Weights, StepsThatANearestRoundingLosesAddUp) {
  constexpr int64_t kElements = 4096;
  constexpr int kSteps = 512;
  constexpr double kStep = 0x1p-10, kUnit = 0x1p-7;  // of bf16 between 1 and 2
  ASSERT_EQ(static_cast<float>(BF16(1.0f + 0x1p-10f)), 1) << "plain bf16 does not move";
  Linear1 kahan(kElements, 1, {.lr = kStep, .weights = Weights::kBF16Kahan});
  Linear1 stochastic(kElements, 1, {.lr = kStep, .weights = Weights::kBF16Stochastic});
  for (int step = 1; step <= kSteps; ++step) {
    kahan.Step(-1);
    stochastic.Step(-1);
    const double want = BF16BitsToF32(F64ToBF16Bits(1 + step * kStep));
    if (step % 50 != 0) continue;
    for (const double w : kahan.W()) ASSERT_EQ(w, want) << step;
  }
  // A sum of independent steps of kUnit with probability 1/8.
  const double share = kStep / kUnit, variance = kSteps * share * (1 - share) * kUnit * kUnit;
  double mean = 0, squares = 0;
  for (const double w : stochastic.W()) {
    mean += w / kElements;
    squares += (w - 1 - kSteps * kStep) * (w - 1 - kSteps * kStep) / kElements;
  }
  EXPECT_NEAR(mean, 1 + kSteps * kStep, 5 * std::sqrt(variance / kElements));
  EXPECT_NEAR(squares, variance, 5 * variance * std::sqrt(2.0 / kElements));
}

TEST(BF16Weights, StepsThatBF16HasAreExact) {
  for (const Weights weights : kLow) {
    Linear1 model(100, 1, {.lr = 0x1p-7, .weights = weights});
    for (int step = 1; step <= 60; ++step) {
      model.Step(-1);
      for (const double w : model.W()) ASSERT_EQ(w, 1 + step * 0x1p-7);
    }
  }
}

TEST(BF16Weights, KahanFollowsF32) {
  constexpr int64_t kElements = 512;
  constexpr int kSteps = 300;
  Linear1 kahan(kElements, 0.75, {.lr = 1e-3, .weights = Weights::kBF16Kahan});
  Linear1 f32(kElements, 0.75, {.lr = 1e-3});
  for (int step = 0; step < kSteps; ++step) {
    // What bf16 has, so that both see the same gradient.
    const Tensor c = testing::RandomTensor(DType::kBF16, {kElements}, step + 1).To(DType::kF32);
    Call(kahan.graph, {c});
    Call(f32.graph, {c});
  }
  const StateDict state = *kahan.graph.state_dict();
  const std::vector<double> p = state.at("w").ToVector(), want = f32.W(),
                            lost = state.at("optimizer0.w.compensation").ToVector();
  double moved = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    moved = std::max(moved, std::abs(want[i] - 0.75));
    // A step rounds a compensation of half a unit of p to 8 digits, and both sums to 24.
    const double bound = kSteps * (0x1p-9 * 0x1p-9 + 2 * 0x1p-24);
    EXPECT_NEAR(p[i] + lost[i], want[i], bound);
    EXPECT_NEAR(p[i], want[i], 0x1p-9 + bound) << "half a unit between 0.5 and 1";
  }
  EXPECT_GT(moved, 0.01);
}

// Layers of every kind of state: moments, a scale, clipping.
struct Bf16Net {
  explicit Bf16Net(Weights weights, uint64_t seed = 5) : fc1(8, 32), norm({32}), fc2(32, 3) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = cross_entropy(fc2(norm(relu(fc1(in[0])))), in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_module("fc1", fc1);
    graph.add_module("norm", norm);
    graph.add_module("fc2", fc2);
    optimizer = graph.add_optimizer(
        optim::AdamW(graph.parameters(), {.lr = 1e-2, .clip_norm = 1.0, .weights = weights}));
    graph.set_grad_scaler(amp::GradScaler({.init_scale = 256, .growth_interval = 3}));
    graph.config.seed = seed;
    graph.config.enable_amp(true, {.dtype = DType::kBF16});
  }
  double Step(int i, bool finite = true) {
    Tensor x = testing::RandomTensor(DType::kF32, {16, 8}, static_cast<uint64_t>(i));
    if (!finite) x.set(0, testing::kInf);
    return Call1(graph, {x, testing::RandomTensor(DType::kI64, {16}, i + 50, 0, 3)}).at(0);
  }
  StateDict State() { return *graph.state_dict(); }
  size_t Bytes() {
    size_t bytes = 0;
    for (const auto& [name, value] : State()) {
      if (value.num_elements() > 1) bytes += value.num_bytes();
    }
    return bytes;
  }

  Linear fc1;
  LayerNorm norm;
  Linear fc2;
  FnGraph graph;
  OptimizerHandle optimizer;
};

TEST(BF16Weights, ParametersAndMomentsTakeHalfTheMemory) {
  Bf16Net f32(Weights::kDeclared), stochastic(Weights::kBF16Stochastic), kahan(Weights::kBF16Kahan);
  for (Bf16Net* net : {&f32, &stochastic, &kahan}) net->Step(0);
  const size_t parameters = 8 * 32 + 32 + 32 + 32 + 32 * 3 + 3;
  EXPECT_EQ(f32.Bytes(), parameters * 12);
  EXPECT_EQ(stochastic.Bytes(), parameters * 6);
  EXPECT_EQ(kahan.Bytes(), parameters * 8);
  EXPECT_EQ(stochastic.State().at("optimizer0.fc1.weight.exp_avg").dtype(), DType::kBF16);
}

TEST(BF16Weights, LearnAsF32Does) {
  double last[3];
  int i = 0;
  for (const Weights weights :
       {Weights::kDeclared, Weights::kBF16Stochastic, Weights::kBF16Kahan}) {
    Bf16Net net(weights);
    const double first = net.Step(0);
    for (int step = 0; step < 150; ++step) last[i] = net.Step(step % 3);
    EXPECT_LT(last[i], first / 4);
    ++i;
  }
  EXPECT_NEAR(last[1], last[0], 0.1);
  EXPECT_NEAR(last[2], last[0], 0.1);
}

TEST(BF16Weights, MixedPrecisionReadsThemAsTheyAre) {
  Bf16Net net(Weights::kBF16Stochastic);
  net.Step(0);
  const std::string text = net.graph.compiled_text();
  EXPECT_THAT(text, HasSubstr("= linear(%in0_bf16, %fc1.weight, "));
  // linear takes the variable itself; only what computes in f32 reads a cast of one.
  std::set<std::string> cast;
  for (size_t at = text.find("= cast(%"); at != std::string::npos;
       at = text.find("= cast(%", at + 1)) {
    const size_t begin = at + 8;
    cast.insert(text.substr(begin, text.find(')', begin) - begin));
  }
  EXPECT_EQ(cast.count("fc1.weight"), 0u) << text;
  EXPECT_EQ(cast.count("fc2.weight"), 0u) << text;
  EXPECT_THAT(text, HasSubstr("rounding=\"stochastic\""));
}

TEST(BF16Weights, TheBitsDependOnSeedAndNameNotOnThreads) {
  for (const Weights weights : kLow) {
    const int threads = NumThreads();
    std::vector<StateDict> states;
    for (const int count : {1, 2, 3}) {
      SetNumThreads(count);
      Linear1 model(50'000, 1, {.lr = 1e-3, .momentum = 0.9, .weights = weights});
      for (int step = 0; step < 3; ++step) model.Step(-1);
      states.push_back(*model.graph.state_dict());
    }
    SetNumThreads(threads);
    ExpectSameBits(states[1], states[0]);
    ExpectSameBits(states[2], states[0]);
  }
  Bf16Net one(Weights::kBF16Stochastic, 1), same(Weights::kBF16Stochastic, 1);
  Bf16Net other(Weights::kBF16Stochastic, 2);
  ASSERT_TRUE(other.graph.load_state_dict(one.State()).ok());
  for (Bf16Net* net : {&one, &same, &other}) net->Step(0);
  ExpectSameBits(one.State(), same.State());
  EXPECT_FALSE(BitEqual(one.State().at("fc1.weight"), other.State().at("fc1.weight")));
}

TEST(BF16Weights, ElementsAndStatesAreRoundedEachByItself) {
  Linear1 model(1000, 1, {.lr = 0x1p-10, .momentum = 0.9, .weights = Weights::kBF16Stochastic});
  for (int step = 0; step < 8; ++step) model.Step(-1);
  const StateDict state = *model.graph.state_dict();
  const std::vector<double> w = state.at("w").ToVector(),
                            m = state.at("optimizer0.w.momentum_buffer").ToVector();
  EXPECT_GT(std::set<double>(w.begin(), w.end()).size(), 3u);
  EXPECT_GT(std::set<double>(m.begin(), m.end()).size(), 3u);
}

TEST(BF16Weights, ARunResumesBitForBit) {
  for (const Weights weights : kLow) {
    Bf16Net whole(weights), begun(weights), resumed(weights);
    for (int step = 0; step < 6; ++step) whole.Step(step);
    for (int step = 0; step < 3; ++step) begun.Step(step);
    ASSERT_TRUE(resumed.graph.load_state_dict(begun.State()).ok());
    for (int step = 3; step < 6; ++step) resumed.Step(step);
    ExpectSameBits(resumed.State(), whole.State());
  }
}

TEST(BF16Weights, ASkippedStepChangesNothingAndUsesNoRandomBits) {
  for (const Weights weights : kLow) {
    Linear1 skipping(64, 1, {.lr = 1e-3, .momentum = 0.9, .weights = weights}, /*scaler=*/true);
    Linear1 plain(64, 1, {.lr = 1e-3, .momentum = 0.9, .weights = weights}, /*scaler=*/true);
    skipping.Step(-1);
    plain.Step(-1);
    const StateDict before = *skipping.graph.state_dict();
    skipping.Step(testing::kInf);
    EXPECT_TRUE(skipping.optimizer.last_step_skipped());
    const StateDict after = *skipping.graph.state_dict();
    for (const char* name : {"w", "optimizer0.w.momentum_buffer"}) {
      EXPECT_TRUE(BitEqual(after.at(name), before.at(name))) << name;
    }
    skipping.Step(-1);
    plain.Step(-1);
    EXPECT_TRUE(BitEqual(skipping.w.value(), plain.w.value()));
  }
}

TEST(BF16Weights, LoadWhatF32HasSavedAndGiveItBack) {
  Bf16Net f32(Weights::kDeclared);
  for (int step = 0; step < 4; ++step) f32.Step(step);
  const StateDict wide = f32.State();
  for (const Weights weights : kLow) {
    Bf16Net low(weights);
    low.Step(0);
    const auto refused = low.graph.load_state_dict(wide);
    EXPECT_THAT(Message(refused.status()), HasSubstr("f32[32,8], expected bf16[32,8]"));
    ASSERT_TRUE(low.graph.load_state_dict(wide, {.convert = true}).ok());
    const StateDict loaded = low.State();
    EXPECT_TRUE(BitEqual(loaded.at("fc1.weight"), wide.at("fc1.weight").To(DType::kBF16)));
    EXPECT_EQ(loaded.at("optimizer0.fc1.weight.exp_avg_sq").dtype(), DType::kBF16);
    if (weights == Weights::kBF16Kahan) {
      for (const double lost : loaded.at("optimizer0.fc1.weight.compensation").ToVector()) {
        ASSERT_EQ(lost, 0) << "that of the parameter before";
      }
    }
    low.Step(5);
    Bf16Net back(Weights::kDeclared);
    ASSERT_TRUE(back.graph.load_state_dict(low.State(), {.strict = false, .convert = true}).ok());
    EXPECT_TRUE(
        BitEqual(back.State().at("fc1.weight"), low.State().at("fc1.weight").To(DType::kF32)));
    back.Step(6);
  }
}

TEST(BF16Weights, AValueThatIsSetHasNoCompensation) {
  Linear1 model(4, 1000, {.lr = 1, .weights = Weights::kBF16Kahan});
  model.Step(-1);  // 1001 is 1000 and 1
  EXPECT_EQ(model.W(), std::vector<double>(4, 1000));
  ASSERT_TRUE(model.w.set_value(Tensor::Full(DType::kBF16, {4}, 0.5)).ok());
  model.Step(0);
  EXPECT_EQ(model.W(), std::vector<double>(4, 0.5));
}

TEST(BF16Weights, GradientsOfMicroBatchesAreSummedInF32) {
  Linear1 model(8, 0, {.lr = 1, .weights = Weights::kBF16Stochastic});
  model.graph.config.accumulate_calls(8);
  model.Step(1);
  for (int i = 0; i < 6; ++i) model.Step(0x1p-10);
  const StateDict state = *model.graph.state_dict();
  EXPECT_EQ(state.at("optimizer0.w.grad_sum").dtype(), DType::kF32);
  EXPECT_EQ(state.at("optimizer0.w.grad_sum").ToVector(), std::vector<double>(8, 1 + 6 * 0x1p-10));
  model.Step(7 - 6 * 0x1p-10);
  EXPECT_EQ(model.W(), std::vector<double>(8, -1));
}

TEST(BF16Weights, ATableMovesTheRowsThatAreUsed) {
  for (const Weights weights : kLow) {
    Embedding table(10, 6, {.sparse = true});
    FnGraph graph([&](const Values& in) -> Values {
      const Value loss = sum(table(in[0]) * 0x1p-3);
      loss.backward();
      return {loss};
    });
    graph.add_module("table", table);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0x1p-7, .weights = weights}));
    ASSERT_TRUE(graph.initialize().ok());
    const Tensor ones = Tensor::Full(DType::kBF16, {10, 6}, 1);
    ASSERT_TRUE(table.weight.set_value(ones).ok());
    // A step of 2^-10, of two ids that are the same 2^-9.
    for (int step = 0; step < 8; ++step) Call(graph, {I64({3}, {2, 7, 7})});
    const std::vector<double> rows = (*graph.state_dict()).at("table.weight").ToVector();
    double moved = 0;
    for (int row = 0; row < 10; ++row) {
      for (int i = 0; i < 6; ++i) {
        const double w = rows[row * 6 + i];
        if (row != 2 && row != 7) {
          EXPECT_EQ(w, 1);
        } else if (weights == Weights::kBF16Kahan) {
          EXPECT_EQ(w, row == 2 ? 1 - 0x1p-7 : 1 - 0x1p-6);
        }
        moved += 1 - w;
      }
    }
    EXPECT_GT(moved, 6 * 0x1p-7);
  }
}

TEST(BF16Weights, GraphsThatShareAModuleFollow) {
  Linear fc(4, 2);
  FnGraph reads([&](const Values& in) -> Values { return {fc(in[0])}; });
  reads.add_module("fc", fc);
  reads.eval();
  const Tensor x = testing::RandomTensor(DType::kF32, {3, 4}, 1);
  const std::vector<double> before = Call1(reads, {x});
  const Tensor weight = fc.weight.value();
  FnGraph trains([&](const Values& in) -> Values {
    const Value loss = mean(fc(in[0]));
    loss.backward();
    return {loss};
  });
  trains.add_module("fc", fc);
  trains.add_optimizer(optim::SGD(fc.parameters(), {.weights = Weights::kBF16Stochastic}));
  EXPECT_TRUE(BitEqual(fc.weight.value(), weight.To(DType::kBF16)));
  const std::vector<double> after = Call1(reads, {x});
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NE(after[i], before[i]);
    EXPECT_NEAR(after[i], before[i], 0x1p-6);
  }
  Call(trains, {x});
  FnGraph second([&](const Values& in) -> Values { return {fc(in[0])}; });
  second.add_module("fc", fc);
  second.add_optimizer(optim::SGD(fc.parameters()));
  EXPECT_THAT(Message(CallStatus(second, {x})),
              HasSubstr("parameter \"fc.weight\" is bf16[2,4]; expected f32 or f64"));
}

TEST(BF16Weights, WhatDoesNotComposeIsAnError) {
  const Parameter w(Shape{2}, {});
  const optim::SGD averaged({w}, {.ema = optim::Ema{}, .weights = Weights::kBF16Kahan});
  EXPECT_EQ(Message(averaged.Validate()),
            "SGD: ema with weights = bf16_kahan: an average in bf16 loses what it is to average; "
            "expected weights = declared, or no ema");
  Parameter wide(Shape{2}, {}, DType::kF64);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_parameter("wide", wide);
  graph.add_optimizer(optim::SGD({wide}, {.weights = Weights::kBF16Stochastic}));
  EXPECT_THAT(Message(CallStatus(graph, {F32({1}, {1})})),
              HasSubstr("optimizer0: parameter \"wide\" is f64[2]; expected f32, which weights = "
                        "bf16_stochastic keeps in bf16"));
  Parameter half(Shape{2}, {}, DType::kF16);
  FnGraph f16([&](const Values& in) -> Values { return {in[0]}; });
  f16.add_parameter("half", half);
  f16.add_optimizer(optim::SGD({half}, {.weights = Weights::kBF16Stochastic}));
  EXPECT_THAT(Message(CallStatus(f16, {F32({1}, {1})})),
              HasSubstr("parameter \"half\" is f16[2]; expected f32, which"));
}

}  // namespace
}  // namespace halftone::nn
