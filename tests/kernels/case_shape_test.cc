// Inferred types against what runs: the kernel writes exactly the inferred elements (guards around
// the outputs hold, every element is written), in every dtype and layout of every case.

#include <gtest/gtest.h>

#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

void CheckKernelWritesInferred(const OpCase& c) {
  for (DType dtype : c.dtypes) {
    const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
    const auto outputs = RunReference(*CaseNode(*graph), MakeCaseInputs(c, dtype));
    EXPECT_TRUE(outputs.ok()) << Name(dtype) << ": " << Message(outputs.status());
  }
}

void CheckLayouts(const OpCase& c) {
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  const std::unique_ptr<ir::Graph> plain = BuildCaseGraph(c, DType::kF32);
  const auto expected = RunReference(*CaseNode(*plain), inputs);
  ASSERT_TRUE(expected.ok()) << Message(expected.status());
  for (const ir::Layout layout : LayoutsOf(c)) {
    const std::unique_ptr<ir::Graph> laid = BuildCaseGraph(c, DType::kF32, layout);
    const auto got = RunReference(*CaseNode(*laid), inputs);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    for (size_t i = 0; i < got->size(); ++i) {
      EXPECT_TRUE(BitEqual((*got)[i], (*expected)[i])) << ir::Name(layout) << ", output " << i;
    }
  }
}

class CaseShapeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseShapeTest, InferredIsExecuted) {
  for (const OpCase* c : CasesOf(GetParam())) {
    SCOPED_TRACE(c->name);
    CheckKernelWritesInferred(*c);
    if (c->channels_last) CheckLayouts(*c);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseShapeTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

}  // namespace
}  // namespace halftone::testing
