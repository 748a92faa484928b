// Every op has its place in the table of rules, and the page of the docs says so.
#include <fstream>
#include <sstream>

#include "halftone/graph/onnx/rules.h"
#include "halftone/tests/onnx/onnx_graphs.h"

namespace halftone::onnx {
namespace {

TEST(OnnxRules, EveryOpIsExportedOrSaysWhyNot) {
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    EXPECT_NE(Rules::WhyNotExported(*op), "no rule covers it")
        << op->name << ": add a rule to a file of graph/onnx/rules";
  }
  for (const auto& [op, rule] : Rules::All().exports()) {
    EXPECT_NE(ir::OpRegistry::Global().Find(op), nullptr) << op << ": no such op";
    EXPECT_NE(rule.as, "") << op;
  }
}

// An op without rule, decomposition or reason is seen.
TEST(OnnxRules, AnOpWithoutARuleIsSeen) {
  ir::OpRecord op;
  op.name = "histogram";
  EXPECT_EQ(Rules::WhyNotExported(op), "no rule covers it");
  op.is_random = true;
  EXPECT_NE(Rules::WhyNotExported(op), "no rule covers it");
}

TEST(OnnxRules, AreThoseOfTheDocs) {
  std::ostringstream page;
  page << std::ifstream(HALFTONE_SOURCE_DIR "/docs/onnx.md").rdbuf();
  EXPECT_EQ(CoverageText(), page.str()) << "halftone_opt --onnx > docs/onnx.md writes it anew";
}

}  // namespace
}  // namespace halftone::onnx
