// What threads of a block may do together: on the emulated device a test of it, on a GPU a test of
// what is expected of it.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/test_kernels.h"

namespace halftone::testing {
namespace {

constexpr int kThreads = 64;

TEST(DeviceThreads, EachRunsOnce) {
  const dim3 grid(3, 2, 2), block(5, 3, 2);
  const int total = 3 * 2 * 2 * 5 * 3 * 2;
  const DeviceArray<int> seen(std::vector<int>(total, 0));
  ASSERT_EQ(LaunchVisit(seen.data(), grid, block, nullptr), cudaSuccess);
  EXPECT_EQ(seen.Get(), std::vector<int>(total, 1));
}

TEST(DeviceThreads, BarriersOrderSharedMemory) {
  for (const int threads : {1, 2, 32, 64, 1024}) {
    const DeviceArray<int> out(threads);
    ASSERT_EQ(LaunchTreeSum(out.data(), threads, nullptr), cudaSuccess);
    EXPECT_EQ(out.Get(), std::vector<int>(threads, threads * (threads + 1) / 2));
  }
}

// Expected values: the CUDA C++ Programming Guide's definitions, written out.
TEST(DeviceThreads, Collectives) {
  std::vector<DeviceArray<int>> ints;
  for (int i = 0; i < 9; ++i) ints.emplace_back(static_cast<size_t>(kThreads));
  const DeviceArray<unsigned> odd(static_cast<size_t>(kThreads));
  const WarpResults results{ints[0].data(), ints[1].data(), ints[2].data(), ints[3].data(),
                            odd.data(),     ints[4].data(), ints[5].data(), ints[6].data(),
                            ints[7].data(), ints[8].data()};
  ASSERT_EQ(LaunchWarp(results, kThreads, nullptr), cudaSuccess);
  std::vector<std::vector<int>> got;
  for (const auto& array : ints) got.push_back(array.Get());
  EXPECT_EQ(odd.Get(), std::vector<unsigned>(kThreads, 0xAAAAAAAAu));
  for (int t = 0; t < kThreads; ++t) {
    const int warp = t / 32 * 32;
    EXPECT_EQ(got[0][t], warp + 3);
    EXPECT_EQ(got[1][t], t % 8 == 7 ? t : t + 1);
    EXPECT_EQ(got[2][t], t % 8 == 0 ? t : t - 1);
    EXPECT_EQ(got[3][t], t ^ 5);
    EXPECT_NE(got[4][t], 0);
    EXPECT_EQ(got[5][t], 0);
    EXPECT_NE(got[6][t], 0);
    EXPECT_EQ(got[7][t], 0);
    EXPECT_EQ(got[8][t], 1);
  }
}

TEST(DeviceThreads, Atomics) {
  const DeviceArray<int> add(std::vector{5}), max(std::vector{-1}), min(std::vector{1}),
      bits(std::vector{256}), swap(std::vector{kThreads - 1});
  const DeviceArray<unsigned long long> wide(std::vector{1ull});
  const DeviceArray<float> number(std::vector{1.0f});
  const AtomicCells cells{add.data(),  max.data(),  min.data(),   bits.data(),
                          swap.data(), wide.data(), number.data()};
  ASSERT_EQ(LaunchAtomics(cells, kThreads, nullptr), cudaSuccess);
  EXPECT_EQ(add.Get()[0], 5 + kThreads * (kThreads - 1) / 2);
  EXPECT_EQ(max.Get()[0], kThreads - 1);
  EXPECT_EQ(min.Get()[0], 1 - kThreads);
  EXPECT_EQ(bits.Get()[0], 256 + 255);
  // Only the thread whose number it holds changes it.
  EXPECT_EQ(swap.Get()[0], kThreads);
  EXPECT_EQ(wide.Get()[0], 1 + (static_cast<unsigned long long>(kThreads) << 33));
  EXPECT_EQ(number.Get()[0], 1.0f + 0.5f * kThreads);
}

}  // namespace
}  // namespace halftone::testing
