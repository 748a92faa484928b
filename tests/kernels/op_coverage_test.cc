// Every registered op has what it must have (tests/support/op_coverage.h), and a missing piece is
// seen.
#include "halftone/tests/support/op_coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "halftone/graph/ir/builder.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

TEST(OpCoverage, EveryOpHasWhatItMust) {
  const auto& kernels = kernels::KernelRegistry::Global();
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    EXPECT_EQ(LackedBy(*op, AllOpCases()), "") << op->name;
    EXPECT_EQ(KernelsLackedBy(*op, Device::Kind::kReference, kernels), "") << op->name;
    EXPECT_EQ(KernelsLackedBy(*op, Device::Kind::kCpu, kernels), "") << op->name;
  }
}

// An op that lacks nothing, with its case and its kernels, to take something away from.
struct PlantedOp {
  PlantedOp() {
    op.name = "planted";
    op.doc = op.source = op.amp.reason = "planted";
    op.inputs = {{"x", {DType::kF32, DType::kF16}, ""}};
    op.gradient = [](ir::GradContext&) {};
    for (const Device::Kind device : {Device::Kind::kReference, Device::Kind::kCpu}) {
      AddKernel(device, {DType::kF32, DType::kF16});
    }
  }
  void AddKernel(Device::Kind device, ir::DTypeSet dtypes) {
    kernels::KernelCandidate candidate;
    candidate.name = op.name;
    candidate.op = op.name;
    candidate.device = device;
    candidate.dtypes = dtypes;
    candidate.create = [](const ir::Node&) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
      return Unimplemented("planted");
    };
    kernels.Add(std::move(candidate));
  }
  std::string Lacks() const {
    return LackedBy(op, cases) + KernelsLackedBy(op, Device::Kind::kReference, kernels) +
           KernelsLackedBy(op, Device::Kind::kCpu, kernels) +
           KernelsLackedBy(op, Device::Kind::kCuda, kernels);
  }

  ir::OpRecord op;
  std::vector<OpCase> cases = {Case("planted", "one", {Reals({2})})};
  kernels::KernelRegistry kernels;
};

TEST(OpCoverage, SeesAMissingCase) {
  PlantedOp planted;
  planted.cases[0].op = "another";
  EXPECT_THAT(planted.Lacks(), HasSubstr("no case in tests/op_cases\n"));
}

TEST(OpCoverage, SeesAGradientWithoutCaseOrReason) {
  PlantedOp planted;
  planted.cases[0].gradient = false;
  EXPECT_THAT(planted.Lacks(), HasSubstr("a gradient that no case of tests/op_cases checks\n"));
  planted.op.gradient = nullptr;
  EXPECT_THAT(planted.Lacks(), HasSubstr("no gradient, and no reason for none\n"));
  planted.op.no_gradient = "flat almost everywhere";
  EXPECT_EQ(LackedBy(planted.op, planted.cases), "");
  planted.op.gradient = [](ir::GradContext&) {};
  EXPECT_EQ(LackedBy(planted.op, planted.cases), "a gradient, beside a reason for none\n");
}

TEST(OpCoverage, SeesMissingTexts) {
  PlantedOp planted;
  planted.op.doc = planted.op.source = planted.op.amp.reason = "";
  EXPECT_EQ(LackedBy(planted.op, planted.cases),
            "no description\nno source\nno reason for its AMP class\n");
}

TEST(OpCoverage, SeesMissingKernels) {
  PlantedOp planted;
  EXPECT_EQ(planted.Lacks(), "no kernel for cuda:0, and no decomposition\n");
  planted.AddKernel(Device::Kind::kCuda, {DType::kF32});
  EXPECT_EQ(planted.Lacks(), "no kernel for cuda:0 in f16, and no decomposition\n");
  planted.AddKernel(Device::Kind::kCuda, {DType::kF16});
  EXPECT_EQ(planted.Lacks(), "");
  planted.op.name = "renamed";
  planted.cases[0].op = "renamed";
  EXPECT_EQ(planted.Lacks(), R"(0 reference kernels
no kernel for cpu, and no decomposition
no kernel for cuda:0, and no decomposition
)");
  planted.op.decompose = [](ir::Builder&, const std::vector<ir::Expr>& in, const ir::Attributes&) {
    return in;
  };
  EXPECT_EQ(planted.Lacks(), "0 reference kernels\n");
}

TEST(OpCoverage, SeesKernelsOfMarkers) {
  PlantedOp planted;
  planted.op.is_marker = true;
  planted.op.gradient = nullptr;
  EXPECT_EQ(planted.Lacks(),
            "a kernel of what is not computed\na kernel of what is not computed\n");
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
