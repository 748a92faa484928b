// Every registered op has what the checks need: a case, a reference kernel, an AMP reason.

#include <gtest/gtest.h>

#include <set>

#include "halftone/kernels/kernel.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

// Values that a run is given or keeps: no kernel computes them.
bool IsStructure(const ir::OpRecord& op) {
  return op.is_marker || op.name == "input" || op.name == "variable" || op.name == "constant" ||
         op.name == "commit";
}

TEST(OpCoverage, EveryOpHasACase) {
  std::set<std::string> covered;
  for (const OpCase& c : AllOpCases()) covered.insert(c.op);
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    if (IsStructure(*op)) continue;
    EXPECT_TRUE(covered.count(op->name)) << op->name << " has no case in tests/op_cases";
  }
}

TEST(OpCoverage, EveryDifferentiableOpHasAGradientCase) {
  std::set<std::string> covered;
  for (const OpCase& c : AllOpCases()) {
    if (c.gradient) covered.insert(c.op);
  }
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    if (!op->gradient || op->is_marker) continue;
    EXPECT_TRUE(covered.count(op->name)) << op->name << " has a gradient that no case checks";
  }
}

TEST(OpCoverage, EveryOpHasAReferenceKernel) {
  const auto& registry = kernels::KernelRegistry::Global();
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    const size_t count = registry.Candidates(op->name, Device::Kind::kReference).size();
    EXPECT_EQ(count, IsStructure(*op) ? 0u : 1u) << op->name;
  }
}

TEST(OpCoverage, EveryOpSaysWhatItIs) {
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_FALSE(op->source.empty()) << op->name;
    EXPECT_FALSE(op->amp.reason.empty()) << op->name;
  }
}

TEST(OpCoverage, GradientOpsExist) {
  const auto& registry = ir::OpRegistry::Global();
  for (const ir::OpRecord* op : registry.All()) {
    for (const std::string& name : op->gradient_ops) {
      EXPECT_NE(registry.Find(name), nullptr) << op->name << " lists " << name;
    }
  }
}

TEST(OpCoverage, CaseNamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& c : AllOpCases()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name << " is there twice";
    EXPECT_EQ(c.name.rfind(c.op + "/", 0), 0u) << c.name << " should start with " << c.op << "/";
  }
}

}  // namespace
}  // namespace halftone::testing
