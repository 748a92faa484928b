// The oracle itself: optimizer updates, gradient statistics and the loss scale rule pinned by
// numbers one can check by hand. Names A01.. are the cases of recorded failures.
#include <gtest/gtest.h>

#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

Tensor F32(const Reals64& values) { return Vec(values, DType::kF32); }
Tensor Number(double value, DType dtype = DType::kF32) { return Tensor::Scalar(dtype, value); }

struct Step {
  double lr = 0.5, inv_scale = 1, clip = 1;
  bool apply = true;
  int64_t number = 1;
};

std::vector<Tensor> Update(const std::string& op, const Step& s, const Tensor& param,
                           const Tensor& grad, const std::vector<Tensor>& state = {},
                           ir::Attributes attrs = {}) {
  std::vector<Tensor> inputs = {param,
                                grad,
                                Number(s.lr),
                                Number(s.inv_scale),
                                Number(s.clip),
                                Number(s.apply, DType::kBool),
                                Number(static_cast<double>(s.number), DType::kI64)};
  inputs.insert(inputs.end(), state.begin(), state.end());
  return RunOp(op, inputs, std::move(attrs));
}

TEST(Literal, Sgd) {
  EXPECT_THAT(Update("sgd_update", {}, F32({1, 2}), F32({1, -4}))[0], Is({0.5, 4}));
  // The penalty adds weight_decay * param to the gradient.
  EXPECT_THAT(Update("sgd_update", {}, F32({4}), F32({1}), {}, {{"weight_decay", 0.25}})[0],
              Is({3}));
  EXPECT_THAT(Update("sgd_update", {.inv_scale = 0.25, .clip = 0.5}, F32({1}), F32({16}))[0],
              Is({0}));
}

TEST(Literal, SgdMomentumStartsWithTheGradient) {
  const ir::Attributes attrs = {{"momentum", 0.5}, {"dampening", 0.25}};
  const auto first = Update("sgd_update", {}, F32({1}), F32({1}), {F32({77})}, attrs);
  EXPECT_THAT(first[0], Is({0.5}));
  EXPECT_THAT(first[1], Is({1}));
  const auto second = Update("sgd_update", {.number = 2}, first[0], F32({1}), {first[1]}, attrs);
  EXPECT_THAT(second[1], Is({0.5 + 0.75}));
  EXPECT_THAT(second[0], Is({0.5 - 0.625}));
}

TEST(Literal, SgdNesterovLooksAhead) {
  const ir::Attributes attrs = {{"momentum", 0.5}, {"nesterov", true}};
  const auto first = Update("sgd_update", {}, F32({1}), F32({1}), {F32({0})}, attrs);
  EXPECT_THAT(first[0], Is({1 - 0.5 * 1.5}));
  const auto second = Update("sgd_update", {.number = 2}, first[0], F32({1}), {first[1]}, attrs);
  EXPECT_THAT(second[1], Is({1.5}));
  EXPECT_THAT(second[0], Is({0.25 - 0.5 * 1.75}));
}

// Clipped after unscaling: (3, 4) times 1024 arrive, the norm 5 becomes 1.
TEST(Literal, A04ClipAfterUnscale) {
  const Step step{.lr = 1, .inv_scale = 1.0 / 1024, .clip = 0.2};
  const auto out = Update("sgd_update", step, F32({0, 0}), F32({3 * 1024, 4 * 1024}));
  ExpectClose(out[0], Vec({-0.6, -0.8}), 2e-7);
}

// The gradients arrive from f16, where 1e-4 is 1.00017e-4.
TEST(Literal, A13AdamWithTinyAndZeroGradients) {
  const Tensor grad = Vec({0, 1e-4, 1}, DType::kF16).To(DType::kF32);
  Tensor param = F32({1, 1, 1}), m = F32({0, 0, 0}), v = F32({0, 0, 0});
  for (int64_t number = 1; number <= 3; ++number) {
    const auto out = Update("adam_update", {.lr = 1e-3, .number = number}, param, grad, {m, v});
    param = out[0];
    m = out[1];
    v = out[2];
    if (number == 1) ExpectClose(param, Vec({1, 0.9990001, 0.999}), 1e-7);
  }
  ExpectClose(param, Vec({1, 0.9970003, 0.997}), 1e-7);
  EXPECT_EQ(param.at(0), 1);
  EXPECT_EQ(v.at(0), 0);
}

