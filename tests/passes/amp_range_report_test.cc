// What f16 cannot hold of values in f32, and the policy that follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/graph/ir/text.h"
#include "halftone/passes/amp/range_report.h"

namespace halftone::amp {
namespace {

using ::testing::ElementsAre;

class AmpRangeReport : public ::testing::Test {
 protected:
  AmpRangeReport() {
    auto graph = ir::Parse(
        "graph @g(%x: f32[4]) {\n"
        "  %a = mul(%x, %x) @\"head\"\n"
        "  %b = add(%a, %x)\n"
        "  %c = argmax(%b) {axis=0}\n"
        "  return %c\n"
        "}\n");
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = std::move(*graph);
  }
  void Add(const char* node, const std::vector<double>& values) {
    Tensor tensor = Tensor::Empty(DType::kF32, Shape{static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
    report_.Add(graph_->FindNode(node)->output(), tensor);
  }

  std::unique_ptr<ir::Graph> graph_;
  RangeReport report_;
};

TEST_F(AmpRangeReport, CountsOverAllSteps) {
  Add("a", {0, 1, -70000, 1e-9});
  Add("a", {std::numeric_limits<double>::infinity(), NAN, 2, -4});
  report_.Add(graph_->FindNode("c")->output(), Tensor::Scalar(DType::kI64, 3));
  const std::vector<RangeRow> rows = report_.Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].value, "%a");
  EXPECT_EQ(rows[0].op, "mul");
  const Range& r = rows[0].range;
  EXPECT_EQ(r.largest, 70000);
  EXPECT_EQ(r.smallest, static_cast<double>(1e-9F));
  EXPECT_EQ(r.elements, 8);
  EXPECT_EQ(r.zeros, 1);
  EXPECT_EQ(r.non_finite, 2);
  EXPECT_EQ(r.overflows, 1);
  EXPECT_EQ(r.underflows, 1);
}

// On both sides of both limits, beside what a cast makes of it.
TEST_F(AmpRangeReport, LimitsAreThoseOfACast) {
  const auto next = [](float x, float to) { return static_cast<double>(std::nextafter(x, to)); };
  const float tiny = std::ldexp(1.0F, -25);
  for (const double x : {65504.0, next(65520, 0), 65520.0, next(65520, 1e6), next(tiny, 0),
                         double{tiny}, next(tiny, 1), std::ldexp(1.0, -24)}) {
    RangeReport report;
    const Tensor value = Tensor::Of(DType::kF32, {1}, {x});
    report.Add(graph_->FindNode("a")->output(), value);
    Tensor half = Tensor::Empty(DType::kF16, {1});
    half.set(0, x);
    const Range range = report.Rows()[0].range;
    EXPECT_EQ(range.overflows, std::isinf(half.at(0)) ? 1 : 0) << x;
    EXPECT_EQ(range.underflows, half.at(0) == 0 ? 1 : 0) << x;
  }
}

TEST_F(AmpRangeReport, WorstFirst) {
  Add("b", {1e-9, 1, 1, 1});
  Add("x", {1, 1, 1, 1});
  Add("a", {1e5, 1, 1, 1});
  std::vector<std::string> order;
  for (const RangeRow& row : report_.Rows()) order.push_back(row.value);
  EXPECT_THAT(order, ElementsAre("%a", "%b", "%x"));
}

TEST_F(AmpRangeReport, ProposesPathsOfTheGraph) {
  Add("a", {1e5, 1, 1, 1});
  Add("b", {1e-9, 1, 0, 0});  // half of what is not 0 is lost, not most of it
  EXPECT_EQ(report_.Propose(*graph_).ToString(), "version: 1\ndtype: \"f16\"\ndeny: \"head/a\"\n");
  Add("b", {1e-9, 1e-9, 0, 0});
  EXPECT_EQ(report_.Propose(*graph_).ToString(),
            "version: 1\ndtype: \"f16\"\ndeny: \"head/a\"\ndeny: \"b\"\n");
  // Nodes that passes made have no path that a policy could name.
  EXPECT_EQ(report_.Propose(ir::Graph("other")).ToString(), "version: 1\ndtype: \"f16\"\n");
}

// A matmul would cast the large value back to f16; an add between matmuls becomes f32 with what it
// reads, but not with an input.
TEST_F(AmpRangeReport, ProposesWhatReadsALargeValueWhereItMust) {
  auto graph = ir::Parse(
      "graph @g(%x: f32[2,2], %y: f32[2,2]) {\n"
      "  %m = matmul(%x, %x)\n"
      "  %n = matmul(%m, %x)\n"
      "  %s = add(%m, %n)\n"
      "  %t = add(%y, %n)\n"
      "  %e = exp(%y)\n"
      "  return %s, %t, %e\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto propose = [&](const std::vector<std::string>& large) {
    RangeReport report;
    for (const std::string& name : large) {
      report.Add((*graph)->FindNode(name)->output(), Tensor::Full(DType::kF32, {2, 2}, 1e5));
    }
    return report.Propose(**graph).deny;
  };
  EXPECT_THAT(propose({"m"}), ElementsAre("m", "n"));
  EXPECT_THAT(propose({"y"}), ElementsAre("t"));
  EXPECT_THAT(propose({"x"}), ElementsAre("m", "n"));
  EXPECT_THAT(propose({"s"}), ElementsAre("s"));
}

}  // namespace
}  // namespace halftone::amp
