// A11, pytorch/pytorch#91597: sums and means over many f16 elements accumulate in f32, and the
// element count is never rounded to f16.
#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

Tensor MeanOf(const Tensor& x, const Device& device) {
  FnGraph graph([](FnGraph&, const nn::Values& in) -> nn::Values { return {nn::mean(in[0])}; });
  graph.to(device);
  const auto out = Step(graph, {x});
  return out.empty() ? Tensor() : out[0];
}

TEST(A11LargeMean, MeanOfHalfNeitherOverflowsNorVanishes) {
  for (const Device& device : CaseDevices()) {
    for (DType low : {DType::kF16, DType::kBF16}) {
      ExpectValues(MeanOf(Tensor::Full(low, {100000}, 1), device), {1});
      ExpectValues(MeanOf(Tensor::Full(low, {65520}, 1), device), {1});
      Tensor alternating = Tensor::Zeros(low, {65536});
      for (int i = 1; i < 65536; i += 2) alternating.set(i, 1);
      ExpectValues(MeanOf(alternating, device), {0.5});
      // bf16 has 8 bits: 40000 is 39936 there to begin with.
      ExpectValues(MeanOf(Tensor::Full(low, {3}, 40000), device),
                   {low == DType::kF16 ? 40000.0 : 39936.0});
    }
  }
}

TEST(A11LargeMean, SumUnderMixedPrecisionIsF32) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
      return {nn::sum(nn::matmul(in[0], g.param("one")))};
    });
    graph.to(device);
    graph.config.enable_amp(true, {.dtype = DType::kF16});
    graph.AddParam("one", Tensor::Full(DType::kF32, {1, 1}, 1));
    const auto out = Step(graph, {Tensor::Full(DType::kF32, {70000, 1}, 1)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dtype(), DType::kF32);
    ExpectValues(out[0], {70000});
  }
}

TEST(A11LargeMean, SumAskedForInF16IsInfinite) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph&, const nn::Values& in) -> nn::Values { return {nn::sum(in[0])}; });
    graph.to(device);
    const auto out = Step(graph, {Tensor::Full(DType::kF16, {70000}, 1)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(std::isinf(out[0].item()));
  }
}

TEST(A11LargeMean, GradientOfTheMean) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph&, const nn::Values& in) -> nn::Values {
      return {nn::gradients(nn::mean(in[0]), {in[0]})[0]};
    });
    graph.to(device);
    const auto out = Step(graph, {Tensor::Full(DType::kF16, {100000}, 1)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dtype(), DType::kF16);
    // 168 * 2^-24, the f16 number nearest to 1e-5.
    for (int i = 0; i < 100000; i += 9999) EXPECT_EQ(out[0].at(i), 168 * 0x1p-24) << i;
  }
}

}  // namespace
}  // namespace halftone::testing
