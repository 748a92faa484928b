// The oracle itself: softmax, losses and dropout pinned by numbers one can check by hand.
#include <gtest/gtest.h>

#include "halftone/core/philox.h"
#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

const double kLog2 = std::log(2), kLog3 = std::log(3);

ir::Attributes Reduction(const char* name) { return {{"reduction", std::string(name)}}; }
Tensor Labels(const Reals64& values) { return Vec(values, DType::kI64); }

TEST(Literal, Softmax) {
  EXPECT_THAT(Apply("softmax", {Vec({0, kLog3})}), Is({0.25, 0.75}));
  EXPECT_THAT(Apply("softmax", {T({2, 2}, {0, 5, kLog3, 5})}, {{"axis", int64_t{0}}}),
              Is({2, 2}, {0.25, 0.5, 0.75, 0.5}));
  EXPECT_THAT(Apply("softmax", {Vec({1000, 1000})}), Is({0.5, 0.5}));
  const double e = std::exp(1);
  EXPECT_THAT(Apply("softmax", {Vec({1, 2, -INFINITY})}), Is({1 / (1 + e), e / (1 + e), 0}));
  EXPECT_THAT(Apply("softmax", {Vec({1, kNaN})}), Is({kNaN, kNaN}));
}

TEST(Literal, LogSoftmax) {
  EXPECT_THAT(Apply("log_softmax", {Vec({0, kLog3})}), Is({-2 * kLog2, kLog3 - 2 * kLog2}));
  EXPECT_THAT(Apply("log_softmax", {Vec({0, -2000})}), Is({0, -2000}));
}

TEST(Literal, SoftmaxGradients) {
  EXPECT_THAT(Apply("softmax_grad", {Vec({0.25, 0.75}), Vec({1, 0})}), Is({0.1875, -0.1875}));
  EXPECT_THAT(Apply("log_softmax_grad", {Vec({-2 * kLog2, kLog3 - 2 * kLog2}), Vec({1, 0})}),
              Is({0.75, -0.75}));
}

TEST(Literal, CrossEntropy) {
  const Tensor logits = T({2, 2}, {0, kLog3, 0, 0});
  const auto each = RunOp("cross_entropy", {logits, Labels({1, 0})}, Reduction("none"));
  EXPECT_THAT(each[0], Is({2 * kLog2 - kLog3, kLog2}));
  // The largest logit of each, then the logarithm of the sum over exp(logit - it).
  EXPECT_THAT(each[1], Is({2, 2}, {kLog3, 0, 2 * kLog2 - kLog3, kLog2}));
  EXPECT_THAT(Apply("cross_entropy", {logits, Labels({1, 0})}, Reduction("sum")),
              Is({}, {3 * kLog2 - kLog3}));
  EXPECT_THAT(Apply("cross_entropy", {logits, Labels({1, 0})}), Is({}, {(3 * kLog2 - kLog3) / 2}));
}

// 0.8 of the label's loss, and 0.2 of the mean over both classes.
TEST(Literal, CrossEntropyLabelSmoothing) {
  EXPECT_THAT(
      Apply("cross_entropy", {T({1, 2}, {0, kLog3}), Labels({0})}, {{"label_smoothing", 0.2}}),
      Is({}, {0.8 * 2 * kLog2 + 0.2 * (2 * kLog2 - kLog3 / 2)}));
  // A class that cannot be: without smoothing it does not count.
  EXPECT_THAT(Apply("cross_entropy", {T({1, 3}, {0, 0, -INFINITY}), Labels({0})}), Is({}, {kLog2}));
}

TEST(Literal, CrossEntropyIgnoresTargets) {
  const Tensor logits = T({3, 2}, {0, kLog3, 7, 9, 0, 0}), target = Labels({1, -100, 0});
  EXPECT_THAT(Apply("cross_entropy", {logits, target}, Reduction("none")),
              Is({2 * kLog2 - kLog3, 0, kLog2}));
  EXPECT_THAT(Apply("cross_entropy", {logits, target}), Is({}, {(3 * kLog2 - kLog3) / 2}));
  // A label may be ignored as well.
  EXPECT_THAT(Apply("cross_entropy", {logits, Labels({1, 0, 0})}, {{"ignore_index", int64_t{0}}}),
              Is({}, {2 * kLog2 - kLog3}));
}

