// A09, apache/mxnet#19463: a 16-bit result meets an f32 input in concat, where and add. The widest
// type wins; gradients arrive in the type of what they belong to.
#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

TEST(A09MixedOperandsNn, WidestTypeWinsAndGradientsKeepTheirType) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
      const nn::Value x = in[0], w = g.param("w");
      const nn::Value h = nn::matmul(x, w);
      const nn::Value first = nn::slice(x, 1, 0, 2);
      const nn::Value joined = nn::concat({h, x}, 1);
      const nn::Values grads = nn::gradients(nn::sum(joined), {x, w});
      return {joined, nn::where(in[1], h, first), h + first, grads[0], grads[1]};
    });
    graph.to(device);
    graph.AddParam("w", Tensor::Of(DType::kF32, {3, 2}, {1, 0, 0, 1, 1, 1}));
    graph.config.enable_amp(true, {.dtype = DType::kF16});
    const auto out = Step(graph, {Tensor::Of(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 2049}),
                                  Tensor::Of(DType::kBool, {2, 2}, {1, 0, 0, 1})});
    ASSERT_EQ(out.size(), 5u);
    for (const Tensor& t : out) EXPECT_EQ(t.dtype(), DType::kF32);
    // In f16: 2049 -> 2048, so h = [[4, 5], [2052, 2053 -> 2052]]; x itself stays 2049.
    ExpectValues(out[0], {4, 5, 1, 2, 3, 2052, 2052, 4, 5, 2049});
    ExpectValues(out[1], {4, 2, 4, 2052});
    ExpectValues(out[2], {5, 7, 2056, 2057});
    ExpectValues(out[3], {2, 2, 3, 2, 2, 3});
    // The weight gradient leaves the 16-bit product in f32: 3 + 2048, not its f16 neighbour 2052.
    ExpectValues(out[4], {5, 5, 7, 7, 2051, 2051});
  }
}

}  // namespace
}  // namespace halftone::testing
