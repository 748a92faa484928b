// The emulated device: memory and copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/test_kernels.h"
#include "halftone/tests/cuda_emulation/control.h"
#include "halftone/tests/cuda_emulation/device_memory.h"
#include "halftone/tests/cuda_emulation/sanitizers.h"

namespace halftone::testing {
namespace {

using emulation::Options;
using emulation::ScopedOptions;
using ::testing::HasSubstr;

Options With(bool lazy) {
  Options options = emulation::GetOptions();
  options.lazy = lazy;
  return options;
}

uint64_t Waits() { return emulation::GetStatistics().host_synchronisations; }

TEST(EmulatedMemory, StartsAsNan) {
  const DeviceArray<float> fresh(size_t{100});
  for (const float x : fresh.Get()) EXPECT_TRUE(std::isnan(x));
  float* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 8), cudaSuccess);
  EXPECT_TRUE(std::isnan(pinned[1]));
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(EmulatedMemory, EndsWhereTheOptionSays) {
  Options options = emulation::GetOptions();
  options.memory_bytes = emulation::LiveDeviceBytes() + 1000;
  const ScopedOptions scope(options);
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  EXPECT_EQ(free_bytes, 1000u);
  EXPECT_EQ(total_bytes, options.memory_bytes);
  void *a = nullptr, *b = nullptr;
  EXPECT_EQ(cudaMalloc(&a, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(a, nullptr);
  EXPECT_EQ(cudaMalloc(&a, ~size_t{0}), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&a, 600), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&b, 401, nullptr), cudaErrorMemoryAllocation);
  // Not an error of the device.
  ASSERT_EQ(cudaMallocAsync(&b, 400, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(b, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&a, 0), cudaSuccess);
  EXPECT_EQ(a, nullptr);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocHost(&a, size_t{1} << 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(a, nullptr);
}

TEST(EmulatedMemory, AddressesAreNotUsedTwice) {
  std::set<void*> seen;
  for (int i = 0; i < 100; ++i) {
    const DeviceMemory memory(64);
    EXPECT_TRUE(seen.insert(memory.data()).second);
  }
}

TEST(EmulatedMemory, UnlessTheRangeHasBeenUsedUp) {
  constexpr size_t kPage = 4096;
  emulation::DeviceMemory memory(4 * kPage);
  void* kept = memory.Allocate(1, 0);
  void* first = memory.Allocate(1, 0);
  void* second = memory.Allocate(1, 0);
  void* third = memory.Allocate(kPage - 256, 0);
  EXPECT_EQ(memory.Allocate(1, 0), nullptr);
  EXPECT_TRUE(memory.Free(second));
  EXPECT_TRUE(memory.Free(first));
  // From the bottom upwards, again each once.
  EXPECT_EQ(memory.Allocate(1, 0), first);
  EXPECT_TRUE(memory.Free(first));
  EXPECT_EQ(memory.Allocate(1, 0), second);
  EXPECT_EQ(memory.Allocate(kPage, 0), nullptr);
  EXPECT_EQ(memory.Allocate(kPage - 255, 0), nullptr);
  EXPECT_NE(memory.Allocate(1, 0), nullptr);
  EXPECT_FALSE(memory.Free(static_cast<char*>(kept) + 1));
  EXPECT_TRUE(memory.Covers(static_cast<char*>(third) + 1, kPage - 257));
  EXPECT_FALSE(memory.Covers(static_cast<char*>(third) + 1, kPage - 256));
}

TEST(EmulatedMemory, CopiesAreChecked) {
  const ScopedOptions scope(With(false));
  const DeviceArray<int> array(std::vector{1, 2, 3, 4});
  std::vector<int> host(8);
  EXPECT_EQ(cudaMemcpy(host.data(), array.data(), 20, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("copy from of 20 bytes out of bounds: "
                                                 "from byte 0 of allocation #"));
  EXPECT_EQ(cudaMemcpy(array.data() + 1, host.data(), 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("copy to of 16 bytes out of bounds: from byte 4"));
  EXPECT_EQ(cudaMemset(array.data(), 0, 17), cudaErrorInvalidValue);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("memset of 17 bytes out of bounds"));
  EXPECT_EQ(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), array.data(), 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("does not fit the pointers"));
  EXPECT_EQ(cudaFree(array.data() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data() + 2, array.data() + 1, 12, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host, (std::vector{0, 0, 2, 3, 4, 0, 0, 0}));
  void* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, 8), cudaSuccess);
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  EXPECT_EQ(cudaMemset(freed, 0, 8), cudaErrorInvalidValue);
  EXPECT_THAT(emulation::LastReport(), HasSubstr(", freed"));
  EXPECT_EQ(cudaFree(freed), cudaErrorInvalidValue);
}

TEST(EmulatedMemory, PageableCopiesMakeTheHostWait) {
  for (const bool lazy : {false, true}) {
    const ScopedOptions scope(With(lazy));
    const DeviceArray<int> array(size_t{4});
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    std::vector<int> source = {1, 2, 3, 4}, target(4);
    emulation::ResetStatistics();
    ASSERT_EQ(cudaMemcpyAsync(array.data(), source.data(), 16, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    EXPECT_EQ(Waits(), 1u);
    source.assign(4, -1);  // staged before the call returned
    ASSERT_EQ(cudaMemcpyAsync(target.data(), array.data(), 16, cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(Waits(), 2u);
    EXPECT_EQ(target, (std::vector{1, 2, 3, 4}));
    EXPECT_EQ(emulation::GetStatistics().copies, 2u);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

TEST(EmulatedMemory, PinnedCopiesDoNot) {
  const ScopedOptions scope(With(true));
  const DeviceArray<int> array(std::vector{1, 2, 3, 4});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  int* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), 16, cudaHostAllocDefault),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  emulation::ResetStatistics();
  pinned[0] = 10;
  ASSERT_EQ(cudaMemcpyAsync(array.data(), pinned, 4, cudaMemcpyHostToDevice, stream), cudaSuccess);
  pinned[0] = 11;  // read when the copy happens
  ASSERT_EQ(cudaMemcpyAsync(pinned + 1, array.data(), 8, cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  EXPECT_EQ(pinned[1], -1);
  EXPECT_EQ(Waits(), 0u);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(pinned[1], 11);
  EXPECT_EQ(pinned[2], 2);
  EXPECT_EQ(Waits(), 1u);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(EmulatedMemory, WhatElseMakesTheHostWait) {
  const ScopedOptions scope(With(true));
  const DeviceArray<int> a(std::vector{1, 2}), b(size_t{2});
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 8), cudaSuccess);
  void* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, 8), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  emulation::ResetStatistics();
  ASSERT_EQ(cudaMemcpy(b.data(), a.data(), 8, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemset(a.data(), 0, 8), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(freed, nullptr), cudaSuccess);
  EXPECT_EQ(Waits(), 0u);
  ASSERT_EQ(cudaMemcpy(pinned, b.data(), 8, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(pinned[1], 2);
  EXPECT_EQ(Waits(), 1u);
  ASSERT_EQ(cudaMalloc(&freed, 8), cudaSuccess);
  EXPECT_EQ(Waits(), 1u);
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  EXPECT_EQ(Waits(), 2u);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(Waits(), 3u);
  EXPECT_EQ(emulation::GetStatistics().device_allocations, 1u);
  EXPECT_EQ(emulation::GetStatistics().memsets, 1u);
}

// Under a sanitizer its own report of the fault.
TEST(EmulatedMemoryDeathTest, IsClosedToTheHost) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const DeviceArray<int> array(std::vector{1, 2, 3});
  const char* report = emulation::kAddressSanitizer || emulation::kThreadSanitizer
                           ? "SEGV"
                           : "host code touched byte 8 of allocation #[0-9]+ of 12 bytes";
  EXPECT_DEATH(array.data()[2] = 1, report);
  Options options = emulation::GetOptions();
  options.protect = false;
  const ScopedOptions scope(options);
  array.data()[2] = 7;
  EXPECT_EQ(array.Get(), (std::vector{1, 2, 7}));
}

}  // namespace
}  // namespace halftone::testing