TEST(Literal, CrossEntropyOfNoTargetIsNaNButItsGradientIsZero) {
  const Tensor logits = T({1, 2}, {1, 2}), target = Labels({-100});
  const auto out = RunOp("cross_entropy", {logits, target});
  EXPECT_THAT(out[0], Is({}, {kNaN}));
  EXPECT_THAT(Apply("cross_entropy", {logits, target}, Reduction("sum")), Is({}, {0}));
  EXPECT_THAT(Apply("cross_entropy_grad", {logits, target, out[1], T({}, {1})}),
              Is({1, 2}, {0, 0}));
}

TEST(Literal, CrossEntropyGrad) {
  const Tensor logits = T({2, 2}, {0, kLog3, 5, 5}), target = Labels({0, 1});
  const Tensor stats = T({2, 2}, {kLog3, 5, 2 * kLog2 - kLog3, kLog2});
  EXPECT_THAT(Apply("cross_entropy_grad", {logits, target, stats, T({}, {8})}),
              Is({2, 2}, {-0.75 * 4, 0.75 * 4, 0.5 * 4, -0.5 * 4}));
  EXPECT_THAT(Apply("cross_entropy_grad", {logits, target, stats, Vec({1, 10})}, Reduction("none")),
              Is({2, 2}, {-0.75, 0.75, 5, -5}));
  EXPECT_THAT(Apply("cross_entropy_grad", {logits, target, stats, T({}, {1})},
                    {{"reduction", std::string("sum")}, {"label_smoothing", 0.5}}),
              Is({2, 2}, {0.25 - 0.75, 0.75 - 0.25, 0.5 - 0.25, 0.5 - 0.75}));
}

// Ids and labels beyond 2048 stay exact.
TEST(Literal, A10CrossEntropyOfManyClasses) {
  const Tensor logits = Tensor::Zeros(DType::kF16, {1, 3000}), target = Labels({2049});
  const auto out = RunOp("cross_entropy", {logits, target});
  ExpectClose(out[0], Tensor::Scalar(DType::kF64, std::log(3000)), 1e-7);
  const Tensor back =
      Apply("cross_entropy_grad", {logits, target, out[1], Tensor::Scalar(DType::kF32, 1)});
  for (int64_t i = 0; i < 3000; ++i) EXPECT_EQ(back.at(i) < 0, i == 2049) << i;
}

// The sum over 32768 targets, 78574, is no f16.
TEST(Literal, A19CrossEntropyOverManyPositions) {
  const double mean = std::log(11);
  Reals64 labels;
  for (int i = 0; i < 32768; ++i) labels.push_back(i % 11);
  const Tensor rows = Tensor::Zeros(DType::kF16, {32768, 11});
  ExpectClose(Apply("cross_entropy", {rows, Labels(labels)}), Tensor::Scalar(DType::kF64, mean),
              1e-7);
  const Tensor middle = Tensor::Zeros(DType::kF16, {32, 11, 1024});
  const Tensor target = Labels(labels).Reshape({32, 1024});
  const auto out = RunOp("cross_entropy", {middle, target});
  ExpectClose(out[0], Tensor::Scalar(DType::kF64, mean), 1e-7);
  // At scale 1024 the small gradients survive f16.
  const Tensor back =
      Apply("cross_entropy_grad", {middle, target, out[1], Tensor::Scalar(DType::kF32, 1024)});
  EXPECT_NEAR(back.at(0) / 1024, -2.77433e-5, 2e-8);
  EXPECT_NEAR(back.at(1024) / 1024, 2.77433e-6, 2e-9);
}

