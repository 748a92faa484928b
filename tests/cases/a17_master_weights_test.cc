// A17, Nerogar/OneTrainer#996: small updates vanished because the weights themselves were 16-bit.
#include <gtest/gtest.h>

#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

// loss = w * c with the product in 16 bit and the weight's master in f32.
StepRunner Compile(const std::string& dtype, const std::string& optimizer) {
  StepRunner run = StepRunner::CompileOrDie(R"g(graph @g(%c: f32[]) {
    amp() {allow=["product"], dtype=)g" + dtype +
                                            R"g(}
    %w = variable "w" {init="constant(1)"} : f32[]
    %product = mul(%w, %c)
    %l = sum(%product) {axes=[]}
    backward(%l)
    %norm, %applied = optimizer() {params=["w"], )g" +
                                            optimizer + "}\n}");
  EXPECT_EQ(Name(run.graph().FindNode("product")->output_type().dtype), dtype);
  return run;
}

// The master after `steps` steps with gradient `g`.
Tensor MasterAfter(StepRunner run, int steps, double g) {
  for (int i = 0; i < steps; ++i) run.StepOrDie({{"c", F32(g)}});
  EXPECT_EQ(run.state().at("w").dtype(), DType::kF32);
  return run.state().at("w");
}

TEST(CaseA17, DecoupledDecayMovesABf16Weight) {
  Tensor w = MasterAfter(Compile("bf16", "rule=\"adamw\", lr=1e-3, weight_decay=1e-2"), 1000, 0);
  EXPECT_NEAR(w.item(), 0.99005, 3e-5);
  EXPECT_EQ(w.To(DType::kBF16).item(), 0.98828125);
}

TEST(CaseA17, SgdMovesABf16Weight) {
  Tensor w = MasterAfter(Compile("bf16", "rule=\"sgd\", lr=1e-3"), 100, 1);
  EXPECT_NEAR(w.item(), 0.9, 1e-5);
  EXPECT_EQ(w.To(DType::kBF16).item(), 0.8984375);
}

TEST(CaseA17, SgdMovesAnF16Weight) {
  Tensor w = MasterAfter(Compile("f16", "rule=\"sgd\", lr=1e-4"), 1000, 1);
  EXPECT_NEAR(w.item(), 0.9, 1000 * 0x1p-25) << "a rounding of each of the 1000 sums";
  EXPECT_NEAR(w.To(DType::kF16).item(), 0.9, 5e-4);
}

}  // namespace
}  // namespace halftone::testing