// One step by hand: m = 2 (beta1 1/2, g 4), v = 4 (beta2 3/4), both corrected to g and g^2.
TEST(Literal, Adam) {
  const ir::Attributes attrs = {{"beta1", 0.5}, {"beta2", 0.75}, {"eps", 4.0}};
  const auto out = Update("adam_update", {}, F32({1}), F32({4}), {F32({0}), F32({0})}, attrs);
  EXPECT_THAT(out[1], Is({2}));
  EXPECT_THAT(out[2], Is({4}));
  // 1 - 0.5 * 4 / (4 + 4)
  EXPECT_THAT(out[0], Is({0.75}));
}

TEST(Literal, AdamDecayIsInTheGradientAdamWDecayIsNot) {
  const std::vector<Tensor> state = {F32({0}), F32({0})};
  const auto adam =
      Update("adam_update", {}, F32({2}), F32({0}), state, {{"weight_decay", 0.5}, {"beta1", 0.5}});
  EXPECT_THAT(adam[1], Is({0.5}));
  const auto adamw = Update("adam_update", {}, F32({2}), F32({0}), state,
                            {{"weight_decay", 0.5}, {"decoupled", true}});
  EXPECT_THAT(adamw[0], Is({2 * (1 - 0.25)}));
  EXPECT_THAT(adamw[1], Is({0}));
}

TEST(Literal, SkippedUpdatesKeepEveryBit) {
  const Tensor param = F32({-0.0, std::nan(""), 1e-45, INFINITY}), grad = F32({1, 1, NAN, 1});
  const Tensor m = F32({3, -0.0, 1, 2}), v = F32({1, 2, 3, 1e-45});
  const Step skipped{.apply = false};
  const auto sgd = Update("sgd_update", skipped, param, grad, {m}, {{"momentum", 0.9}});
  EXPECT_TRUE(BitEqual(sgd[0], param) && BitEqual(sgd[1], m));
  const auto adam = Update("adam_update", skipped, param, grad, {m, v});
  EXPECT_TRUE(BitEqual(adam[0], param) && BitEqual(adam[1], m) && BitEqual(adam[2], v));
}

TEST(Literal, GradStats) {
  const auto out = RunOp("grad_stats", {Number(0.5), F32({6}), F32({}), F32({8, 0})});
  EXPECT_THAT(out[0], Is({}, {1}));
  EXPECT_THAT(out[1], Is({}, {5}));
  EXPECT_THAT(out[2], Is({}, {-1}));
  const auto none = RunOp("grad_stats", {Number(1)});
  EXPECT_THAT(none[0], Is({}, {1}));
  EXPECT_THAT(none[1], Is({}, {0}));
  EXPECT_THAT(none[2], Is({}, {-1}));
}

// The square of 1e30 is no f32.
TEST(Literal, GradStatsSumsInF64) {
  ExpectClose(RunOp("grad_stats", {Number(1), F32({3e30, 4e30})})[1], Number(5e30, DType::kF64),
              1e-6);
}

TEST(Literal, GradStatsChecksAfterUnscaling) {
  const auto out = RunOp("grad_stats", {Number(4), F32({1}), F32({3e38})});
  EXPECT_THAT(out[0], Is({}, {0}));
  EXPECT_THAT(out[1], Is({}, {INFINITY}));
  EXPECT_THAT(out[2], Is({}, {1}));
}

// Shapes [3], [1], [0], [5], the last two of 16 bit; every element in turn is inf, -inf, NaN.
TEST(Literal, A06EveryBadElementIsSeen) {
  const std::vector<int64_t> sizes = {3, 1, 0, 5};
  const std::vector<DType> dtypes = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
  for (double bad : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY), std::nan("")}) {
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      for (int64_t element = 0; element < sizes[tensor]; ++element) {
        std::vector<Tensor> inputs = {Number(1)};
        for (size_t i = 0; i < sizes.size(); ++i) {
          inputs.push_back(Tensor::Full(dtypes[i], {sizes[i]}, 1));
        }
        inputs[tensor + 1].set(element, bad);
        const auto out = RunOp("grad_stats", inputs);
        EXPECT_THAT(out[0], Is({}, {0})) << tensor << " " << element << " " << bad;
        EXPECT_THAT(out[2], Is({}, {static_cast<double>(tensor)}));
      }
    }
  }
}

// The scaler's six values, and steps of the rule on them.
struct Scaler {
  Reals64 state = {1024, 0, 1, 0, 0, 0};
  ir::Attributes attrs;

  void After(bool finite) {
    const DType dtypes[] = {DType::kF32, DType::kI32, DType::kI32,
                            DType::kI64, DType::kI64, DType::kI64};
    std::vector<Tensor> inputs;
    for (int i = 0; i < 6; ++i) inputs.push_back(Number(state[i], dtypes[i]));
    inputs.push_back(Number(finite, DType::kBool));
    const auto out = RunOp("loss_scale_update", inputs, attrs);
    for (int i = 0; i < 6; ++i) state[i] = out[i].item();
  }
  double scale() const { return state[0]; }
  double tracker() const { return state[1]; }
  double left() const { return state[2]; }
};

