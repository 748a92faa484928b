// grad_stats over many gradients of every dtype, with a bad element anywhere.
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

// finite, norm, first_bad on the device; agreement with the reference kernel is checked.
std::vector<Tensor> Stats(std::vector<Tensor> grads, double inv_scale = kScaleInverse) {
  grads.insert(grads.begin(), Tensor::Scalar(DType::kF32, inv_scale));
  ir::Graph graph("stats");
  ir::Builder b(&graph);
  std::vector<ir::Expr> inputs;
  for (size_t i = 0; i < grads.size(); ++i) {
    inputs.push_back(b.Input(Concat("x", i), {grads[i].dtype(), grads[i].shape()}));
  }
  const ir::Node& node = *b.Make("grad_stats", inputs)[0].value().node;
  const auto kernel = CudaCandidates("grad_stats").at(0)->create(node);
  HT_CHECK(kernel.ok(), "a kernel for grad_stats");
  const auto got = RunOnDevice(**kernel, node, grads);
  const auto want = RunReference(node, grads);
  HT_CHECK(got.ok() && want.ok(), "grad_stats runs");
  EXPECT_EQ((*got)[0].at(0), (*want)[0].at(0));
  EXPECT_TRUE(IsClose((*got)[1], (*want)[1], 1e-7, 0));
  EXPECT_EQ((*got)[2].at(0), (*want)[2].at(0));
  return *got;
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
