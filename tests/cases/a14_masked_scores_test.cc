// A14, NVIDIA/apex#1052: filling masked attention scores with -1e9 threw, or became -inf and NaN.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

// Scores (1,2,3) from a matmul in 16 bit, the third masked; loss is the first probability.
void ExpectMasked(const std::string& dtype, const std::string& masking) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%x: f32[1,1], %mask: bool[1,3]) {
    amp() {dtype=)g" + dtype + R"g(}
    %k = variable "k" {} : f32[1,3]
    %scores = matmul(%x, %k)
    )g" + masking + R"g(
    %p = softmax(%m)
    %first = slice(%p) {starts=[0,0], limits=[1,1], strides=[1,1]}
    %l = reshape(%first) {shape=[]}
    %dk = gradient(%l, %k)
    return p=%p, dk=%dk
  })g");
  SCOPED_TRACE(dtype + " " + masking);
  EXPECT_EQ(Name(run.graph().FindNode("scores")->output_type().dtype), dtype);
  run.state()["k"] = Tensor::Of(DType::kF32, Shape{1, 3}, {1, 2, 3});
  TensorMap out = run.StepOrDie({{"x", Tensor::Full(DType::kF32, Shape{1, 1}, 1)},
                                 {"mask", Tensor::Of(DType::kBool, Shape{1, 3}, {0, 0, 1})}});
  const double tolerance = dtype == "f16" ? 1e-3 : 1e-2;
  ExpectClose(out["p"], Tensor::Of(DType::kF32, Shape{1, 3}, {0.268941, 0.731059, 0}), tolerance);
  EXPECT_EQ(out["p"].at(2), 0) << "exactly";
  ExpectClose(out["dk"], Tensor::Of(DType::kF32, Shape{1, 3}, {0.196612, -0.196612, 0}), tolerance,
              tolerance * 1e-2);
}

TEST(CaseA14, FillValues) {
  for (const char* fill : {"-1e9", "-1e20", "-inf"}) {
    for (const char* dtype : {"f16", "bf16"}) {
      ExpectMasked(dtype, Concat("%c = constant {value=dense<f32[]>(", fill,
                                 ")} %m = where(%mask, %c, %scores)"));
    }
  }
}

TEST(CaseA14, AdditiveMask) {
  for (const char* dtype : {"f16", "bf16"}) {
    ExpectMasked(dtype, "%c = constant {value=dense<f32[1,3]>(0, 0, -1e9)} %m = add(%scores, %c)");
  }
}

}  // namespace
}  // namespace halftone::testing