TEST(LossScale, CountsSteps) {
  Scaler s;
  for (bool finite : {true, false, false, true, false}) s.After(finite);
  EXPECT_EQ(s.state[3], 5);
  EXPECT_EQ(s.state[4], 3);
  EXPECT_EQ(s.state[5], 1);
  EXPECT_EQ(s.scale(), 128);
}

// 111 doublings lead from 2^16 to 2^127; the next is no f32 and is dropped.
TEST(LossScale, A01GrowthStopsAtTheLargestPower) {
  Scaler s;
  s.state[0] = 65536;
  s.attrs = {{"growth_interval", int64_t{1}}};
  for (int step = 1; step <= 150; ++step) {
    s.After(true);
    EXPECT_EQ(s.scale(), std::ldexp(1.0, std::min(16 + step, 127)));
    EXPECT_EQ(s.tracker(), 0);
  }
}

TEST(LossScale, A01LargeGrowthFactor) {
  Scaler s;
  s.state[0] = 65536;
  s.attrs = {{"growth_interval", int64_t{1}}, {"growth_factor", 1e10}};
  for (double expected : {6.5536e14, 6.5536e24, 6.5536e34, 6.5536e34, 6.5536e34, 6.5536e34}) {
    s.After(true);
    EXPECT_NEAR(s.scale() / expected, 1, 1e-6);
  }
}

// 2^-127 is subnormal in f32: unscaling must not flush it.
TEST(LossScale, A01UnscalesByASubnormal) {
  const float scaled = 1e-30f * 0x1p127f;
  const auto out = RunOp("grad_stats", {Number(0x1p-127), F32({scaled})});
  EXPECT_THAT(out[0], Is({}, {1}));
  EXPECT_EQ(out[1].item(), static_cast<double>(1e-30f));
}

TEST(LossScale, A02GrowsAtTheInterval) {
  Scaler s;
  s.attrs = {{"growth_interval", int64_t{4}}};
  for (double expected : {1024, 1024, 1024, 2048, 2048, 2048, 2048, 4096}) {
    s.After(true);
    EXPECT_EQ(s.scale(), expected);
  }
}

TEST(LossScale, A07RestoredStateGoesOn) {
  Scaler s;
  s.state[0] = 2048;
  s.attrs = {{"growth_interval", int64_t{2}}};
  s.After(false);
  s.After(true);
  EXPECT_EQ(s.scale(), 1024);
  EXPECT_EQ(s.tracker(), 1);
  const double expected[][2] = {{2048, 0}, {2048, 1}, {4096, 0}};
  for (const auto& [scale, tracker] : expected) {
    s.After(true);
    EXPECT_EQ(s.scale(), scale);
    EXPECT_EQ(s.tracker(), tracker);
  }
}

TEST(LossScale, HysteresisWaitsForBadStepsInARow) {
  Scaler s;
  s.state[2] = 2;
  s.attrs = {{"hysteresis", int64_t{2}}};
  const struct {
    bool finite;
    double scale, left;
  } steps[] = {{false, 1024, 1}, {true, 1024, 2}, {false, 1024, 1},
               {false, 512, 0},  {false, 256, 0}, {true, 256, 2}};
  for (const auto& step : steps) {
    s.After(step.finite);
    EXPECT_EQ(s.scale(), step.scale);
    EXPECT_EQ(s.left(), step.left);
    EXPECT_EQ(s.tracker(), step.finite ? 1 : 0);
  }
}

TEST(LossScale, StaysWithinItsBounds) {
  Scaler s;
  s.state[0] = 1.5;
  s.After(false);
  EXPECT_EQ(s.scale(), 1);
  s.After(false);
  EXPECT_EQ(s.scale(), 1);
  s.attrs = {{"growth_interval", int64_t{1}}, {"max_scale", 3.0}};
  s.After(true);
  EXPECT_EQ(s.scale(), 2);
  s.After(true);
  EXPECT_EQ(s.scale(), 2);
  s.attrs = {{"min_scale", 0.25}};
  for (int i = 0; i < 5; ++i) s.After(false);
  EXPECT_EQ(s.scale(), 0.25);
}

TEST(LossScale, StaticOnlyCounts) {
  Scaler s;
  s.state = {1024, 1999, 1, 7, 0, 0};
  s.attrs = {{"dynamic", false}};
  s.After(true);
  s.After(false);
  EXPECT_EQ(s.state, (Reals64{1024, 1999, 1, 9, 1, 1}));
}

}  // namespace
}  // namespace halftone::testing
