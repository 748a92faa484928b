// The fixed targets say of this build's CPU kernels what the registry says: a graph that a tool
// compiles for a target is the one that compiling on such a device gives. tests/cuda has the same
// for CUDA.
#include "halftone/passes/fixed_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/tests/support/target_differences.h"

namespace halftone::testing {
namespace {

TEST(FixedTargets, OfCpusRunWhatTheRegistryHas) {
  for (const char* name : {"cpu-avx512bf16", "cpu-avx2"}) {
    const auto target = passes::FindFixedTarget(name);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_THAT(TargetDifferences(**target, Device::Kind::kCpu), ::testing::IsEmpty());
  }
}

TEST(FixedTargets, ADifferenceIsSeen) {
  const passes::FixedTarget target({.name = "toy",
                                    .kernel_dtypes = {DType::kF32, DType::kBF16},
                                    .cannot_run = {"mse_loss"},
                                    .preferred_low = DType::kF32,
                                    .preferred_reason = ""});
  const std::vector<std::string> differences = TargetDifferences(target, Device::Kind::kCpu);
  EXPECT_THAT(differences, ::testing::IsSupersetOf({
                               "mse_loss: a kernel is registered, but toy has none",
                               "mse_loss in f32: a kernel is registered, but toy has none",
                               "matmul in f16: a kernel is registered, but toy has none",
                           }));
  EXPECT_THAT(differences,
              ::testing::Not(::testing::Contains(::testing::StartsWith("matmul in bf16"))));
}

}  // namespace
}  // namespace halftone::testing
