// Random numbers of a graph: what decides them, their moments, and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

Values Some(const Values& in) {
  return {rand({4, 5}), randn({4, 5}), bernoulli(in[0]), rand({4, 5}), rand({4, 5}, DType::kBF16)};
}

std::vector<std::vector<double>> Numbers(Graph& graph) {
  std::vector<std::vector<double>> numbers;
  for (const Tensor& t : Call(graph, {Tensor::Full(DType::kF32, {20}, 0.5)})) {
    numbers.push_back(t.ToVector());
  }
  return numbers;
}

TEST(Random, SeedRunAndPlaceDecide) {
  FnGraph first(Some), again(Some), other(Some);
  other.config.seed = first.config.seed + 1;
  const auto run1 = Numbers(first), run2 = Numbers(first);
  ASSERT_EQ(run1.size(), 5u);
  EXPECT_EQ(Numbers(again), run1);
  EXPECT_EQ(Numbers(again), run2);
  const auto of_other = Numbers(other);
  for (int i : {0, 1, 2, 3}) {
    EXPECT_NE(run1[i], run2[i]) << i;
    EXPECT_NE(run1[i], of_other[i]) << i;
  }
  EXPECT_NE(run1[0], run1[3]);
}

TEST(Random, MomentsAndRanges) {
  constexpr int64_t kSize = 200001;
  const double n = static_cast<double>(kSize);
  FnGraph graph([](const Values& in) -> Values {
    return {rand({kSize}), randn({kSize}), uniform(-3, 5, {kSize}), normal(2, 0.5, {kSize}),
            bernoulli(broadcast_to(in[0], {kSize}))};
  });
  const std::vector<Tensor> out = Call(graph, {F32({}, {0.3})});
  ASSERT_EQ(out.size(), 5u);
  struct Want {
    double mean, variance, fourth, least, most;
  };
  // The fourth central moment, of which the variance's own variance is made: uniform of width w
  // w^4 / 80, normal 3 s^4, Bernoulli p q (1 - 3 p q).
  const Want wants[] = {{0.5, 1.0 / 12, 1.0 / 80, 0, 1},
                        {0, 1, 3, -7, 7},
                        {1, 64.0 / 12, 4096.0 / 80, -3, 5},
                        {2, 0.25, 3 / 16.0, -2, 6},
                        {0.3, 0.21, 0.21 * 0.37, 0, 1}};
  for (size_t k = 0; k < 5; ++k) {
    double mean = 0, variance = 0;
    for (double v : out[k].ToVector()) {
      EXPECT_GE(v, wants[k].least);
      EXPECT_LE(v, wants[k].most);
      mean += v / n;
      variance += (v - wants[k].mean) * (v - wants[k].mean) / n;
    }
    EXPECT_NEAR(mean, wants[k].mean, 5 * std::sqrt(wants[k].variance / n)) << k;
    const double of_variance = wants[k].fourth - wants[k].variance * wants[k].variance;
    EXPECT_NEAR(variance, wants[k].variance, 5 * std::sqrt(of_variance / n)) << k;
  }
  double beyond = 0, product = 0;
  const std::vector<double> z = out[1].ToVector();
  for (size_t i = 0; i + 1 < z.size(); ++i) {
    beyond += std::abs(z[i]) > 2 ? 1 / n : 0;
    product += z[i] * z[i + 1] / n;
  }
  EXPECT_NEAR(beyond, 0.0455, 5 * std::sqrt(0.0455 / n));
  EXPECT_NEAR(product, 0, 5 / std::sqrt(n));
}

// The same u rounded, not other numbers.
TEST(Random, DtypesRoundTheSameNumbers) {
  const auto drawn = [](DType dtype) {
    FnGraph graph([dtype](const Values&) -> Values {
      return {rand({1000}, dtype), randn({1000}, dtype)};
    });
    return Call(graph, {});
  };
  const std::vector<Tensor> f64 = drawn(DType::kF64);
  ASSERT_EQ(f64.size(), 2u);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::vector<Tensor> low = drawn(dtype);
    ASSERT_EQ(low.size(), 2u);
    EXPECT_EQ(low[0].ToVector(), f64[0].To(dtype).ToVector()) << Name(dtype);
    EXPECT_EQ(low[1].ToVector(), f64[1].To(DType::kF32).To(dtype).ToVector()) << Name(dtype);
  }
}

TEST(Random, BernoulliOfCertaintiesAndItsGradient) {
  FnGraph graph([](const Values& in) -> Values {
    const Value drawn = bernoulli(in[0]);
    return {drawn, gradients(sum(drawn * in[0]), {in[0]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({4}, {0, 1, std::nan(""), 2})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(out[0].ToVector(), ::testing::ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(out[1].ToVector(), out[0].ToVector());
}

TEST(Random, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(Message(CallStatus(graph, {I64({2}, {0, 1})})), HasSubstr(message));
  };
  expect([](const Values&) -> Values { return {rand({2, -1})}; }, "random_uniform: ");
  expect([](const Values&) -> Values { return {rand({2}, DType::kI64)}; },
         "random_uniform: dtype is i64; expected f64 f32 f16 bf16");
  expect([](const Values&) -> Values { return {uniform(1, 0, {2})}; },
         "random_uniform: high is 0; expected at least low");
  expect([](const Values&) -> Values { return {uniform(0, 1e300, {2})}; },
         "random_uniform: high is 1e+300; expected a number that is finite in f32");
  expect([](const Values&) -> Values { return {normal(0, -1, {2})}; },
         "random_normal: std is -1; expected 0 or more");
  expect([](const Values&) -> Values { return {normal(std::nan(""), 1, {2})}; },
         "random_normal: mean is nan; expected a number that is finite in f32");
  expect([](const Values& in) -> Values { return {bernoulli(in[0])}; },
         "bernoulli: input 0 (x) is i64[2]; expected f64 f32 f16 bf16");
}

}  // namespace
}  // namespace halftone::nn
