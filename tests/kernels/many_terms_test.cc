// Sums of 10^6 terms: within 1e-6 of the exact sum, and the same bits whatever the number of
// threads. Equal terms are the worst: each addition may round the same way.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/tests/kernels/each_kernel.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kTerms = 1000000;

OpInput Filled(const Shape& shape, double value) {
  return Fixed(shape, std::vector<double>(static_cast<size_t>(shape.num_elements()), value));
}
OpInput Zeros(DType dtype, const Shape& shape) { return Whole(dtype, shape, 0, 0); }

// 0.1 as `dtype` holds it.
double Tenth(DType dtype) {
  Tensor t = Tensor::Scalar(dtype, 0.1);
  return t.at(0);
}

// Expects of element `at` of output `port` the value `want`, from every kernel, with 1, 2 and 5
// threads, whose bits agree.
void ExpectSum(const OpCase& c, DType dtype, int port, int64_t at, double want) {
  std::vector<std::vector<double>> results;
  const int before = NumThreads();
  for (int threads : {1, 2, 5}) {
    SetNumThreads(threads);
    EXPECT_TRUE(UseNumThreads().ok());
    results.emplace_back();
    ForEachKernel(c, dtype, [&](const std::vector<Tensor>& out, const std::string& what) {
      const Tensor& sums = out[port];
      const double got = sums.at(at);
      // What a 16-bit result itself rounds comes on top.
      const double ulp = sums.dtype() == DType::kBF16  ? 0x1p-8
                         : sums.dtype() == DType::kF16 ? 0x1p-11
                                                       : 0;
      EXPECT_NEAR(got / want, 1, 1e-6 + ulp) << what << ", " << threads << " threads: " << got;
      results.back().push_back(got);
    });
  }
  SetNumThreads(before);
  EXPECT_TRUE(UseNumThreads().ok());
  EXPECT_GE(results[0].size(), 2u) << c.name;
  for (const auto& run : results) EXPECT_EQ(run, results[0]) << c.name;
}

TEST(ManyTerms, F10_EmbeddingAndGatherGradients) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const double want = kTerms * Tenth(dtype);
    for (int64_t width : {1, 5}) {
      ExpectSum(
          Case("embedding_grad", "equal",
               {Filled({kTerms, width}, 0.1), Zeros(DType::kI64, {kTerms})},
               {{"rows", int64_t{2}}, {"padding_idx", int64_t{-1}}, {"out", std::string("f32")}}),
          dtype, 0, width - 1, want);
      if (dtype != DType::kF32) continue;
      ExpectSum(
          Case("gather_grad", "equal", {Filled({kTerms, width}, 0.1), Zeros(DType::kI32, {kTerms})},
               {{"axis", int64_t{0}}, {"dim", int64_t{2}}}),
          dtype, 0, width - 1, want);
    }
  }
}

// The weight gradient of a linear layer: dy, transposed, times x.
TEST(ManyTerms, F11_LinearWeightGradient) {
  const ir::Attributes attrs = {
      {"transpose_a", true}, {"transpose_b", false}, {"out", std::string("f32")}};
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>(1, 1), {7, 5}}) {
      if (dtype != DType::kF32 && m > 2) continue;
      ExpectSum(Case("matmul", "equal", {Filled({kTerms, m}, 0.1), Filled({kTerms, n}, 1)}, attrs),
                dtype, 0, m * n - 1, kTerms * Tenth(dtype));
    }
  }
}

TEST(ManyTerms, F11_NormGradients) {
  const int64_t rows = kTerms, n = 3;
  // xhat = (x - mean) rstd = 0.5: dgamma sums dy xhat, dbeta dy.
  const OpCase layer = Case("layer_norm_grad", "equal",
                            {Filled({rows, n}, 1.5), Filled({rows, n}, 0.1), Pinned(Filled({n}, 1)),
                             Pinned(Filled({rows}, 1)), Pinned(Filled({rows}, 1))},
                            {{"axes_count", int64_t{1}}});
  const OpCase batch = Case("batch_norm_grad", "equal",
                            {Filled({rows, n}, 1.5), Filled({rows, n}, 0.1), Pinned(Filled({n}, 1)),
                             Pinned(Filled({n}, 1)), Pinned(Filled({n}, 1))});
  for (const OpCase& c : {layer, batch}) {
    ExpectSum(c, DType::kF32, 1, n - 1, rows * Tenth(DType::kF32) * 0.5);
    ExpectSum(c, DType::kF32, 2, n - 1, rows * Tenth(DType::kF32));
  }
}

TEST(ManyTerms, F11_BiasGradientsAndReductions) {
  const double want = kTerms * Tenth(DType::kF32);
  for (const Shape& x : {Shape{kTerms, 1}, Shape{kTerms, 3}, Shape{kTerms / 50, 50, 1}}) {
    Ints axes = {0};
    if (x.rank() == 3) axes.push_back(1);
    ExpectSum(Case("sum", "equal", {Filled(x, 0.1)}, {{"axes", axes}}), DType::kF32, 0, 0, want);
    ExpectSum(Case("mean", "equal", {Filled(x, 0.1)}, {{"axes", axes}}), DType::kF32, 0, 0,
              Tenth(DType::kF32));
  }
  ExpectSum(Case("sum_to_shape", "equal", {Filled({kTerms, 2}, 0.1)}, {{"shape", Ints{2}}}),
            DType::kF32, 0, 1, want);
  ExpectSum(Case("conv2d_grad_bias", "equal", {Filled({10, 2, 250, 400}, 0.1)}), DType::kF32, 0, 1,
            want);
}

TEST(ManyTerms, F11_Losses) {
  const ir::Attributes sum = {{"reduction", std::string("sum")}};
  const double tenth = Tenth(DType::kF32);
  ExpectSum(Case("l1_loss", "equal", {Filled({kTerms}, 0.1), Filled({kTerms}, 0)}, sum),
            DType::kF32, 0, 0, kTerms * tenth);
  ExpectSum(Case("mse_loss", "equal", {Filled({kTerms}, 0.1), Filled({kTerms}, 0)}, sum),
            DType::kF32, 0, 0, kTerms * tenth * tenth);
  // -log softmax(0, 0.1)[0] = log(1 + e^0.1).
  std::vector<double> logits;
  for (int64_t i = 0; i < kTerms; ++i) logits.insert(logits.end(), {0.0, 0.1});
  ExpectSum(Case("cross_entropy", "equal",
                 {Fixed({kTerms, 2}, logits), Zeros(DType::kI64, {kTerms})}, sum),
            DType::kF32, 0, 0, kTerms * std::log1p(std::exp(tenth)));
}

// Over 10^6 equal classes the probabilities are 1e-6 each, along any axis.
TEST(ManyTerms, SoftmaxOfAMillionClasses) {
  for (const Shape& x : {Shape{1, kTerms}, Shape{kTerms, 2}}) {
    const ir::Attributes axis = {{"axis", int64_t{x[0] == 1 ? 1 : 0}}};
    ExpectSum(Case("softmax", "equal", {Filled(x, 3)}, axis), DType::kF32, 0, 1, 1e-6);
    ExpectSum(Case("log_softmax", "equal", {Filled(x, 3)}, axis), DType::kF32, 0, 1,
              -std::log(1e6));
  }
}

}  // namespace
}  // namespace halftone::testing
