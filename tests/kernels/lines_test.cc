// Softmax and cross-entropy along any axis: values, and digits at any offset.
// How long they take is measured by benchmarks/kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/kernels/each_kernel.h"

namespace halftone::testing {
namespace {

OpInput Labels(const Shape& shape, const std::vector<double>& values) {
  OpInput labels = Pinned(Fixed(shape, values));
  labels.type.dtype = DType::kI64;
  return labels;
}

// Tiles that are full, cut, and made of several pieces; long lines, whose tiles are narrow.
TEST(Lines, F09_EveryKernelAgreesWithTheReference) {
  for (const Shape& x : {Shape{3, 5, 2}, Shape{7, 40, 3}, Shape{2, 33, 64}, Shape{3, 65, 65},
                         Shape{5, 1, 31}, Shape{1, 2500, 35}, Shape{2, 5000, 19}}) {
    const ir::Attributes axis = {{"axis", int64_t{1}}};
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const char* op : {"softmax", "log_softmax"}) {
        CheckCandidates(Case(op, "lines", {Reals(x, -5, 5)}, axis), dtype);
        CheckCandidates(
            Case(std::string(op) + "_grad", "lines",
                 {Reals(x, op[0] == 's' ? 0 : -2, op[0] == 's' ? 0.1 : 0), Reals(x)}, axis),
            dtype);
      }
      const Shape target{x[0], x[2]}, stats{2, x[0], x[2]};
      const OpInput labels = Whole(DType::kI64, target, 0, static_cast<double>(x[1] - 1));
      for (double smoothing : {0.0, 0.2}) {
        const ir::Attributes attrs = {
            {"axis", int64_t{1}}, {"label_smoothing", smoothing}, {"ignore_index", int64_t{0}}};
        CheckCandidates(Case("cross_entropy", "lines", {Reals(x, -5, 5), labels}, attrs), dtype);
        CheckCandidates(
            Case("cross_entropy_grad", "lines",
                 {Reals(x, -5, 5), labels, Pinned(Reals(stats, 2, 4)), Pinned(Reals({}, 0.5, 2))},
                 attrs),
            dtype);
      }
    }
  }
}

// Results that go past the caches, and long lines.
TEST(Lines, LargeStripsAgreeWithTheReference) {
  for (const Shape& x : {Shape{2, 40, 27008}, Shape{1, 8200, 64}}) {
    for (const char* op : {"softmax", "log_softmax"}) {
      CheckCandidates(Case(op, "strips", {Reals(x, -5, 5)}, {{"axis", int64_t{1}}}), DType::kF32);
    }
  }
}

// Lines of 100 elements beside each other, longer than what is read together: those that rise, that
// start with masked elements, that end with them, and that are masked throughout.
TEST(Lines, MaskedAndRisingLines) {
  constexpr int64_t kSize = 100, kLines = 64;
  const double inf = INFINITY;
  const auto element = [&](int64_t k, int64_t line) -> double {
    switch (line % 5) {
      case 0:
        return 3.0 * static_cast<double>(k) - 150;
      case 1:
        return k < 70 ? -inf : -1000.0 - static_cast<double>(k % 3);
      case 2:
        return k < 10 ? 0.5 * static_cast<double>(k) : -inf;
      case 3:
        return -inf;
      default:
        return k == 50 ? std::nan("") : 1.0;
    }
  };
  std::vector<double> x;
  for (int64_t k = 0; k < kSize; ++k)
    for (int64_t line = 0; line < kLines; ++line) x.push_back(element(k, line));
  for (const bool log : {false, true}) {
    ForEachKernel(
        Case(log ? "log_softmax" : "softmax", "masked", {Fixed({1, kSize, kLines}, x)},
             {{"axis", int64_t{1}}}),
        DType::kF32, [&](const std::vector<Tensor>& out, const std::string& what) {
          for (int64_t line = 0; line < 5; ++line) {
            double max = -inf, sum = 0;
            for (int64_t k = 0; k < kSize; ++k) max = std::max(max, element(k, line));
            for (int64_t k = 0; k < kSize; ++k) sum += std::exp(element(k, line) - max);
            for (int64_t k = 0; k < kSize; ++k) {
              const double got = out[0].at(k * kLines + line), less = element(k, line) - max;
              const double want = log ? less - std::log(sum) : std::exp(less) / sum;
              if (line >= 3) {
                EXPECT_TRUE(std::isnan(got)) << what << " line " << line << " element " << k;
              } else if (std::isinf(want)) {
                EXPECT_EQ(got, want) << what << " line " << line << " element " << k;
              } else {
                EXPECT_NEAR(got, want, 2e-6 * std::max(1.0, std::abs(want)))
                    << what << " line " << line << " element " << k;
              }
            }
          }
        });
  }
}

