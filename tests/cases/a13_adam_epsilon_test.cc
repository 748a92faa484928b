// A13, chainer/chainer#6299: Adam on half parameters: eps and the second moment underflowed to 0.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

TEST(CaseA13, AdamOnF16GradientsKeepsItsStateInF32) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%c: f16[3]) {
    %w = variable "w" {init="constant(1)"} : f32[3]
    %h = cast(%w) {to=f16}
    %p = mul(%h, %c)
    %f = cast(%p) {to=f32}
    %l = sum(%f) {axes=[]}
    backward(%l)
    %norm, %applied = optimizer() {rule="adam", params=["w"], lr=1e-3}
  })g");
  const TensorMap probe = {{"c", Tensor::Of(DType::kF16, Shape{3}, {0, 1e-4, 1})}};
  run.StepOrDie(probe);
  ExpectClose(run.state().at("w"), F32({1, 0.9990001, 0.999}), 1e-7);
  run.StepOrDie(probe);
  run.StepOrDie(probe);
  ExpectClose(run.state().at("w"), F32({1, 0.9970003, 0.997}), 2e-7);
  EXPECT_EQ(run.state().at("optimizer0.w.exp_avg_sq").dtype(), DType::kF32);
  EXPECT_GT(run.state().at("optimizer0.w.exp_avg_sq").at(1), 0);
}

}  // namespace
}  // namespace halftone::testing