TEST(Literal, CrossEntropyFaultsOnATargetOutOfRange) {
  for (double bad : {3.0, -1.0}) {
    const auto out = TryOp("cross_entropy", {T({2, 3}, {0, 0, 0, 0, 0, 0}), Labels({0, bad})});
    EXPECT_EQ(out.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(Message(out.status()),
                ::testing::HasSubstr(Concat("index ", bad, " at [1] out of range; expected 0..2")));
    const auto back = TryOp("cross_entropy_grad", {T({2, 3}, {0, 0, 0, 0, 0, 0}), Labels({0, bad}),
                                                   T({2, 2}, {1, 1, 0, 0}), T({}, {1})});
    EXPECT_EQ(back.status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(Literal, RegressionLosses) {
  const Tensor a = Vec({1, 2}), b = Vec({3, -1});
  EXPECT_THAT(Apply("mse_loss", {a, b}, Reduction("none")), Is({4, 9}));
  EXPECT_THAT(Apply("mse_loss", {a, b}, Reduction("sum")), Is({}, {13}));
  EXPECT_THAT(Apply("mse_loss", {a, b}), Is({}, {6.5}));
  EXPECT_THAT(Apply("l1_loss", {a, b}, Reduction("none")), Is({2, 3}));
  EXPECT_THAT(Apply("l1_loss", {a, b}, Reduction("sum")), Is({}, {5}));
  EXPECT_THAT(Apply("l1_loss", {a, b}), Is({}, {2.5}));
  // The square of 300 is no f16.
  const Tensor wide = Apply("mse_loss", {Vec({300}, DType::kF16), Vec({0}, DType::kF16)});
  EXPECT_EQ(wide.dtype(), DType::kF32);
  EXPECT_THAT(wide, Is({}, {90000}));
}

TEST(Literal, DropoutFollowsPhilox) {
  const int64_t seed = 7;
  const Tensor x = Vec({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor y = Apply("dropout", {x}, {{"p", 0.5}, {"seed", seed}});
  int kept = 0;
  for (int64_t i = 0; i < 9; ++i) {
    const uint32_t word = PhiloxBlock(seed, kTestRunCount, i / 4)[i % 4];
    // The uppermost bit decides at p = 1/2.
    const bool keep = (word >> 31) == 1;
    EXPECT_EQ(y.at(i), keep ? 2 * x.at(i) : 0) << i;
    kept += keep;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 9);
}

TEST(Literal, DropoutKeepsTheMean) {
  constexpr int64_t kCount = 40000;
  const Tensor ones = Tensor::Full(DType::kF32, {kCount}, 1);
  const Tensor y = Apply("dropout", {ones}, {{"p", 0.2}, {"seed", int64_t{5}}});
  double kept = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    if (y.at(i) == 0) continue;
    EXPECT_EQ(y.at(i), 1.25f);
    ++kept;
  }
  // Five standard deviations of a binomial count.
  EXPECT_NEAR(kept, 0.8 * kCount, 5 * std::sqrt(kCount * 0.2 * 0.8));
  EXPECT_TRUE(BitEqual(Apply("dropout", {ones}, {{"p", 0.0}, {"seed", int64_t{5}}}), ones));
  EXPECT_TRUE(BitEqual(Apply("dropout", {ones}, {{"p", 1.0}, {"seed", int64_t{5}}}),
                       Tensor::Zeros(DType::kF32, {kCount})));
}

TEST(Literal, DropoutMaskDoesNotDependOnTheDtype) {
  const ir::Attributes attrs = {{"p", 0.3}, {"seed", int64_t{11}}};
  const Tensor wide = Apply("dropout", {Tensor::Full(DType::kF64, {100}, 1)}, attrs);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Tensor y = Apply("dropout", {Tensor::Full(dtype, {100}, 1)}, attrs);
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(y.at(i) == 0, wide.at(i) == 0) << Name(dtype) << i;
  }
}

}  // namespace
}  // namespace halftone::testing
