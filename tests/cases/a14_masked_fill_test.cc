// A14, NVIDIA/apex#1052: masking scores with -1e9, -1e20 or -inf under f16: no error, no NaN, and
// the masked probability is exactly 0.
#include <limits>

#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

// Softmax of (1, 2, masked) and the gradient of its first element with respect to the scores.
void CheckMasked(
    const std::function<nn::Value(const nn::Value& scores, const nn::Value& mask)>& masked) {
  for (const Device& device : CaseDevices()) {
    for (DType low : {DType::kF16, DType::kBF16}) {
      FnGraph graph([&](FnGraph& g, const nn::Values& in) -> nn::Values {
        const nn::Value w = g.param("w");
        const nn::Value p = nn::softmax(masked(nn::matmul(in[0], w), in[1]), -1);
        const nn::Value first = nn::sum(nn::slice(p, 1, 0, 1));
        return {p, nn::gradients(first, {w})[0]};
      });
      graph.to(device);
      graph.config.enable_amp(true, {.dtype = low});
      graph.AddParam("w", Tensor::Of(DType::kF32, {1, 3}, {1, 2, 3}));
      const auto out = Step(graph, {Tensor::Full(DType::kF32, {1, 1}, 1),
                                    Tensor::Of(DType::kBool, {1, 3}, {0, 0, 1})});
      ASSERT_EQ(out.size(), 2u);
      const double tolerance = low == DType::kF16 ? 1e-3 : 1e-2;
      ExpectValues(out[0], {0.268941, 0.731059, 0}, tolerance);
      ExpectValues(out[1], {0.196612, -0.196612, 0}, tolerance);
      EXPECT_EQ(out[0].at(2), 0);
    }
  }
}

TEST(A14MaskedFill, FillWithMinus1e9) {
  CheckMasked(
      [](const nn::Value& s, const nn::Value& mask) { return nn::masked_fill(s, mask, -1e9); });
}
TEST(A14MaskedFill, FillWithMinus1e20) {
  CheckMasked(
      [](const nn::Value& s, const nn::Value& mask) { return nn::masked_fill(s, mask, -1e20); });
}
TEST(A14MaskedFill, FillWithMinusInfinity) {
  CheckMasked([](const nn::Value& s, const nn::Value& mask) {
    return nn::masked_fill(s, mask, -std::numeric_limits<double>::infinity());
  });
}
TEST(A14MaskedFill, AddMinus1e9) {
  CheckMasked([](const nn::Value& s, const nn::Value& mask) {
    return s + nn::cast(mask, DType::kF32) * -1e9;
  });
}

}  // namespace
}  // namespace halftone::testing
