// Gradients of cos and sin: of the phase that f32 holds, not of one rounded again.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

TEST(AngleGradient, F50_CosOfLargeArguments) {
  FnGraph graph([](const Values& in) -> Values { return gradients(sum(cos(in[0])), {in[0]}); });
  // -sin, with 50 decimal digits.
  const std::vector<double> dx = Call1(graph, {F32({4}, {0, 1e4, 1e5, 1e7})});
  ASSERT_EQ(dx.size(), 4u);
  EXPECT_EQ(dx[0], 0);
  EXPECT_NEAR(dx[1], 0.3056143889, 1e-7);
  EXPECT_NEAR(dx[2], -0.03574879797, 1e-8);
  EXPECT_NEAR(dx[3], -0.4205477932, 1e-7);
}

TEST(AngleGradient, F50_SinAndSecondDerivatives) {
  FnGraph graph([](const Values& in) -> Values {
    const Value x = in[0];
    const Value first = gradients(sum(sin(x)), {x})[0];
    return {sin(x), first, gradients(sum(first), {x})[0]};
  });
  const std::vector<double> x = {0, 1, -2.5, 1e4, 3e6};
  const std::vector<Tensor> out = Call(graph, {Tensor::Of(DType::kF32, {5}, x)});
  ASSERT_EQ(out.size(), 3u);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    EXPECT_NEAR(out[0].at(at), std::sin(x[i]), 1e-7);
    EXPECT_NEAR(out[1].at(at), std::cos(x[i]), 1e-7);
    EXPECT_NEAR(out[2].at(at), -std::sin(x[i]), 1e-7);
  }
}

}  // namespace
}  // namespace halftone::nn