// An ignored line has gradient 0, whatever its logits.
TEST(Lines, IgnoredLinesTakeNothing) {
  const double inf = INFINITY, nan = std::nan("");
  ForEachKernel(
      Case("cross_entropy_grad", "ignored",
           {Fixed({1, 2, 2}, {inf, 1, nan, 1}), Labels({1, 2}, {-100, 0}),
            Pinned(Fixed({2, 1, 2}, {nan, 1, nan, std::log(2.0)})), Pinned(Fixed({}, {1}))},
           {{"axis", int64_t{1}}}),
      DType::kF32, [](const std::vector<Tensor>& out, const std::string& what) {
        EXPECT_EQ(out[0].at(0), 0) << what;
        EXPECT_EQ(out[0].at(2), 0) << what;
        EXPECT_NEAR(out[0].at(1), -0.5, 1e-6) << what;
        EXPECT_NEAR(out[0].at(3), 0.5, 1e-6) << what;
      });
}

// softmax(0, 1, 2.5) = (1, e, e^2.5) / 15.90077...; less 1 at the target.
TEST(Lines, F51_CrossEntropyGradientAtAnyOffset) {
  const double e1 = std::exp(1.0), e2 = std::exp(2.5), sum = 1 + e1 + e2;
  const double want[] = {1 / sum, e1 / sum - 1, e2 / sum};
  EXPECT_NEAR(want[0], 0.06289, 5e-6);
  EXPECT_NEAR(want[1], -0.82905, 5e-6);
  EXPECT_NEAR(want[2], 0.76616, 5e-6);
  for (double offset : {0.0, 1e4, -1e4, 1e6, -3e6}) {
    for (bool last : {true, false}) {
      // Two lines: one after the other, or element by element in turn.
      const std::vector<double> x = {offset, offset + 1, offset + 2.5};
      std::vector<double> logits;
      for (int i = 0; i < 6; ++i) logits.push_back(last ? x[i % 3] : x[i / 2]);
      const OpInput in = Fixed(last ? Shape{2, 3} : Shape{1, 3, 2}, logits);
      const OpInput target = Labels(last ? Shape{2} : Shape{1, 2}, {1, 1});
      const ir::Attributes attrs = {{"axis", int64_t{1}}, {"reduction", std::string("sum")}};
      ForEachKernel(Case("cross_entropy", "offset", {in, target}, attrs), DType::kF32,
                    [&](const std::vector<Tensor>& out, const std::string& what) {
                      EXPECT_NEAR(out[0].at(0), 2 * (std::log(sum) - 1), 1e-6) << what;
                      OpInput stats = Pinned(Fixed(out[1].shape(), out[1].ToVector()));
                      ForEachKernel(Case("cross_entropy_grad", "offset",
                                         {in, target, stats, Pinned(Fixed({}, {1}))}, attrs),
                                    DType::kF32,
                                    [&](const std::vector<Tensor>& dx, const std::string& by) {
                                      for (int i = 0; i < 6; ++i) {
                                        EXPECT_NEAR(dx[0].at(i), want[last ? i % 3 : i / 2], 1e-6)
                                            << what << "; " << by;
                                      }
                                    });
                    });
    }
  }
}

// Label smoothing adds (m - mean) and must not lose it either: uniform loss is log sum - mean.
TEST(Lines, F51_SmoothedLossAtAnyOffset) {
  const double sum = 1 + std::exp(1.0) + std::exp(2.5), mean = 3.5 / 3;
  for (double offset : {0.0, 1e4, 1e6}) {
    const OpInput target = Labels({1}, {1});
    ForEachKernel(
        Case("cross_entropy", "smooth", {Fixed({1, 3}, {offset, offset + 1, offset + 2.5}), target},
             {{"axis", int64_t{1}}, {"label_smoothing", 0.5}}),
        DType::kF32, [&](const std::vector<Tensor>& out, const std::string& what) {
          const double log = std::log(sum);
          EXPECT_NEAR(out[0].at(0), 0.5 * (log - 1) + 0.5 * (log - mean), 1e-6) << what;
        });
  }
}

// Statistics over no elements are 0 / 0 on every device, as the op `mean` has them.
TEST(Lines, F67_LayerNormOfNoElements) {
  ForEachKernel(Case("layer_norm", "empty", {Reals({3, 0}), Pinned(Reals({0})), Pinned(Reals({0}))},
                     {{"axes_count", int64_t{1}}}),
                DType::kF32, [](const std::vector<Tensor>& out, const std::string& what) {
                  ASSERT_EQ(out[1].num_elements(), 3) << what;
                  for (int i = 0; i < 3; ++i) {
                    EXPECT_TRUE(std::isnan(out[1].at(i))) << what << ": " << out[1].at(i);
                    EXPECT_TRUE(std::isnan(out[2].at(i))) << what << ": " << out[2].at(i);
                  }
                });
}

}  // namespace
}  // namespace halftone::testing
