// Which candidate is taken when some fail: at once, or only when they are measured.
#include "halftone/kernels/cuda/runtime/autotune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/scoped_environment.h"

namespace halftone::testing {
namespace {

using cuda::FindFastest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Work(const DeviceMemory& memory, cudaStream_t stream) {
  return cudaMemsetAsync(memory.data(), 1, 64, stream) == cudaSuccess ? absl::OkStatus()
                                                                      : Internal("no memset");
}

TEST(AutotuneTest, PassesOverWhatFails) {
  const ScopedEnvironment tuning("HALFTONE_AUTOTUNE", "1");
  const DeviceMemory memory(64);
  const auto fastest = FindFastest(4, [&](int i, cudaStream_t stream) {
    if (i == 2) return Work(memory, stream);
    return i == 1 ? ResourceExhausted("too large") : Internal("broken");
  });
  ASSERT_TRUE(fastest.ok()) << Message(fastest.status());
  EXPECT_EQ(*fastest, 2);
}

TEST(AutotuneTest, LackOfMemoryIsTheErrorOnlyIfNothingElseFailed) {
  const ScopedEnvironment tuning("HALFTONE_AUTOTUNE", "1");
  const auto status = [](int broken) {
    return FindFastest(3,
                       [broken](int i, cudaStream_t) -> absl::Status {
                         return i == broken ? Internal("broken") : ResourceExhausted("too large");
                       })
        .status();
  };
  EXPECT_EQ(status(-1).code(), absl::StatusCode::kResourceExhausted);
  for (int broken = 0; broken < 3; ++broken) {
    EXPECT_EQ(status(broken).code(), absl::StatusCode::kInternal) << broken;
    EXPECT_THAT(Message(status(broken)), HasSubstr("no candidate runs"));
  }
}

// There is memory to run, and none to measure.
TEST(AutotuneTest, WithoutAMeasurementTakesTheFirstThatRan) {
  const ScopedEnvironment tuning("HALFTONE_AUTOTUNE", "1");
  const DeviceMemory memory(64);
  int runs[3] = {0, 0, 0};
  const auto fastest = FindFastest(3, [&](int i, cudaStream_t stream) {
    if (i == 0) return Internal("broken");
    return ++runs[i] == 1 ? Work(memory, stream) : ResourceExhausted("too large");
  });
  ASSERT_TRUE(fastest.ok()) << Message(fastest.status());
  EXPECT_EQ(*fastest, 1);
}

TEST(AutotuneTest, UnmeasuredTakesTheFirstThatRuns) {
  const ScopedEnvironment tuning("HALFTONE_AUTOTUNE", "0");
  const DeviceMemory memory(64);
  std::vector<int> tried;
  const auto fastest = FindFastest(4, [&](int i, cudaStream_t stream) {
    tried.push_back(i);
    return i == 0 ? Internal("broken") : Work(memory, stream);
  });
  ASSERT_TRUE(fastest.ok()) << Message(fastest.status());
  EXPECT_EQ(*fastest, 1);
  EXPECT_THAT(tried, ElementsAre(0, 1));
}

}  // namespace
}  // namespace halftone::testing
