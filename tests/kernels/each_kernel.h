// Runs an op by every kernel that the CPU has for it, for tests with right values of their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "halftone/tests/kernels/simd_levels.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {

// Calls check(outputs, what) for each candidate of the CPU that supports the case in `dtype`, the
// reference kernel's included, at every SIMD level; `what` names them in messages.
inline void ForEachKernel(
    const OpCase& c, DType dtype,
    const std::function<void(const std::vector<Tensor>&, const std::string& what)>& check) {
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
  const ir::Node& node = *CaseNode(*graph);
  auto& registry = kernels::KernelRegistry::Global();
  for (const auto* candidate : registry.Candidates(c.op, Device::Kind::kCpu)) {
    for (SimdLevel level : SimdLevelsHere()) {
      const ForcedSimdLevel forced(level);
      auto kernel = registry.CreateNamed(node, candidate->name);
      if (!kernel.ok()) {
        EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
        continue;
      }
      const auto outputs = RunKernel(**kernel, node, inputs);
      ASSERT_TRUE(outputs.ok()) << Message(outputs.status());
      check(*outputs,
            Concat(c.name, ": ", candidate->name, " in ", Name(dtype), ", ", Name(level)));
      if (candidate->tier != kernels::KernelTier::kNative &&
          candidate->tier != kernels::KernelTier::kFallback) {
        break;  // others do not ask for the level
      }
    }
  }
}

}  // namespace halftone::testing
