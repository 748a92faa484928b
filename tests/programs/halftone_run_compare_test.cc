// Comparing a step with reference kernels, and what --compare shows of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tools/support/compare.h"

namespace halftone::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tools::RelativeError;

Tensor F32(std::initializer_list<double> values) {
  return Tensor::Of(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

TEST(RelativeError, IsTheLargestDifferenceByTheLargestValue) {
  EXPECT_EQ(RelativeError(F32({1, 2, -4}), F32({1, 2, -4})), 0);
  EXPECT_EQ(RelativeError(F32({1, 2.5, -4}), F32({1, 2, -4})), 0.125);
  EXPECT_EQ(RelativeError(F32({0.25, 0}), F32({0, 0})), 0.25);
  EXPECT_EQ(RelativeError(F32({}), F32({})), 0);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(RelativeError(F32({inf, NAN, 3}), F32({inf, NAN, 2})), 0.5);
  EXPECT_EQ(RelativeError(F32({inf}), F32({-inf})), inf);
  EXPECT_EQ(RelativeError(F32({1, NAN}), F32({1, 2})), inf);
  EXPECT_EQ(RelativeError(F32({1, 2}), F32({1, NAN})), inf);
  EXPECT_EQ(
      RelativeError(Tensor::Of(DType::kI64, {2}, {5, 4}), Tensor::Of(DType::kI64, {2}, {4, 4})),
      0.25);
}

// exp(x) + 1, for the node that is called "wrong".
class WrongExp : public kernels::Kernel {
 public:
  explicit WrongExp(int64_t count) : count_(count) {}
  void Run(const kernels::KernelArgs& args) override {
    const auto* const x = static_cast<const float*>(args.inputs[0]);
    auto* const y = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < count_; ++i) y[i] = std::exp(x[i]) + 1;
  }

 private:
  const int64_t count_;
};

void RegisterWrongExp() {
  kernels::KernelCandidate candidate;
  candidate.name = "cpu:test:wrong_exp";
  candidate.op = "exp";
  candidate.tier = kernels::KernelTier::kLibrary;
  candidate.dtypes = {DType::kF32};
  candidate.supports = [](const ir::Node& node) {
    return node.name() == "wrong" ? absl::OkStatus() : Unimplemented("another node");
  };
  candidate.create = [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
    return std::make_unique<WrongExp>(node.output_type().num_elements());
  };
  kernels::KernelRegistry::Global().Add(std::move(candidate));
}

// Of two zeros: %a is 0, exp gives 1 but here 2, its square 1 but here 4; %w is then 7 - 4.
TEST(Compare, FindsTheKernelAtFault) {
  RegisterWrongExp();
  const auto graph = ir::Parse(
      "graph @g(%x: f32[2]) {\n"
      "  %w = variable \"w\" {init=\"constant(7)\"} : f32[2]\n"
      "  %a = add(%x, %x)\n"
      "  %wrong = exp(%a)\n"
      "  %square = mul(%wrong, %wrong)\n"
      "  %next = sub(%w, %square)\n"
      "  commit \"w\" = %next\n"
      "  return %a\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  runtime::VariableStore store;
  const auto comparison = tools::CompareWithReference(**graph, Device::Cpu(), 0, store,
                                                      {Tensor::Zeros(DType::kF32, {2})}, 0);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->usual_tolerance, 1e-4);
  ASSERT_EQ(comparison->values.size(), 4u);
  const auto expect = [&](size_t i, const char* value, double error, double own) {
    EXPECT_EQ(comparison->values[i].value, value);
    EXPECT_EQ(comparison->values[i].error, error) << value;
    EXPECT_EQ(comparison->values[i].own_error, own) << value;
  };
  expect(0, "%a", 0, 0);
  expect(1, "%wrong", 1, 1);
  expect(2, "%square", 3, 0);
  expect(3, "%next", 0.5, 0);  // 3 where 6 is right
  EXPECT_EQ(store.Find("w")->value().at(0), 3);
  EXPECT_EQ(tools::FirstOver(*comparison, 1e-4), &comparison->values[1]);
  EXPECT_EQ(tools::FirstOver(*comparison, 3), nullptr);
  EXPECT_EQ(tools::FirstKernelOver(*comparison, 1e-4), &comparison->values[1]);
  EXPECT_EQ(tools::FirstKernelOver(*comparison, 1), nullptr);

  const std::string mul = comparison->values[2].kernel, sub = comparison->values[3].kernel;
  EXPECT_EQ(
      tools::ToTable(*comparison, 1e-4, 3),
      "value    op   type    error  own error  kernel\n"
      "%square  mul  f32[2]      3          0  " +
          mul +
          "\n"
          "%wrong   exp  f32[2]      1          1  cpu:test:wrong_exp\n"
          "%next    sub  f32[2]    0.5          0  " +
          sub +
          "\n"
          "and 1 more\n"
          "first value over 0.0001 in the order of the step: %wrong (exp, cpu:test:wrong_exp), "
          "error 1, own error 1\n"
          "first kernel over it on equal operands: %wrong (exp, cpu:test:wrong_exp), error 1, own "
          "error 1\n");
}

TEST(Compare, TellsGrownDifferencesFromWrongKernels) {
  tools::Comparison comparison;
  comparison.values = {{"%g", "matmul", "f32[2]", "cpu:a", 1e-6, 1e-6},
                       {"%w", "adam_update", "f32[2]", "cpu:b", 0.25, 1e-7}};
  EXPECT_EQ(
      tools::ToTable(comparison, 1e-4, 9),
      "value  op           type    error  own error  kernel\n"
      "%w     adam_update  f32[2]   0.25      1e-07  cpu:b\n"
      "%g     matmul       f32[2]  1e-06      1e-06  cpu:a\n"
      "first value over 0.0001 in the order of the step: %w (adam_update, cpu:b), error 0.25, "
      "own error 1e-07\n"
      "on equal operands every kernel is within it: no kernel is wrong, small differences "
      "grew\n");
  EXPECT_EQ(tools::FirstKernelOver(comparison, 1e-4), nullptr);
  // And the other way round: what comes after hides the error.
  comparison.values = {{"%g", "exp", "f32[2]", "", 0, 0.5}};
  EXPECT_EQ(tools::ToTable(comparison, 1e-4, 9),
            "value  op   type    error  own error  kernel\n"
            "%g     exp  f32[2]      0        0.5\n"
            "first kernel over it on equal operands: %g (exp), error 0, own error 0.5\n");
}

class HalftoneRunCompare : public ::testing::Test {
 protected:
  HalftoneRunCompare() {
    WriteBytes(graph_,
               "graph @g(%x: f32[1000]) {\n"
               "  %a = add(%x, %x)\n"
               "  %e = exp(%a)\n"
               "  %n = neg(%e)\n"
               "  return %n\n"
               "}\n");
  }
  const TempDir dir_;
  const std::string graph_ = dir_.Path("graph.txt");
};

TEST_F(HalftoneRunCompare, ShowsEveryValue) {
  const Result run =
      Start("tools/halftone_run", graph_ + " --feed x=normal:1 --compare reference --steps 2");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("value  op   type "));
  EXPECT_THAT(run.out, ContainsRegex("%a +add +f32.1000. +0 +0  cpu:"));
  EXPECT_THAT(run.out, HasSubstr("\nall 3 values are within 0.0001\n"));
}

// No f32 exp is within 1e-30 of the right value rounded once, for all of 1,000.
TEST_F(HalftoneRunCompare, TellsOfADifferenceByItsExitStatus) {
  const Result run = Start("tools/halftone_run",
                           graph_ + " --feed x=normal:1 --compare reference --tolerance=1e-30");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nfirst kernel over it on equal operands: %e (exp, "));
  // Exact on equal operands: the error comes from %e.
  EXPECT_THAT(run.out, ContainsRegex("%n +neg +f32.1000. +[0-9.e-]+ +0 +cpu:"));
}

}  // namespace
}  // namespace halftone::testing
