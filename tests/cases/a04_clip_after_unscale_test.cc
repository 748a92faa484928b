// A04, milesial/Pytorch-UNet#468: gradients were clipped while still multiplied by the scale.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

TEST(CaseA04, ClipsTheUnscaledNorm) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%c: f32[2]) {
    %w = variable "w" {init="constant(0)"} : f32[2]
    %p = mul(%w, %c)
    %l = sum(%p) {axes=[]}
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer() {rule="sgd", params=["w"], lr=1, clip_norm=1, scaler="s"}
    scaler() {name="s", init_scale=1024}
    return norm=%norm
  })g");
  TensorMap out = run.StepOrDie({{"c", F32({3, 4})}});
  EXPECT_EQ(out["norm"].item(), 5.0);
  ExpectClose(run.state().at("w"), F32({-0.6, -0.8}), 1e-6);
  run.StepOrDie({{"c", F32({0.03, 0.04})}});
  ExpectClose(run.state().at("w"), F32({-0.63, -0.84}), 1e-6);  // below the bound: as it is
}

}  // namespace
}  // namespace halftone::testing
