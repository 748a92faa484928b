// A06, facebookresearch/fairscale PR#890: only some gradient tensors were checked for inf or NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

// Four parameters, of 3, 1, 0 and 5 elements; the last two are multiplied in bf16, so that their
// gradients arrive in bf16.
StepRunner Compile() {
  return StepRunner::CompileOrDie(R"g(
    graph @g(%c0: f32[3], %c1: f32[1], %c2: bf16[0], %c3: bf16[5]) {
    %w0 = variable "w0" {init="constant(1)"} : f32[3]
    %w1 = variable "w1" {init="constant(1)"} : f32[1]
    %w2 = variable "w2" {init="constant(1)"} : f32[0]
    %w3 = variable "w3" {init="constant(1)"} : f32[5]
    %h2 = cast(%w2) {to=bf16}
    %h3 = cast(%w3) {to=bf16}
    %p0 = mul(%w0, %c0) %p1 = mul(%w1, %c1) %p2 = mul(%h2, %c2) %p3 = mul(%h3, %c3)
    %f2 = cast(%p2) {to=f32} %f3 = cast(%p3) {to=f32}
    %all = concat(%p0, %p1, %f2, %f3) {axis=0}
    %l = sum(%all) {axes=[]}
    backward(%l) {scaler="s"}
    %norm, %applied = optimizer()
        {rule="sgd", params=["w0", "w1", "w2", "w3"], lr=0.5, momentum=0.9, scaler="s"}
    scaler() {name="s"}
    return applied=%applied
  })g");
}

TensorMap Probes() {
  auto ones = [](DType dtype, int64_t n) { return Tensor::Full(dtype, Shape{n}, 1); };
  return {{"c0", ones(DType::kF32, 3)},
          {"c1", ones(DType::kF32, 1)},
          {"c2", ones(DType::kBF16, 0)},
          {"c3", ones(DType::kBF16, 5)}};
}

TEST(CaseA06, AnyBadElementSkipsTheWholeStep) {
  const double inf = std::numeric_limits<double>::infinity();
  int runs = 0;
  const std::vector<std::string> names = {"c0", "c1", "c3"};
  const int first_nonfinite[] = {0, 1, 3};
  for (size_t tensor = 0; tensor < names.size(); ++tensor) {
    const int64_t elements = Probes().at(names[tensor]).num_elements();
    for (int64_t element = 0; element < elements; ++element) {
      for (double bad : {std::nan(""), inf, -inf}) {
        StepRunner run = Compile();
        run.StepOrDie(Probes());  // so that there is momentum to spoil
        const TensorMap before = run.state();
        TensorMap probes = Probes();
        probes.at(names[tensor]).set(element, bad);
        TensorMap out = run.StepOrDie(probes);
        EXPECT_EQ(out["applied"].item(), 0);
        for (const auto& [name, value] : before) {
          if (name.rfind("s.", 0) == 0 || name == "optimizer0.first_nonfinite") continue;
          EXPECT_TRUE(BitEqual(run.state().at(name), value))
              << name << " after " << bad << " in " << names[tensor];
        }
        EXPECT_EQ(run.at("s.scale"), 32768);
        EXPECT_EQ(run.at("optimizer0.first_nonfinite"), first_nonfinite[tensor]);
        ++runs;
      }
    }
  }
  EXPECT_EQ(runs, 27);
}

TEST(CaseA06, ACleanStepIsAppliedAndTheEmptyTensorIsHarmless) {
  StepRunner run = Compile();
  EXPECT_EQ(run.StepOrDie(Probes())["applied"].item(), 1);
  for (const char* name : {"w0", "w1", "w3"}) {
    for (double x : run.state().at(name).ToVector()) EXPECT_EQ(x, 0.5) << name;
  }
  EXPECT_EQ(run.at("s.scale"), 65536);
  EXPECT_EQ(run.at("optimizer0.first_nonfinite"), -1);
}

}  // namespace
}  // namespace halftone::testing
