// The mistakes that the emulated device is for: each is planted once and must be reported so, and
// its sound twin must not. Which build reports it and how: tests/cuda_emulation/README.md.
#include "halftone/tests/cuda/planted_bugs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/test_kernels.h"
#include "halftone/tests/cuda_emulation/control.h"
#include "halftone/tests/cuda_emulation/sanitizers.h"

namespace halftone::testing {
namespace {

using emulation::kAddressSanitizer;
using emulation::kThreadSanitizer;
using emulation::ScopedOptions;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr int kDeviceFailed = 3;
constexpr int kRaceReported = 66;  // ThreadSanitizer's, at exit
constexpr const char* kPoisoned = "AddressSanitizer: use-after-poison";

std::vector<int> Iota() {
  std::vector<int> values(kPlantedThreads);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// For a child process: runs a kernel on a fresh array, and ends.
template <typename Launch>
[[noreturn]] void RunAndExit(Launch launch) {
  int* array = nullptr;
  CheckCuda(cudaMalloc(reinterpret_cast<void**>(&array), kPlantedThreads * sizeof(int)));
  CheckCuda(cudaMemset(array, 0, kPlantedThreads * sizeof(int)));
  cudaError_t error = launch(array);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  std::exit(error == cudaSuccess ? 0 : kDeviceFailed);
}

class PlantedBugDeathTest : public ::testing::Test {
 protected:
  PlantedBugDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

using SharedKernel = cudaError_t (*)(int*, bool);

// Reported at the access, as `report`, in the build with AddressSanitizer.
void ExpectPoisoned(SharedKernel launch, const std::string& report = kPoisoned) {
  if (!kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer alone sees it";
  EXPECT_DEATH(RunAndExit([&](int* to) { return launch(to, true); }), report);
  EXPECT_EXIT(RunAndExit([&](int* to) { return launch(to, false); }), ExitedWithCode(0), "");
}

void ExpectRace(SharedKernel launch) {
  if (!kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer alone sees it";
  EXPECT_EXIT(RunAndExit([&](int* to) { return launch(to, true); }), ExitedWithCode(kRaceReported),
              "ThreadSanitizer: data race");
  EXPECT_EXIT(RunAndExit([&](int* to) { return launch(to, false); }), ExitedWithCode(0), "");
}

void ExpectReport(SharedKernel launch, const char* report) {
  const ScopedOptions scope(emulation::GetOptions());
  const DeviceArray<int> array(static_cast<size_t>(kPlantedThreads));
  EXPECT_EQ(launch(array.data(), false), cudaSuccess);
  EXPECT_EQ(array.Get(), Iota());
  EXPECT_EQ(emulation::LastReport(), "");
  EXPECT_EQ(launch(array.data(), true), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_THAT(emulation::LastReport(), HasSubstr(report));
}

// Without AddressSanitizer the red zone behind the array tells of it.
TEST_F(PlantedBugDeathTest, OutOfBoundsOfDeviceMemory) {
  if (kAddressSanitizer) return ExpectPoisoned(LaunchOutOfBounds);
  EXPECT_EXIT(RunAndExit([](int* to) { return LaunchOutOfBounds(to, true); }),
              ExitedWithCode(kDeviceFailed),
              "device code wrote out of bounds: byte 256 of allocation #[0-9]+ of 256 bytes");
  EXPECT_EXIT(RunAndExit([](int* to) { return LaunchOutOfBounds(to, false); }), ExitedWithCode(0),
              "");
}

TEST_F(PlantedBugDeathTest, OutOfBoundsOfStaticSharedMemory) {
  // UndefinedBehaviorSanitizer, where it is on, knows the array's type and comes first.
  ExpectPoisoned(LaunchOutOfStaticShared,
                 std::string(kPoisoned) + "|runtime error: index 64 out of bounds");
}

TEST_F(PlantedBugDeathTest, OutOfBoundsOfDynamicSharedMemory) {
  ExpectPoisoned(LaunchOutOfDynamicShared);
}

TEST_F(PlantedBugDeathTest, UseAfterFree) {
  const char* report = kAddressSanitizer  ? kPoisoned
                       : kThreadSanitizer ? "SEGV"
                                          : "device code of block \\(0,0,0\\), "
                                            "thread \\([0-9]+,0,0\\) touched byte [0-9]+ "
                                            "of allocation #[0-9]+ of 256 bytes, freed";
  const auto launch = [](bool freed) {
    return [freed](int* to) {
      if (freed) CheckCuda(cudaFree(to));
      return LaunchOutOfBounds(to, false);
    };
  };
  EXPECT_DEATH(RunAndExit(launch(true)), report);
  EXPECT_EXIT(RunAndExit(launch(false)), ExitedWithCode(0), "");
}

TEST_F(PlantedBugDeathTest, MissingBlockBarrier) { ExpectRace(LaunchNeighbour); }

TEST_F(PlantedBugDeathTest, MissingWarpBarrier) { ExpectRace(LaunchWarpNeighbour); }

TEST_F(PlantedBugDeathTest, WriteAfterRead) { ExpectRace(LaunchShift); }

TEST_F(PlantedBugDeathTest, LostUpdate) { ExpectRace(LaunchCount); }

// Two blocks share a set of fibers (race_detector.h) in every other grid, whatever the seed, but not in all of
// twenty: that would be one seed in a million.
template <typename Launch>
cudaError_t LaunchTwentyTimes(const Launch& launch) {
  cudaError_t error = cudaSuccess;
  for (int i = 0; i < 20 && error == cudaSuccess; ++i) error = launch();
  return error;
}

TEST_F(PlantedBugDeathTest, TwoBlocksOnOneCell) {
  ExpectRace([](int* to, bool planted) {
    return LaunchTwentyTimes([&] { return LaunchTwoBlocks(to, planted); });
  });
}

TEST_F(PlantedBugDeathTest, DistantBlocksOnOneCell) {
  if (!kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer alone sees it";
  const auto launch = [](int other) {
    return [other](int* to) {
      return LaunchTwentyTimes([&] { return LaunchDistantBlocks(to, other); });
    };
  };
  for (const int other : {2, 64, kDistantBlocks - 1}) {
    EXPECT_EXIT(RunAndExit(launch(other)), ExitedWithCode(kRaceReported),
                "ThreadSanitizer: data race")
        << "blocks 0 and " << other;
  }
  EXPECT_EXIT(RunAndExit(launch(kDistantBlocks)), ExitedWithCode(0), "");
}

TEST(PlantedBug, DivergentBarrier) {
  ExpectReport(LaunchTwoBarriers,
               "divergent barrier: threads of one block wait at the __syncthreads() of lines ");
  ExpectReport(LaunchEarlyExit, "is reached by 63 of 64 threads, the others have exited");
}

TEST(PlantedBug, HostPointerAsArgument) {
  const ScopedOptions scope(emulation::GetOptions());
  std::vector<int> on_host(kPlantedThreads);
  EXPECT_EQ(LaunchOutOfBounds(on_host.data(), false), cudaErrorIllegalAddress);
  EXPECT_EQ(emulation::LastReport(), "kernel argument 0 is a pointer to host memory");
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  emulation::ClearErrors();
  // Pinned memory is the device's as well.
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), kPlantedThreads * sizeof(int)),
            cudaSuccess);
  EXPECT_EQ(LaunchOutOfBounds(pinned, false), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(pinned[63], 63);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(PlantedBugDeathTest, HostPointerInAStructure) {
  if (!kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer alone sees it";
  std::vector<int> on_host(kPlantedThreads);
  static int global[kPlantedThreads];
  for (int* host : {on_host.data(), on_host.data() + 3, global}) {
    EXPECT_DEATH(RunAndExit([&](int*) { return LaunchStructure({1, host}); }), kPoisoned);
    // A word that nothing follows is no mistake, and the memory is as before.
    EXPECT_EXIT(RunAndExit([&](int*) {
                  CheckCuda(LaunchStructure({0, host}));
                  CheckCuda(cudaDeviceSynchronize());
                  host[0] = 1;
                  return cudaSuccess;
                }),
                ExitedWithCode(0), "");
  }
  EXPECT_EXIT(RunAndExit([](int* to) {
                return LaunchStructure({kPlantedThreads, to});
              }),
              ExitedWithCode(0), "");
}

// In lazy mode what is not waited for has not happened.
TEST(PlantedBug, MissingEventBetweenStreams) {
  for (const bool planted : {false, true}) {
    emulation::Options options = emulation::GetOptions();
    options.lazy = true;
    const ScopedOptions scope(options);
    const DeviceArray<int> from(std::vector{1}), to(std::vector{0});
    cudaStream_t producer = nullptr, consumer = nullptr;
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&producer, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(LaunchFill(from.data(), 1, 10, producer), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, producer), cudaSuccess);
    if (!planted) {
      ASSERT_EQ(cudaStreamWaitEvent(consumer, event, 0), cudaSuccess);
    }
    ASSERT_EQ(LaunchAddOne(to.data(), from.data(), 1, consumer), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(consumer), cudaSuccess);
    EXPECT_EQ(to.Get(), std::vector{planted ? 2 : 11});
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(producer), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(consumer), cudaSuccess);
  }
}

TEST(PlantedBug, ReadOfUnwrittenMemory) {
  const std::vector<float> written(kPlantedThreads, 2.0f);
  for (const bool planted : {false, true}) {
    const DeviceArray<float> to(static_cast<size_t>(kPlantedThreads)), from(written);
    ASSERT_EQ(LaunchUnwrittenShared(to.data(), from.data(), planted), cudaSuccess);
    for (const float x : to.Get()) EXPECT_EQ(std::isnan(x), planted);
  }
  const DeviceArray<float> to(static_cast<size_t>(kPlantedThreads)),
      from(static_cast<size_t>(kPlantedThreads));
  ASSERT_EQ(LaunchUnwrittenShared(to.data(), from.data(), false), cudaSuccess);
  for (const float x : to.Get()) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace halftone::testing
