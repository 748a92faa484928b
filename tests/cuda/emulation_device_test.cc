// The emulated device: limits of launches, options, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/test_kernels.h"
#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::testing {
namespace {

using emulation::Options;
using emulation::ScopedOptions;
using ::testing::HasSubstr;

TEST(EmulatedDevice, WithoutADriverNothingWorks) {
  Options options = emulation::GetOptions();
  options.no_driver = true;
  const ScopedOptions scope(options);
  int count = 17;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 17);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 8), cudaErrorInsufficientDriver);
  int version = -1;
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
}

TEST(EmulatedDevice, NoDevice) {
  Options options = emulation::GetOptions();
  options.device_count = 0;
  const ScopedOptions scope(options);
  int count = 17;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

TEST(EmulatedDevice, SeveralDevices) {
  Options options = emulation::GetOptions();
  options.device_count = 2;
  options.memory_bytes = 1 << 20;
  const ScopedOptions scope(options);
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaMalloc(&first, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  // Memory of its own; streams of the other device take no kernels of this one.
  ASSERT_EQ(cudaMalloc(&second, 1 << 20), cudaSuccess);
  EXPECT_EQ(LaunchFill(static_cast<int*>(second), 1, 1, stream), cudaErrorInvalidResourceHandle);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, second), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(EmulatedDevice, ComputeCapability) {
  Options options = emulation::GetOptions();
  options.compute_major = 9;
  options.compute_minor = 0;
  const ScopedOptions scope(options);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.minor, 0);
  // Source: CUDA C++ Programming Guide, table of compute capabilities.
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 227 * 1024);
  int value = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
            cudaSuccess);
  EXPECT_EQ(value, 227 * 1024);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaErrorInvalidDevice);
}

TEST(EmulatedDevice, Occupancy) {
  Options options = emulation::GetOptions();
  options.compute_major = 8;
  options.compute_minor = 0;
  const ScopedOptions scope(options);
  const auto blocks = [](int threads, size_t shared_bytes) {
    int count = -1;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                  &count, reinterpret_cast<const void*>(&LaunchNothing), threads, shared_bytes),
              cudaSuccess);
    return count;
  };
  EXPECT_EQ(blocks(1024, 0), 2);                 // 2048 threads
  EXPECT_EQ(blocks(33, 0), 32);                  // 32 blocks, fewer than 2048 / 64
  EXPECT_EQ(blocks(128, size_t{80} * 1024), 2);  // 164 KiB
  EXPECT_EQ(blocks(128, size_t{160} * 1024), 1);
}

struct BadLaunch {
  dim3 grid, block;
  size_t shared_bytes;
  const char* report;
  cudaError_t error = cudaErrorInvalidConfiguration;
};

TEST(EmulatedDevice, LimitsOfLaunches) {
  const BadLaunch launches[] = {
      {1, 0, 0, "block size"},
      {1, 1025, 0, "block size"},
      {1, dim3(32, 32, 2), 0, "block size"},
      {1, dim3(1, 1, 65), 0, "block size"},
      {0, 1, 0, "empty grid"},
      {dim3(1, 65536), 1, 0, "grid size"},
      {dim3(1, 1, 65536), 1, 0, "grid size"},
      // Over the 227 KiB of any device. A launch opts in first, and that fails.
      {1, 1, size_t{228} * 1024, "dynamic shared memory", cudaErrorInvalidValue},
  };
  for (const BadLaunch& launch : launches) {
    EXPECT_EQ(LaunchNothing(launch.grid, launch.block, launch.shared_bytes, nullptr), launch.error);
    EXPECT_THAT(emulation::LastReport(), HasSubstr(launch.report));
    // An error of the launch alone.
    EXPECT_EQ(cudaGetLastError(), launch.error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  EXPECT_EQ(LaunchNothing(dim3(1, 65535), 1, 0, nullptr), cudaSuccess);
  EXPECT_EQ(LaunchNothing(1, dim3(4, 4, 64), size_t{99} * 1024, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  emulation::ClearErrors();
}

TEST(EmulatedDevice, FailedWorkFailsEveryLaterCall) {
  const ScopedOptions scope(emulation::GetOptions());
  const DeviceArray<int> array(size_t{1});
  int on_host = 0;
  EXPECT_EQ(LaunchFill(&on_host, 1, 1, nullptr), cudaErrorIllegalAddress);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("argument 0 is a pointer to host memory"));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(LaunchFill(array.data(), 1, 1, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  // Memory is freed all the same.
  const size_t live = emulation::LiveDeviceAllocations();
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 8), cudaErrorIllegalAddress);
  emulation::ClearErrors();
  ASSERT_EQ(cudaMalloc(&p, 8), cudaSuccess);
  EXPECT_EQ(LaunchFill(&on_host, 1, 1, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(p), cudaErrorIllegalAddress);
  EXPECT_EQ(emulation::LiveDeviceAllocations(), live);
}

TEST(EmulatedDevice, NamesOfErrors) {
  // Source: NVIDIA's runtime, cudaGetErrorName and cudaGetErrorString.
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(123456)), "unrecognized error code");
}

TEST(EmulatedDevice, CountsWhatItRuns) {
  const DeviceArray<int> array(size_t{130});
  emulation::ResetStatistics();
  ASSERT_EQ(LaunchFill(array.data(), 130, 1, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const emulation::Statistics statistics = emulation::GetStatistics();
  EXPECT_EQ(statistics.launches, 1u);
  EXPECT_EQ(statistics.kernels, 1u);
  EXPECT_EQ(statistics.blocks, 3u);
  EXPECT_EQ(statistics.threads, 192u);
  EXPECT_EQ(statistics.host_synchronisations, 1u);
}

}  // namespace
}  // namespace halftone::testing
