// A16, PaddlePaddle/Paddle PR#53712: graphs with the user's own casts broke after the rewrite.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

TEST(CaseA16, AUsersCastToF32KeepsItsMeaning) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%x: f32[1,2]) {
    amp() {dtype=f16}
    %w = variable "w" {} : f32[2,1]
    %a = matmul(%x, %w)
    %c = cast(%a) {to=f32}
    %q = mul(%c, %c)
    %l = mean(%q) {axes=[]}
    %dw = gradient(%l, %w)
    return a=%a, l=%l, dw=%dw
  })g");
  const ir::Node& cast = *run.graph().FindNode("c");
  EXPECT_EQ(cast.input(0).node->name(), "a");
  EXPECT_EQ(cast.input_type(0).dtype, DType::kF16) << "what its producer gives";
  run.state()["w"] = Tensor::Of(DType::kF32, Shape{2, 1}, {3, 4});
  TensorMap out = run.StepOrDie({{"x", Tensor::Of(DType::kF32, Shape{1, 2}, {1, 2})}});
  EXPECT_EQ(out["a"].item(), 11);
  EXPECT_EQ(out["l"].item(), 121);
  EXPECT_EQ(out["dw"].dtype(), DType::kF32);
  EXPECT_EQ(out["dw"].ToVector(), (std::vector<double>{22, 44}));
}

TEST(CaseA16, AUsersRoundingStays) {
  for (const char* amp : {"", "amp() {dtype=f16}", "amp() {dtype=bf16, deny=[\"matmul\"]}"}) {
    StepRunner run = StepRunner::CompileOrDie(Concat(R"g(graph @g(%x: f32[1,1], %y: f32[1,1]) {
      )g",
                                                     amp, R"g(
      %a = matmul(%x, %y)
      %h = cast(%a) {to=f16}
      %back = cast(%h) {to=f32}
      return back=%back
    })g"));
    TensorMap out = run.StepOrDie({{"x", Tensor::Full(DType::kF32, Shape{1, 1}, 1)},
                                   {"y", Tensor::Full(DType::kF32, Shape{1, 1}, 2049)}});
    EXPECT_EQ(out["back"].item(), 2048) << amp;
  }
}

}  // namespace
}  // namespace halftone::testing
