// A12, microsoft/onnxruntime#29034, the layer norm half: the sum of squares of large f16
// activations overflows f16; statistics are f32.
#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

TEST(A12LayerNorm, LargeHalfActivations) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
      const nn::Value y = nn::layer_norm(in[0], g.param("gamma"), g.param("beta"));
      const nn::Value upstream = nn::sum(nn::slice(y, 1, 0, 1));  // (1, 0, 0, 0)
      return {y, nn::gradients(upstream, {in[0]})[0]};
    });
    graph.to(device);
    graph.AddParam("gamma", Tensor::Full(DType::kF32, {4}, 1));
    graph.AddParam("beta", Tensor::Zeros(DType::kF32, {4}));
    const auto out = Step(graph, {Tensor::Of(DType::kF16, {1, 4}, {20000, -20000, 20000, -20000})});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].dtype(), DType::kF16);
    ExpectValues(out[0], {1, -1, 1, -1}, 1e-3);
    // f16 has steps of 2^-24 here.
    ExpectValues(out[1], {2.5e-5, 0, -2.5e-5, 0}, 1e-3, 0x1p-24);
  }
}

}  // namespace
}  // namespace halftone::testing
