// Norms on f64, with and without parameters, as modules and as functions: as Linear does.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

Tensor F64(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of(DType::kF64, shape, values);
}

// 1e-13 of 1 / sqrt(1 + 1e-5): what f64 keeps and f32 does not.
const double kOne = 1 / std::sqrt(1 + 1e-5);

class NormsOnF64 : public ::testing::TestWithParam<bool> {};

TEST_P(NormsOnF64, F22F53BatchNorm2d) {
  BatchNorm2d norm(2, {.affine = GetParam()});
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = norm(in[0]);
    sum(y * y).backward();
    return {y};
  });
  graph.add_module("norm", norm);
  if (GetParam()) graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.25}));
  // Means 2 and 5, variances 1; unbiased 2.
  const std::vector<Tensor> out = Call(graph, {F64({2, 2}, {1, 4, 3, 6})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype(), DType::kF64);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(DoubleNear(-kOne, 1e-13), DoubleNear(-kOne, 1e-13),
                                             DoubleNear(kOne, 1e-13), DoubleNear(kOne, 1e-13)));
  EXPECT_EQ(norm.running_mean.dtype(), DType::kF32);
  EXPECT_THAT(norm.running_mean.value().ToVector(),
              ElementsAre(DoubleNear(0.2, 1e-7), DoubleNear(0.5, 1e-7)));
  EXPECT_THAT(norm.running_var.value().ToVector(),
              ElementsAre(DoubleNear(1.1, 1e-6), DoubleNear(1.1, 1e-6)));
  // d weight = sum(2 y xhat) = 4 kOne^2.
  if (GetParam()) {
    EXPECT_NEAR(norm.weight.value().ToVector()[0], 1 - kOne * kOne, 1e-6);
  }
  graph.eval();
  const double deviation = std::sqrt(norm.running_var.value().ToVector()[0] + 1e-5);
  const double weight = GetParam() ? norm.weight.value().ToVector()[0] : 1;
  const double mean = norm.running_mean.value().ToVector()[0];
  EXPECT_NEAR(Call1(graph, {F64({2, 2}, {1, 4, 3, 6})})[0], (1 - mean) / deviation * weight, 1e-13);
}

TEST_P(NormsOnF64, F22F53LayerNorm) {
  LayerNorm norm({2}, {.affine = GetParam()});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  const std::vector<Tensor> out = Call(graph, {F64({1, 2}, {1, 3})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype(), DType::kF64);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(DoubleNear(-kOne, 1e-13), DoubleNear(kOne, 1e-13)));
}

INSTANTIATE_TEST_SUITE_P(Affine, NormsOnF64, ::testing::Bool());

TEST(NormDTypes, ParametersOfF64WidenTheInput) {
  // As linear: the common dtype, here that of gamma.
  Parameter gamma(Shape{2}, {ir::Initializer::Kind::kConstant, 1, 0}, DType::kF64);
  Parameter beta(Shape{2}, {}, DType::kF32);
  FnGraph graph([&](const Values& in) -> Values {
    return {layer_norm(in[0], gamma, beta), linear(in[0], reshape(gamma, {1, 2}))};
  });
  graph.add_parameter("gamma", gamma);
  graph.add_parameter("beta", beta);
  const std::vector<Tensor> out = Call(graph, {F32({1, 2}, {1, 3})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].dtype(), DType::kF64);
  EXPECT_EQ(out[0].dtype(), DType::kF64);
  EXPECT_NEAR(out[0].ToVector()[1], kOne, 1e-13);
}

TEST(NormDTypes, SixteenBitInputsKeepF32Statistics) {
  BatchNorm2d norm(1);
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  const std::vector<Tensor> out = Call(graph, {Tensor::Of(DType::kF16, {2, 1}, {1, 3})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype(), DType::kF16);
  EXPECT_THAT(norm.running_mean.value().ToVector(), ElementsAre(DoubleNear(0.2, 1e-7)));
}

}  // namespace
}  // namespace halftone::nn
