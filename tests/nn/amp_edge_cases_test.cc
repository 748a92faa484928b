// Edge cases of mixed precision in whole training steps: weights with readers in both precisions,
// and two 16-bit types in one graph.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;

Parameter ParameterOf(const Tensor& value) {
  Parameter parameter(value.shape(), {ir::Initializer::Kind::kConstant, 0, 0});
  EXPECT_TRUE(parameter.set_value(value).ok());
  return parameter;
}

// SGD with rate 1 from these values: what the parameter loses is its gradient.
std::vector<double> LossOfValue(const Parameter& parameter, const std::vector<double>& before) {
  std::vector<double> gradient = parameter.value().ToVector();
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = before[i] - gradient[i];
  return gradient;
}

class EdgeCaseSteps : public ::testing::TestWithParam<DType> {
 protected:
  void Train(FnGraph& graph, const Parameter& parameter, const std::vector<Tensor>& in) {
    graph.add_parameter("w", parameter);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
    graph.set_grad_scaler(amp::GradScaler({.init_scale = 16}));
    graph.config.enable_amp(true, {.dtype = GetParam()});
    Call(graph, in);
    ASSERT_FALSE(graph.last_step_skipped());
  }
};

// e = row 1 of w, logits = e w^T, loss = sum(c * logits): the gradient is c^T e, and c w in row 1.
TEST_P(EdgeCaseSteps, AWeightTiedBetweenAnEmbeddingAndALinearLayer) {
  const std::vector<double> before = {1, 2, 3, -1, 0.5, 4};
  Parameter w = ParameterOf(F32({3, 2}, {1, 2, 3, -1, 0.5, 4}));
  FnGraph graph([&](const Values& in) -> Values {
    const Value logits = linear(embedding(in[0], w), w);
    const Value loss = sum(logits * in[1]);
    loss.backward();
    return {loss, logits};
  });
  Train(graph, w, {I64({1}, {1}), F32({1, 3}, {1, 2, -1})});
  // c w = (1 + 6 - 0.5, 2 - 2 - 4); c^T e = (1, 2, -1)^T (3, -1).
  EXPECT_THAT(LossOfValue(w, before), ElementsAre(3, -1, 6 + 6.5, -2 - 4, -3, 1));
}

// The exponential reads the f32 master, not its cast: 0.1 has no 16-bit number.
TEST_P(EdgeCaseSteps, AWeightReadInBothPrecisions) {
  const float tenth = 0.1f;
  Parameter w = ParameterOf(Tensor::Full(DType::kF32, {2, 2}, 0.1));
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(relu(matmul(in[0], w))) + sum(exp(w));
    loss.backward();
    return {loss};
  });
  Train(graph, w, {F32({3, 2}, {1, 2, 1, 2, 1, 2})});
  const std::vector<double> gradient = LossOfValue(w, std::vector<double>(4, tenth));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(gradient[i], (i < 2 ? 3 : 6) + std::exp(static_cast<double>(tenth)), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(LowTypes, EdgeCaseSteps, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

// 1 + 2^-9 is an f16 number; bf16 rounds it to 1.
TEST(EdgeCases, F16AndBf16InOneGraph) {
  Parameter w = ParameterOf(Tensor::Full(DType::kF32, {1, 1}, 1 + std::ldexp(1, -9)));
  FnGraph graph([&](const Values& in) -> Values {
    const auto product_in = [&](DType low) {
      return cast(matmul(cast(in[0], low), cast(w, low)), DType::kF32);
    };
    const Value half = product_in(DType::kF16), brain = product_in(DType::kBF16);
    const Value third = matmul(in[0], w);
    const Value loss = sum(half + brain + third);
    loss.backward();
    return {half, brain, third};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 16}));
  for (const DType low : {DType::kF16, DType::kBF16}) {
    ASSERT_TRUE(w.set_value(Tensor::Full(DType::kF32, {1, 1}, 1 + std::ldexp(1, -9))).ok());
    graph.config.enable_amp(true, {.dtype = low});
    const std::vector<Tensor> out = Call(graph, {F32({1, 1}, {1})});
    EXPECT_EQ(out[0].item(), 1 + std::ldexp(1, -9));
    EXPECT_EQ(out[1].item(), 1);
    EXPECT_EQ(out[2].item(), low == DType::kF16 ? 1 + std::ldexp(1, -9) : 1);
    EXPECT_EQ(w.value().item(), 1 + std::ldexp(1, -9) - 3);
  }
}

}  // namespace
}  // namespace halftone::nn
