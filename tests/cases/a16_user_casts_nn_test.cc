// A16, PaddlePaddle/Paddle PR#53712: graphs that already hold casts of the user. Their declared
// types follow the rewrite, and a rounding that the user asked for is kept.
#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

TEST(A16UserCastsNn, CastToF32BehindAnAllowedOp) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
      const nn::Value w = g.param("w");
      const nn::Value a = nn::matmul(in[0], w);
      const nn::Value c = nn::cast(a, DType::kF32);
      const nn::Value loss = nn::mean(c * c);
      return {loss, nn::gradients(loss, {w})[0], a};
    });
    graph.to(device);
    graph.config.enable_amp(true, {.dtype = DType::kF16});
    graph.AddParam("w", Tensor::Of(DType::kF32, {2, 1}, {3, 4}));
    const auto out = Step(graph, {Tensor::Of(DType::kF32, {1, 2}, {1, 2})});
    ASSERT_EQ(out.size(), 3u);
    ExpectValues(out[0], {121});
    EXPECT_EQ(out[1].dtype(), DType::kF32);
    ExpectValues(out[1], {22, 44});
    ExpectValues(out[2], {11});
    // Every value has one type, so a cast's declared input type is its producer's; the verifier has
    // checked the inference.
    ASSERT_NE(graph.compiled_graph(), nullptr);
    bool low = false;
    for (const auto& node : graph.compiled_graph()->nodes()) {
      if (node->op().name == "matmul") low = low || IsLow(node->input_type(0).dtype);
    }
    EXPECT_TRUE(low) << graph.compiled_text();
  }
}

TEST(A16UserCastsNn, RoundingOfTheUserIsKept) {
  for (const Device& device : CaseDevices()) {
    for (bool amp : {false, true}) {
      FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
        const nn::Value a = nn::matmul(in[0], g.param("w"));
        return {nn::cast(nn::cast(a, DType::kF16), DType::kF32)};
      });
      graph.to(device);
      graph.config.enable_amp(amp, {.dtype = DType::kF16});
      graph.AddParam("w", Tensor::Full(DType::kF32, {1, 1}, 1));
      const auto out = Step(graph, {Tensor::Full(DType::kF32, {1, 1}, 2049)});
      ASSERT_EQ(out.size(), 1u);
      ExpectValues(out[0], {2048});
    }
  }
}

}  // namespace
}  // namespace halftone::testing
