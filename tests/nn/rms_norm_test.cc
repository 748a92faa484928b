// nn::RMSNorm against its formula in double: values, gradients, 16 bit, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRows = 3, kWidth = 8;
constexpr double kEps = 1e-3;

struct Expected {
  std::vector<double> y, dx, dweight;
};

// Of loss = sum(y g): with r = sqrt(mean(x^2) + eps) and c = mean(g w x) / r^2 per row,
// y = x w / r, dx = (g w - x c) / r, dweight = sum over rows of g x / r.
Expected ByFormula(const std::vector<double>& x, const std::vector<double>& w,
                   const std::vector<double>& g) {
  Expected expected{x, x, std::vector<double>(kWidth, 0)};
  for (size_t row = 0; row < kRows; ++row) {
    double square = kEps, product = 0;
    for (size_t i = 0; i < kWidth; ++i) {
      const size_t at = row * kWidth + i;
      square += x[at] * x[at] / kWidth;
      product += g[at] * w[i] * x[at] / kWidth;
    }
    const double r = std::sqrt(square);
    for (size_t i = 0; i < kWidth; ++i) {
      const size_t at = row * kWidth + i;
      expected.y[at] = x[at] * w[i] / r;
      expected.dx[at] = (g[at] * w[i] - x[at] * product / square) / r;
      expected.dweight[i] += g[at] * x[at] / r;
    }
  }
  return expected;
}

void ExpectNormed(const std::vector<double>& got, const std::vector<double>& expected,
                  double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

TEST(RMSNormModule, ValuesAndGradientsFollowTheFormula) {
  RMSNorm norm({2, kWidth / 2}, {.eps = kEps});
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = norm(in[0]);
    const Values d = gradients(sum(y * in[1]), {in[0], norm.weight});
    return {y, d[0], d[1]};
  });
  graph.add_module("norm", norm);
  const Shape shape{kRows, 2, kWidth / 2};
  const Tensor x = testing::RandomTensor(DType::kF32, shape, 1);
  const Tensor g = testing::RandomTensor(DType::kF32, shape, 2);
  const Tensor w = testing::RandomTensor(DType::kF32, {2, kWidth / 2}, 3);
  ASSERT_TRUE(norm.weight.set_value(w).ok());
  const std::vector<Tensor> out = Call(graph, {x, g});
  ASSERT_EQ(out.size(), 3u);
  const Expected expected = ByFormula(x.ToVector(), w.ToVector(), g.ToVector());
  EXPECT_EQ(out[0].shape(), shape);
  ExpectNormed(out[0].ToVector(), expected.y, 4e-6);
  ExpectNormed(out[1].ToVector(), expected.dx, 4e-6);
  ExpectNormed(out[2].ToVector(), expected.dweight, 4e-6);
}

TEST(RMSNormModule, NamesAndDefaultsArePyTorchs) {
  const RMSNorm norm({4});
  ASSERT_EQ(norm.named_parameters().size(), 1u);
  EXPECT_EQ(norm.named_parameters()[0].first, "weight");
  EXPECT_THAT(norm.weight.value().ToVector(), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(RMSNorm({4}, {.affine = false}).named_parameters().size(), 0u);
  EXPECT_EQ(norm.description(), "RMSNorm[4]");
}

// In 16 bit eps is all that counts beside so small an x.
TEST(RMSNormModule, EpsIsThatOfTheDtype) {
  RMSNorm norm({1}, {.affine = false});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  for (const auto& [dtype, eps] : {std::pair{DType::kF64, 0x1p-52},
                                   {DType::kF32, 0x1p-23},
                                   {DType::kF16, 0x1p-10},
                                   {DType::kBF16, 0x1p-7}}) {
    const double x = 0x1p-12;
    const Tensor in = Tensor::Full(dtype, {1}, x);
    const double expected = x / std::sqrt(x * x + eps);
    EXPECT_THAT(Call1(graph, {in}), ElementsAre(DoubleNear(expected, expected * 0x1p-8)));
    EXPECT_EQ(Call(graph, {in})[0].dtype(), dtype);
  }
}

// 300^2 is beyond f16.
TEST(RMSNormModule, SquaresAreF32In16Bit) {
  RMSNorm norm({2});
  FnGraph plain([&](const Values& in) -> Values { return {norm(in[0])}; });
  plain.add_module("norm", norm);
  const double root = std::sqrt((300 * 300 + 400 * 400) / 2.0);
  EXPECT_THAT(Call1(plain, {Tensor::Of(DType::kF16, {2}, {300, 400})}),
              ElementsAre(DoubleNear(300 / root, 5e-4), DoubleNear(400 / root, 5e-4)));
  FnGraph mixed([&](const Values& in) -> Values { return {norm(matmul(in[0], in[1]))}; });
  mixed.add_module("norm", norm);
  mixed.config.enable_amp(true, {.dtype = DType::kF16});
  EXPECT_THAT(Call1(mixed, {F32({1, 1}, {100}), F32({1, 2}, {3, 4})}),
              ElementsAre(DoubleNear(300 / root, 5e-4), DoubleNear(400 / root, 5e-4)));
}

TEST(RMSNormModule, RefusesOtherShapes) {
  RMSNorm norm({2, 3});
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  EXPECT_THAT(Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {3, 1, 3})})),
              HasSubstr("rms_norm: x is f32[3,1,3]; expected a floating-point value of last axes "
                        "[2,3]"));
  EXPECT_THAT(Message(CallStatus(graph, {Tensor::Zeros(DType::kI64, {2, 3})})),
              HasSubstr("rms_norm: x is i64[2,3]; expected a floating-point value of last axes"));
  EXPECT_THAT(Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {3})})),
              HasSubstr("rms_norm: x is f32[3]; expected"));
  EXPECT_EQ(Message(RMSNorm({}).status()),
            "RMSNorm: normalized_shape is []; expected one or more extents of at least 1");
}

}  // namespace
}  // namespace halftone::nn
