// text -> graph -> proto -> graph -> text over every case of every op, in every dtype.
#include <gtest/gtest.h>

#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

void CheckRoundTrip(const ir::Graph& graph) {
  ASSERT_TRUE(ir::Verify(graph).ok()) << ir::Verify(graph);
  const std::string text = ir::Print(graph, ir::TextOptions::Lossless());
  const auto parsed = ir::Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  const auto bytes = ir::ToProtoBytes(**parsed);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto read = ir::FromProtoBytes(*bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ir::Print(**read, ir::TextOptions::Lossless()), text);
  EXPECT_EQ((*read)->Hash(), graph.Hash());
}

class CaseRoundTripTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseRoundTripTest, IsAFixedPoint) {
  for (const OpCase* c : CasesOf(GetParam())) {
    SCOPED_TRACE(c->name);
    for (DType dtype : c->dtypes) CheckRoundTrip(*BuildCaseGraph(*c, dtype));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseRoundTripTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

}  // namespace
}  // namespace halftone::testing
