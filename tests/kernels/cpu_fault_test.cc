// Run-time indices out of range: every CPU kernel raises the fault of the reference kernel, and
// touches nothing out of bounds (under AddressSanitizer this is checked, too).
#include <gtest/gtest.h>

#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

void ExpectFault(const OpCase& c, const std::string& text) {
  for (DType dtype : {DType::kF32, DType::kF16}) {
    const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
    const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
    const ir::Node& node = *CaseNode(*graph);
    int checked = 0;
    for (const kernels::KernelCandidate* candidate : FastCandidates(c.op)) {
      auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
      if (!kernel.ok()) continue;
      const auto result = RunKernel(**kernel, node, inputs);
      EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << c.name;
      EXPECT_NE(Message(result.status()).find(text), std::string::npos) << Message(result.status());
      ++checked;
    }
    EXPECT_GT(checked, 0) << c.name;
  }
}

OpInput Indices(DType dtype, std::vector<double> values) {
  OpInput input = Whole(dtype, Shape{static_cast<int64_t>(values.size())}, 0, 0);
  input.gen.kind = InputGen::Kind::kFixed;
  input.gen.values = std::move(values);
  return input;
}

TEST(CpuFault, EmbeddingIds) {
  ExpectFault(Case("embedding", "high", {Reals({5, 3}), Indices(DType::kI64, {0, 5, -9})}), "5");
  ExpectFault(Case("embedding", "low", {Reals({5, 3}), Indices(DType::kI32, {0, -1, 5})}), "-1");
  ExpectFault(Case("embedding_grad", "high", {Reals({3, 4}), Indices(DType::kI64, {0, 77, 2})},
                   {{"rows", int64_t{5}}}),
              "77");
  ExpectFault(Case("embedding_grad_rows", "high", {Reals({3, 4}), Indices(DType::kI64, {0, 2, 5})},
                   {{"rows", int64_t{5}}}),
              "5");
}

TEST(CpuFault, GatherIndices) {
  ExpectFault(
      Case("gather", "high", {Reals({4, 5}), Indices(DType::kI64, {4, 5})}, {{"axis", int64_t{1}}}),
      "5");
  ExpectFault(Case("gather_grad", "low", {Reals({4, 2}), Indices(DType::kI64, {1, -3})},
                   {{"axis", int64_t{1}}, {"dim", int64_t{5}}}),
              "-3");
}

TEST(CpuFault, AnIndexForEachElement) {
  ExpectFault(Case("take_along_dim", "high", {Reals({4}), Indices(DType::kI64, {3, 4})}), "4");
  ExpectFault(Case("take_along_dim_grad", "low", {Reals({2}), Indices(DType::kI32, {1, -3})},
                   {{"dim", int64_t{5}}}),
              "-3");
}

TEST(CpuFault, Labels) {
  ExpectFault(Case("cross_entropy", "high", {Reals({3, 4}), Indices(DType::kI64, {0, -100, 4})}),
              "4");
  ExpectFault(Case("cross_entropy", "low", {Reals({3, 4}), Indices(DType::kI32, {0, -1, 9})}),
              "-1");
}

}  // namespace
}  // namespace halftone::testing
