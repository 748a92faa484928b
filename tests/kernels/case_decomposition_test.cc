// The decomposition of every op that has one, run in f64, against its reference kernel.

#include <gtest/gtest.h>

#include <algorithm>

#include "halftone/graph/ir/builder.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

constexpr double kLargestDistance = 1e-12;

void CheckDecomposition(const OpCase& c) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF64);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF64);
  ir::Builder b(graph.get());
  std::vector<ir::Expr> exprs;
  for (const ir::Value& v : node.inputs()) exprs.push_back(b.Wrap(v));
  const std::vector<ir::Expr> outputs = node.op().decompose(b, exprs, node.attrs());
  ASSERT_TRUE(b.status().ok()) << Message(b.status());
  const auto values = GraphValues::Evaluate(*graph, inputs);
  ASSERT_TRUE(values.ok()) << Message(values.status());
  for (int i = 0; i < node.num_outputs(); ++i) {
    EXPECT_LE(MaxRelError(values->at(outputs[i].value()), values->at(node.output(i))),
              kLargestDistance)
        << "output " << i;
  }
}

bool Decomposes(const OpCase& c) {
  return ir::OpRegistry::Global().Find(c.op)->decompose != nullptr;
}

class CaseDecompositionTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseDecompositionTest, AgreesWithTheKernelInF64) {
  for (const OpCase* c : CasesOf(GetParam())) {
    SCOPED_TRACE(c->name);
    CheckDecomposition(*c);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseDecompositionTest, ::testing::ValuesIn(OpsWithCases(Decomposes)),
                         OpTestName);

}  // namespace
}  // namespace halftone::testing
