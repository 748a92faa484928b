// Gradient formulas and decompositions in every dtype of every case: their operands fit together
// (a bias or a statistic may be f32 beside 16 bit) and they give the types that they must. Their
// values are checked in f64.

#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/tests/support/adjoints.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

void CheckGradientTypes(const OpCase& c, DType dtype) {
  if (!c.gradient) return;
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
  const ir::Node& node = *CaseNode(*graph);
  ir::Builder b(graph.get());
  std::vector<ir::Expr> dys;
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ir::ValueType& type = node.output_type(i);
    dys.push_back(IsFloat(type.dtype) ? b.Input("dy", type) : ir::Expr());
  }
  const std::vector<ir::Expr> adjoints = AdjointsOf(b, node, dys);
  ASSERT_TRUE(b.status().ok()) << Message(b.status());
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!adjoints[i].valid()) continue;
    EXPECT_EQ(adjoints[i].type(), node.input_type(i)) << "of input " << i;
  }
}

void CheckDecompositionTypes(const OpCase& c, DType dtype) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
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

class CaseDTypeTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseDTypeTest, FormulasFitEveryDType) {
  for (const OpCase* c : CasesOf(GetParam())) {
    for (DType dtype : c->dtypes) {
      SCOPED_TRACE(Concat(c->name, " in ", Name(dtype)));
      CheckGradientTypes(*c, dtype);
      CheckDecompositionTypes(*c, dtype);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseDTypeTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

}  // namespace
}  // namespace halftone::testing
