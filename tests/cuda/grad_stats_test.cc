// grad_stats over many gradients of every dtype, with a bad element anywhere; and in the two parts that ranks make.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/graph/ir/builder.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

constexpr double kScaleInverse = 1.0 / 1024;

Tensor Gradient(DType dtype, int64_t size, uint64_t seed) {
  PhiloxStream random(seed);
  std::vector<double> values(static_cast<size_t>(size));
  for (double& v : values) v = 100 * random.Normal();
  return Tensor::Of(dtype, Shape{size}, values);
}

// The results of an op on the device, and those of its reference kernel.
struct Results {
  std::vector<Tensor> got, want;
};

Results Run(const std::string& op, const std::vector<Tensor>& operands) {
  ir::Graph graph("stats");
  ir::Builder b(&graph);
  std::vector<ir::Expr> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(b.Input(Concat("x", i), {operands[i].dtype(), operands[i].shape()}));
  }
  const ir::Node& node = *b.Make(op, inputs)[0].value().node;
  const auto kernel = CudaCandidates(op).at(0)->create(node);
  HT_CHECK(kernel.ok(), "a kernel for the statistics");
  const auto got = RunOnDevice(**kernel, node, operands);
  const auto want = RunReference(node, operands);
  HT_CHECK(got.ok() && want.ok(), "the statistics run");
  return {*got, *want};
}

std::vector<Tensor> WithScale(std::vector<Tensor> grads, double inv_scale) {
  grads.insert(grads.begin(), Tensor::Scalar(DType::kF32, inv_scale));
  return grads;
}

// finite, norm, first_bad on the device; agreement with the reference kernel is checked.
std::vector<Tensor> Stats(const std::vector<Tensor>& grads, double inv_scale = kScaleInverse) {
  const auto [got, want] = Run("grad_stats", WithScale(grads, inv_scale));
  EXPECT_EQ(got[0].at(0), want[0].at(0));
  EXPECT_TRUE(IsClose(got[1], want[1], 1e-7, 0));
  EXPECT_EQ(got[2].at(0), want[2].at(0));
  return got;
}

// The same by ranks of which each has every n-th gradient, and in the place of the others an empty one.
std::vector<Tensor> StatsOfRanks(const std::vector<Tensor>& grads, size_t ranks) {
  Tensor sum = Tensor::Full(DType::kF64, Shape{2, static_cast<int64_t>(grads.size())}, 0);
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<Tensor> own = grads;
    for (size_t i = 0; i < own.size(); ++i) {
      if (i % ranks != rank) own[i] = Gradient(DType::kF32, 0, 0);
    }
    const Tensor squares = Run("grad_squares", WithScale(own, kScaleInverse)).got[0];
    for (int64_t i = 0; i < sum.num_elements(); ++i) sum.set(i, sum.at(i) + squares.at(i));
  }
  return Run("grad_stats_of_squares", {sum}).got;
}

TEST(GradStatsTest, EveryFloatDtypeTogether) {
  const std::vector<Tensor> stats =
      Stats({Gradient(DType::kF32, 8193, 1), Gradient(DType::kF16, 33, 2),
             Gradient(DType::kBF16, 16385, 3), Gradient(DType::kF64, 31, 4),
             Gradient(DType::kF16, 1, 5)});
  EXPECT_EQ(stats[0].at(0), 1);
  EXPECT_EQ(stats[2].at(0), -1);
}

TEST(GradStatsTest, MoreGradientsThanOneLaunchTakes) {
  std::vector<Tensor> grads;
  // Most are empty: a block each would take the emulated device long.
  for (int i = 0; i < 400; ++i) grads.push_back(Gradient(DType::kF32, i % 16 == 0 ? i : 0, i));
  EXPECT_EQ(Stats(grads)[0].at(0), 1);
  // A later gradient in a later launch does not hide the first bad one.
  grads[390] = Tensor::Of(DType::kF32, Shape{1}, {kInf});
  EXPECT_EQ(Stats(grads)[2].at(0), 390);
  grads[170] = Tensor::Of(DType::kF32, Shape{1}, {-kInf});
  EXPECT_EQ(Stats(grads)[2].at(0), 170);
}

TEST(GradStatsTest, OneBadElementAnywhereIsFound) {
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  for (int bad = 0; bad < 4; ++bad) {
    for (int64_t position : {0, 8191, 8199}) {
      for (double value : {kInf, -kInf, std::nan("")}) {
        std::vector<Tensor> grads;
        for (int i = 0; i < 4; ++i) grads.push_back(Gradient(dtypes[i], 8200, i));
        std::vector<double> values(8200, 0.5);
        values[static_cast<size_t>(position)] = value;
        grads[bad] = Tensor::Of(dtypes[bad], Shape{8200}, values);
        const std::vector<Tensor> stats = Stats(grads);
        EXPECT_EQ(stats[0].at(0), 0);
        EXPECT_EQ(stats[1].at(0), kInf);
        EXPECT_EQ(stats[2].at(0), bad) << "position " << position << ", value " << value;
      }
    }
  }
}

TEST(GradStatsTest, RanksWithSomeOfTheGradientsGetTheSameBits) {
  std::vector<Tensor> grads = {Gradient(DType::kF32, 40001, 1), Gradient(DType::kF16, 33, 2),
                               Gradient(DType::kBF16, 8192, 3), Gradient(DType::kF64, 31, 4),
                               Gradient(DType::kF32, 0, 5),     Gradient(DType::kF32, 8193, 6)};
  for (uint64_t i = 0; i < 200; ++i) grads.push_back(Gradient(DType::kF32, i % 8 == 0 ? 9 : 0, i));
  for (const size_t ranks : {1, 2, 3}) {
    const std::vector<Tensor> got = StatsOfRanks(grads, ranks), want = Stats(grads);
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(got[k].at(0), want[k].at(0)) << ranks << " " << k;
  }
  grads[5].set(8192, kInf);
  const std::vector<Tensor> got = StatsOfRanks(grads, 2);
  EXPECT_EQ(got[0].at(0), 0);
  EXPECT_EQ(got[1].at(0), kInf);
  EXPECT_EQ(got[2].at(0), 5);
}

TEST(GradStatsTest, AProductThatOverflowsF32IsBad) {
  const Tensor big = Tensor::Of(DType::kF32, Shape{2}, {1, 3e38});
  EXPECT_EQ(Stats({big}, 1)[0].at(0), 1);
  EXPECT_EQ(Stats({big}, 2)[0].at(0), 0);
}

TEST(GradStatsTest, TheNormIsThatOfAFormula) {
  // 20,000 elements of 3 and one of 4,000: 9 * 20,000 + 4,000^2 = 16,180,000.
  const std::vector<Tensor> stats = Stats(
      {Tensor::Full(DType::kF32, Shape{20000}, 3), Tensor::Full(DType::kF32, Shape{1}, 4000)}, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(stats[1].at(0)), std::sqrt(16180000.0F));
}

}  // namespace
}  // namespace halftone::testing
