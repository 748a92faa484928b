// Inferred types against what runs: the kernel writes exactly the inferred elements (guards around
// the outputs hold, every element is written), in every dtype and layout of every case; and the
// decomposition gives the same types.

#include "halftone/graph/ir/builder.h"
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

void CheckChannelsLast(const OpCase& c) {
  if (!c.channels_last) return;
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  const std::unique_ptr<ir::Graph> plain = BuildCaseGraph(c, DType::kF32);
  const std::unique_ptr<ir::Graph> last = BuildCaseGraph(c, DType::kF32, ir::Layout::kChannelsLast);
  const auto expected = RunReference(*CaseNode(*plain), inputs);
  const auto got = RunReference(*CaseNode(*last), inputs);
  ASSERT_TRUE(expected.ok() && got.ok()) << Message(expected.status()) << Message(got.status());
  for (size_t i = 0; i < got->size(); ++i) {
    EXPECT_TRUE(BitEqual((*got)[i], (*expected)[i])) << "output " << i;
  }
}

void CheckDecompositionTypes(const OpCase& c) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, c.dtypes[0]);
  const ir::Node& node = *CaseNode(*graph);
  if (!node.op().decompose) return;
  ir::Builder b(graph.get());
  std::vector<ir::Expr> inputs;
  for (const ir::Value& v : node.inputs()) inputs.push_back(b.Wrap(v));
  const std::vector<ir::Expr> outputs = node.op().decompose(b, inputs, node.attrs());
  ASSERT_TRUE(b.status().ok()) << Message(b.status());
  ASSERT_EQ(static_cast<int>(outputs.size()), node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) {
    EXPECT_EQ(outputs[i].type(), node.output_type(i)) << "output " << i;
  }
}

class CaseShapeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseShapeTest, InferredIsExecuted) {
  for (const OpCase* c : CasesOf(GetParam())) {
    SCOPED_TRACE(c->name);
    CheckKernelWritesInferred(*c);
    CheckChannelsLast(*c);
    CheckDecompositionTypes(*c);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseShapeTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

}  // namespace
}  // namespace halftone::testing
