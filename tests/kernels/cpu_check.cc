#include "halftone/tests/kernels/cpu_check.h"

#include "halftone/tests/kernels/simd_levels.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {

using kernels::KernelCandidate;
using kernels::KernelRegistry;

std::vector<const KernelCandidate*> FastCandidates(const std::string& op) {
  std::vector<const KernelCandidate*> found;
  for (const KernelCandidate* c : KernelRegistry::Global().Candidates(op, Device::Kind::kCpu)) {
    if (c->device == Device::Kind::kCpu) found.push_back(c);
  }
  return found;
}

::testing::AssertionResult Agrees(kernels::Kernel& kernel, const ir::Node& node,
                                  const std::vector<Tensor>& inputs, const Slack& slack) {
  const auto want = RunReference(node, inputs);
  if (!want.ok()) return ::testing::AssertionFailure() << "reference: " << Message(want.status());
  const auto got = RunKernel(kernel, node, inputs);
  if (!got.ok()) return ::testing::AssertionFailure() << Message(got.status());
  for (size_t i = 0; i < want->size(); ++i) {
    const auto agrees = AgreesWithReference(node.op().name, (*got)[i], (*want)[i], slack);
    if (!agrees) return ::testing::AssertionFailure() << "output " << i << ": " << agrees.message();
  }
  return ::testing::AssertionSuccess();
}

void CheckCandidates(const OpCase& c, DType dtype, ir::Layout layout) {
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<SimdLevel> levels = SimdLevelsHere();
  for (const KernelCandidate* candidate : FastCandidates(c.op)) {
    for (SimdLevel level : levels) {
      // The library does not look at our level.
      if (candidate->tier == kernels::KernelTier::kLibrary && level != levels.back()) continue;
      const ForcedSimdLevel forced(level);
      auto kernel = KernelRegistry::Global().CreateNamed(node, candidate->name);
      if (!kernel.ok()) {
        EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
        continue;
      }
      EXPECT_TRUE(Agrees(**kernel, node, inputs, c.slack))
          << c.name << ": " << candidate->name << " in " << Name(dtype) << ", " << ir::Name(layout)
          << ", " << Name(level);
    }
  }
}

void CheckCandidates(const OpCase& c) {
  for (DType dtype : c.dtypes) {
    for (const ir::Layout layout : LayoutsOf(c)) CheckCandidates(c, dtype, layout);
  }
}

}  // namespace halftone::testing
