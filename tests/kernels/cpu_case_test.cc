// Each CPU kernel against the reference kernel: every case, dtype and layout, at every SIMD level
// that this CPU has. And that the check can fail.
#include <algorithm>
#include <set>

#include "halftone/core/cpu_features.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/kernels/simd_levels.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

using kernels::KernelCandidate;
using kernels::KernelRegistry;

std::vector<const KernelCandidate*> FastCandidates(const std::string& op) {
  std::vector<const KernelCandidate*> found;
  for (const KernelCandidate* c : KernelRegistry::Global().Candidates(op, Device::Kind::kCpu)) {
    if (c->device == Device::Kind::kCpu) found.push_back(c);
  }
  return found;
}

// Whether `kernel` gives what the reference kernel gives.
::testing::AssertionResult Agrees(kernels::Kernel& kernel, const ir::Node& node,
                                  const std::vector<Tensor>& inputs, double factor) {
  const auto want = RunReference(node, inputs);
  if (!want.ok()) return ::testing::AssertionFailure() << "reference: " << Message(want.status());
  const auto got = RunKernel(kernel, node, inputs);
  if (!got.ok()) return ::testing::AssertionFailure() << Message(got.status());
  for (size_t i = 0; i < want->size(); ++i) {
    const auto agrees = AgreesWithReference(node.op().name, (*got)[i], (*want)[i], factor);
    if (!agrees) return ::testing::AssertionFailure() << "output " << i << ": " << agrees.message();
  }
  return ::testing::AssertionSuccess();
}

std::vector<ir::Layout> LayoutsOf(const OpCase& c) {
  if (!c.channels_last) return {ir::Layout::kPlain};
  return {ir::Layout::kPlain, ir::Layout::kChannelsLast};
}

void CheckCandidates(const OpCase& c, DType dtype, ir::Layout layout) {
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  for (const KernelCandidate* candidate : FastCandidates(c.op)) {
    for (SimdLevel level : SimdLevelsHere()) {
      // The library does not look at our level.
      if (candidate->tier == kernels::KernelTier::kLibrary && level != SimdLevelsHere().back()) {
        continue;
      }
      const ForcedSimdLevel forced(level);
      auto kernel = KernelRegistry::Global().CreateNamed(node, candidate->name);
      if (!kernel.ok()) {
        EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
        continue;
      }
      EXPECT_TRUE(Agrees(**kernel, node, inputs, c.tolerance_factor))
          << c.name << ": " << candidate->name << " in " << Name(dtype)
          << (layout == ir::Layout::kPlain ? "" : ", channels-last") << ", " << Name(level);
    }
  }
}

class CpuCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CpuCaseTest, EveryCandidateAgreesWithTheReference) {
  for (const OpCase* c : CasesOf(GetParam())) {
    for (DType dtype : c->dtypes) {
      for (ir::Layout layout : LayoutsOf(*c)) CheckCandidates(*c, dtype, layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuCaseTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

// The planted mistake: the right kernel, but one element off by a little.
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
    StoreDouble(args.outputs[0], type_.dtype, i, value + 0.02 * std::max(1.0, std::abs(value)));
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
      auto kernel = KernelRegistry::Global().Select(node, Device::Kind::kCpu);
      ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
      AlmostRight wrong(*std::move(kernel), node);
      EXPECT_FALSE(Agrees(wrong, node, MakeCaseInputs(c, dtype), c.tolerance_factor))
          << c.name << " in " << Name(dtype);
      ++planted;
    }
  }
  EXPECT_GT(planted, 50);
}

}  // namespace
}  // namespace halftone::testing
