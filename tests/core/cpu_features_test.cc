#include "halftone/core/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "halftone/core/bf16_speed.h"

namespace halftone {
namespace {

CpuFeatures Everything() {
  CpuFeatures f;
  f.avx2 = f.fma = f.f16c = true;
  f.avx512f = f.avx512bw = f.avx512vl = f.avx512dq = true;
  f.avx512_bf16 = f.amx_bf16 = f.fast_bf16 = true;
  return f;
}

#ifdef __x86_64__
// libgcc's own detection.
TEST(CpuFeaturesTest, DetectAgreesWithTheCompiler) {
  const CpuFeatures f = CpuFeatures::Detect();
  EXPECT_EQ(f.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(f.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(f.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(f.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(f.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(f.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
#ifndef __clang__
  EXPECT_EQ(f.f16c, __builtin_cpu_supports("f16c") != 0);
  EXPECT_EQ(f.avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0);
#endif
}
#endif

TEST(CpuFeaturesTest, LevelNeedsAllItsParts) {
  CpuFeatures f;
  EXPECT_EQ(f.level(), SimdLevel::kScalar);
  f = Everything();
  EXPECT_EQ(f.level(), SimdLevel::kAvx512);
  f.avx512vl = false;
  EXPECT_EQ(f.level(), SimdLevel::kAvx2);
  f.f16c = false;
  EXPECT_EQ(f.level(), SimdLevel::kScalar);
}

TEST(CpuFeaturesTest, LimitsRemoveWhatIsAbove) {
  CpuFeatures f = Everything();
  ASSERT_TRUE(LimitSimd("avx512", &f).ok());
  EXPECT_EQ(f.ToString(), Everything().ToString());
  ASSERT_TRUE(LimitSimd("avx2", &f).ok());
  EXPECT_EQ(f.ToString(), "avx2 fma f16c");
  ASSERT_TRUE(LimitSimd("scalar", &f).ok());
  EXPECT_EQ(f.ToString(), "scalar");
}

TEST(CpuFeaturesTest, Bf16CanBeForcedEitherWay) {
  CpuFeatures f;
  ASSERT_TRUE(ForceBf16("native", &f).ok());
  EXPECT_TRUE(f.fast_bf16);
  ASSERT_TRUE(ForceBf16("widened", &f).ok());
  EXPECT_FALSE(f.fast_bf16);
  f.fast_bf16 = true;
  const absl::Status status = ForceBf16("Native", &f);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "HALFTONE_BF16: \"Native\"; expected native or widened");
  EXPECT_TRUE(f.fast_bf16) << "unchanged";
}

TEST(CpuFeaturesTest, LayoutCanBeForcedEitherWay) {
  CpuFeatures f = Everything();
  ASSERT_TRUE(ForceLayout("nchw16c", &f).ok());
  EXPECT_TRUE(f.channel_blocks);
  EXPECT_EQ(ForceLayout("nchw", &f).message(),
            "HALFTONE_LAYOUT: \"nchw\"; expected nhwc or nchw16c");
  EXPECT_TRUE(f.channel_blocks) << "unchanged";
  ASSERT_TRUE(ForceLayout("nhwc", &f).ok());
  EXPECT_FALSE(f.channel_blocks);
  f.avx512f = false;
  EXPECT_EQ(ForceLayout("nchw16c", &f).message(),
            "HALFTONE_LAYOUT: this machine has no AVX-512; expected nhwc");
  EXPECT_FALSE(f.channel_blocks);
}

// One dot product does the work of two multiply-adds on at most the ports that these have, so it
// costs at least half as much; 16 would be a loop that was interrupted in all its rounds.
TEST(CpuFeaturesTest, Bf16DotCostIsPlausible) {
  if (!CpuFeatures::Detect().avx512_bf16) GTEST_SKIP() << "no AVX512-BF16";
  const double cost = MeasureBf16DotCost();
  EXPECT_GE(cost, 0.5);
  EXPECT_LT(cost, 16);
}

TEST(CpuFeaturesTest, RefusesOtherNames) {
  for (const char* name : {"", "AVX2", "sse4", "avx2 "}) {
    CpuFeatures f = Everything();
    const absl::Status status = LimitSimd(name, &f);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status),
              std::string("HALFTONE_SIMD: \"") + name + "\"; expected scalar, avx2 or avx512");
    EXPECT_EQ(f.ToString(), Everything().ToString());
  }
}

TEST(CpuFeaturesTest, RefusesWhatTheMachineLacks) {
  CpuFeatures f;
  f.avx2 = f.fma = f.f16c = true;
  const absl::Status status = LimitSimd("avx512", &f);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status), "HALFTONE_SIMD: this machine has no avx512; expected at most avx2");
  EXPECT_EQ(f.level(), SimdLevel::kAvx2);
}

// Get() reads the environment once; each death test is a process of its own.
class CpuFeaturesDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

[[noreturn]] void PrintFeatures(const char* simd) {
  setenv("HALFTONE_SIMD", simd, 1);
  std::fprintf(stderr, "level %s\n", Name(CpuFeatures::Get().level()));
  std::exit(0);
}

TEST_F(CpuFeaturesDeathTest, GetObeysTheEnvironment) {
  EXPECT_EXIT(PrintFeatures("scalar"), ::testing::ExitedWithCode(0), "^level scalar");
}

TEST_F(CpuFeaturesDeathTest, GetWarnsAndIgnoresATypingError) {
  const std::string level = Name(CpuFeatures::Detect().level());
  EXPECT_EXIT(PrintFeatures("avx3"), ::testing::ExitedWithCode(0),
              "halftone: warning: HALFTONE_SIMD: \"avx3\"; expected scalar, avx2 or avx512; "
              "ignored\nlevel " +
                  level);
}

}  // namespace
}  // namespace halftone
