// Each CPU kernel against the reference kernel: every case, dtype and layout, at every SIMD level
// that this CPU has. And that the check can fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "halftone/tests/kernels/cpu_check.h"

namespace halftone::testing {
namespace {

class CpuCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CpuCaseTest, EveryCandidateAgreesWithTheReference) {
  for (const OpCase* c : CasesOf(GetParam())) CheckCandidates(*c);
}

INSTANTIATE_TEST_SUITE_P(All, CpuCaseTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

// The planted mistake: the right kernel, but one element off by a little, which the dtype can tell.
class AlmostRight : public kernels::Kernel {
 public:
  AlmostRight(std::unique_ptr<kernels::Kernel> right, const ir::Node& node)
      : right_(std::move(right)), type_(node.output_type()) {
    workspace_bytes_ = right_->workspace_bytes();
  }
  void Run(const kernels::KernelArgs& args) override {
    right_->Run(args);
    int64_t i = type_.num_elements() / 2;
    while (!std::isfinite(LoadDouble(args.outputs[0], type_.dtype, i))) ++i;
    const double value = LoadDouble(args.outputs[0], type_.dtype, i);
    const double off = std::max(0.02, 1.5 * Epsilon(type_.dtype)) * std::max(1.0, std::abs(value));
    StoreDouble(args.outputs[0], type_.dtype, i, value + off);
  }

 private:
  std::unique_ptr<kernels::Kernel> right_;
  ir::ValueType type_;
};

TEST(CpuCaseCheck, FindsAPlantedMistake) {
  int planted = 0;
  std::set<std::string> seen;
  for (const OpCase& c : AllOpCases()) {
    if (!seen.insert(c.op).second) continue;
    for (DType dtype : c.dtypes) {
      const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
      const ir::Node& node = *CaseNode(*graph);
      if (!IsFloat(node.output_type().dtype) || node.output_type().num_elements() == 0) continue;
      auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCpu);
      ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
      AlmostRight wrong(*std::move(kernel), node);
      EXPECT_FALSE(Agrees(wrong, node, MakeCaseInputs(c, dtype), c.slack))
          << c.name << " in " << Name(dtype);
      ++planted;
    }
  }
  EXPECT_GT(planted, 50);
}

}  // namespace
}  // namespace halftone::testing
