// The names of fixed targets, and what holds a described one to a registry.
#include "halftone/kernels/fixed_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/kernels/cpu_target.h"
#include "halftone/tests/support/target_differences.h"

namespace halftone::kernels {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

TEST(FixedTargets, FindByName) {
  EXPECT_THAT(
      FixedTargetNames(),
      ::testing::ElementsAre("cpu-scalar", "cpu-avx2", "cpu-avx512", "cpu-avx512-nhwc",
                             "cpu-avx512bf16", "cpu-avx512bf16-nhwc", "reference", "cuda-sm90"));
  for (const std::string& name : FixedTargetNames()) EXPECT_TRUE(FindFixedTarget(name).ok());
  const auto unknown = FindFixedTarget("tpu");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(unknown.status()),
            "target \"tpu\" is unknown; expected one of cpu-scalar, cpu-avx2, cpu-avx512, "
            "cpu-avx512-nhwc, cpu-avx512bf16, cpu-avx512bf16-nhwc, reference, cuda-sm90");
}

TEST(FixedTargets, HaveTheNameOfThisMachine) {
  const auto found = FindFixedTarget(MakeCpuTarget()->name());
  ASSERT_TRUE(found.ok()) << found.status();
  std::string here, fixed;
  EXPECT_EQ((*found)->PreferredLowType(&fixed), MakeCpuTarget()->PreferredLowType(&here));
  if (CpuFeatures::Get().fast_bf16) {
    EXPECT_EQ(fixed, here);
  }
}

TEST(FixedTargets, BF16PaysWhereItIsFast) {
  for (const std::string& name : FixedTargetNames()) {
    const bool pays = name.rfind("cpu-avx512bf16", 0) == 0 || name == "cuda-sm90";
    EXPECT_EQ((*FindFixedTarget(name))->PreferredLowType(nullptr),
              pays ? DType::kBF16 : DType::kF32)
        << name;
  }
}

TEST(DescribedTarget, ADifferenceFromTheRegistryIsSeen) {
  const DescribedTarget target({.name = "toy",
                                .kernel_dtypes = {DType::kF32, DType::kBF16},
                                .cannot_run = {"mse_loss"},
                                .traits = {},
                                .joins_updates = true});
  const std::vector<std::string> differences =
      testing::TargetDifferences(target, Device::Kind::kCpu);
  EXPECT_THAT(differences, ::testing::IsSupersetOf({
                               "mse_loss: a kernel is registered, but toy has none",
                               "mse_loss in f32: a kernel is registered, but toy has none",
                               "matmul in f16: a kernel is registered, but toy has none",
                               "groups of sgd_update: no kernel is registered, but toy has one",
                           }));
  EXPECT_THAT(differences, Not(Contains(StartsWith("matmul in bf16"))));
}

}  // namespace
}  // namespace halftone::kernels
