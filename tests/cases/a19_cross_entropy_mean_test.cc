// A19, pytorch/pytorch#85791: the mean cross-entropy over many positions adds per-item losses whose
// sum exceeds f16's range.
#include <cmath>

#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

constexpr int kItems = 32768, kClasses = 11;

TEST(A19CrossEntropyMean, LogitsFromAnAllowedOp) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
      const nn::Value logits = nn::matmul(in[0], g.param("w"));
      return {nn::cross_entropy(logits, in[1])};
    });
    graph.to(device);
    graph.config.enable_amp(true, {.dtype = DType::kF16});
    graph.AddParam("w", Tensor::Zeros(DType::kF32, {1, kClasses}));
    Tensor labels = Tensor::Empty(DType::kI64, {kItems});
    for (int i = 0; i < kItems; ++i) labels.data<int64_t>()[i] = i % kClasses;
    const auto out = Step(graph, {Tensor::Full(DType::kF32, {kItems, 1}, 1), labels});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_NEAR(out[0].item(), std::log(11.0), 1e-5);
  }
}

// f16 logits, gradients in f16, with the seed times `scale`.
void CheckGradient(const Shape& logits_shape, const Shape& target_shape, double scale, double own,
                   double other) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([&](FnGraph&, const nn::Values& in) -> nn::Values {
      const nn::Value loss = nn::cross_entropy(in[0], in[1]);
      return {loss, nn::gradients(loss * scale, {in[0]})[0]};
    });
    graph.to(device);
    Tensor labels = Tensor::Empty(DType::kI64, target_shape);
    for (int i = 0; i < kItems; ++i) labels.data<int64_t>()[i] = i % kClasses;
    const auto out = Step(graph, {Tensor::Zeros(DType::kF16, logits_shape), labels});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_NEAR(out[0].item(), std::log(11.0), 1e-5);
    EXPECT_EQ(out[1].dtype(), DType::kF16);
    // Item 12: label 1, in either layout; its place in the logits differs.
    const int64_t inner = logits_shape.rank() == 3 ? logits_shape[2] : 1;
    const auto at = [&](int64_t c) {
      return out[1].at(12 / inner * kClasses * inner + c * inner + 12 % inner);
    };
    for (int64_t c = 0; c < kClasses; ++c) {
      const double expected = c == 1 ? own : other;
      EXPECT_NEAR(at(c) / scale, expected, 1e-3 * std::abs(expected)) << "class " << c;
    }
  }
}

TEST(A19CrossEntropyMean, ClassesLast) {
  // Without a scale f16 keeps 47 * 2^-24 of 2.77433e-6.
  CheckGradient({kItems, kClasses}, {kItems}, 1, -2.77433e-5, 47 * 0x1p-24);
  CheckGradient({kItems, kClasses}, {kItems}, 1024, -2.77433e-5, 2.77433e-6);
}

TEST(A19CrossEntropyMean, ClassesInTheMiddle) {
  CheckGradient({32, kClasses, 1024}, {32, 1024}, 1, -2.77433e-5, 47 * 0x1p-24);
  CheckGradient({32, kClasses, 1024}, {32, 1024}, 1024, -2.77433e-5, 2.77433e-6);
}

}  // namespace
}  // namespace halftone::testing
