// A09, apache/mxnet#19463: the half output of a dense layer met the f32 input in a concat.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

const Tensor& X() {
  static const Tensor x = Tensor::Of(DType::kF32, Shape{2, 3}, {1, 2, 3, 4, 5, 2049});
  return x;
}

void ExpectWidestWins(const std::string& dtype, double rounded) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%x: f32[2,3]) {
    amp() {dtype=)g" + dtype + R"g(}
    %w = variable "w" {} : f32[3,2]
    %h = matmul(%x, %w)
    %c = concat(%h, %x) {axis=1}
    %s = slice(%x) {starts=[0,0], limits=[2,2], strides=[1,1]}
    %mask = greater(%s, %h)
    %p = where(%mask, %h, %s)
    %a = add(%h, %s)
    %l = sum(%c) {axes=[]}
    %dx, %dw = gradient(%l, %x, %w)
    return c=%c, p=%p, a=%a, dx=%dx, dw=%dw
  })g");
  EXPECT_EQ(Name(run.graph().FindNode("h")->output_type().dtype), dtype);
  run.state()["w"] = Tensor::Of(DType::kF32, Shape{3, 2}, {1, 0, 0, 1, 1, 1});
  TensorMap out = run.StepOrDie({{"x", X()}});
  for (const auto& [name, value] : out) EXPECT_EQ(value.dtype(), DType::kF32) << name;
  const double h = rounded;  // 2053 and 2054 in 16 bit
  EXPECT_EQ(out["c"].ToVector(), (std::vector<double>{4, 5, 1, 2, 3, h, h, 4, 5, 2049}));
  EXPECT_EQ(out["p"].ToVector(), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(out["a"].ToVector(), (std::vector<double>{5, 7, h + 4, h + 5}));
  EXPECT_EQ(out["dx"].ToVector(), (std::vector<double>{2, 2, 3, 2, 2, 3}));
  EXPECT_EQ(out["dw"].ToVector()[0], 5);
  EXPECT_EQ(out["dw"].ToVector()[2], 7);
}

// x[1,2] = 2049 is 2048 in f16 on its way into the product: h = (2052, 2053 -> 2052, a tie).
TEST(CaseA09, F16) { ExpectWidestWins("f16", 2052); }
// In bf16 steps are 16 there: 2052 and 2053 become 2048.
TEST(CaseA09, BF16) { ExpectWidestWins("bf16", 2048); }

}  // namespace
}  // namespace halftone::testing
