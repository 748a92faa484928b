// CachingAllocator over a driver that only counts.
#include "halftone/kernels/cuda/runtime/caching_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "halftone/core/philox.h"

namespace halftone::cuda {
namespace {

constexpr size_t kMib = size_t{1} << 20;

// Addresses of nothing, never given out twice.
struct FakeDriver {
  size_t capacity = 1024 * kMib;
  size_t held = 0;
  int allocations = 0, frees = 0;
  uintptr_t next = 1 << 20;
  std::map<void*, size_t> segments;

  CachingAllocator::Driver Make() {
    return {.allocate = [this](size_t bytes) -> absl::StatusOr<void*> {
              if (held + bytes > capacity) return ResourceExhausted("full");
              ++allocations;
              held += bytes;
              void* const data = reinterpret_cast<void*>(next);
              next += bytes + kMib;
              segments[data] = bytes;
              return data;
            },
            .free =
                [this](void* data) {
                  ++frees;
                  held -= segments.at(data);
                  segments.erase(data);
                },
            .total_bytes = capacity};
  }
};

class CachingAllocatorTest : public ::testing::Test {
 protected:
  char* Get(size_t bytes) {
    const auto data = allocator_.Allocate(bytes);
    EXPECT_TRUE(data.ok()) << Message(data.status());
    return data.ok() ? static_cast<char*>(*data) : nullptr;
  }

  FakeDriver driver_;
  CachingAllocator allocator_{driver_.Make()};
};

TEST_F(CachingAllocatorTest, SmallRequestsShareASegment) {
  char* const a = Get(1);
  char* const b = Get(257);
  EXPECT_EQ(b, a + 256);
  EXPECT_EQ(Get(1), b + 512);
  EXPECT_EQ(driver_.held, 2 * kMib);
  const auto stats = allocator_.stats();
  EXPECT_EQ(stats.allocations, 3);
  EXPECT_EQ(stats.device_allocations, 1);
  EXPECT_EQ(stats.live_bytes, 256 + 512 + 256);
  EXPECT_EQ(stats.cached_bytes, static_cast<int64_t>(2 * kMib) - 1024);
}

TEST_F(CachingAllocatorTest, OneMibIsSmallAndMoreIsLarge) {
  Get(kMib);
  Get(kMib);
  EXPECT_EQ(driver_.allocations, 1);
  Get(kMib + 1);
  EXPECT_EQ(driver_.allocations, 2);
  EXPECT_EQ(driver_.held, 4 * kMib);
  Get(5 * kMib);
  EXPECT_EQ(driver_.held, 10 * kMib);
}

TEST_F(CachingAllocatorTest, WhatIsGivenBackServesAgain) {
  for (size_t bytes : {size_t{1}, kMib, 3 * kMib, 40 * kMib}) {
    char* const first = Get(bytes);
    allocator_.Free(first);
    char* const second = Get(bytes);
    EXPECT_EQ(first, second) << bytes;
    allocator_.Free(second);
  }
  EXPECT_EQ(allocator_.stats().device_allocations, 3);  // 1 and kMib share one
  EXPECT_EQ(allocator_.stats().live_bytes, 0);
}

TEST_F(CachingAllocatorTest, TheSmallestFreePieceThatFitsIsTaken) {
  char* const large = Get(20 * kMib);
  char* const middle = Get(8 * kMib);
  allocator_.Free(large);
  allocator_.Free(middle);
  EXPECT_EQ(Get(6 * kMib), middle);
  EXPECT_EQ(Get(10 * kMib), large);
  // What was left of both.
  EXPECT_EQ(Get(2 * kMib), middle + 6 * kMib);
  EXPECT_EQ(Get(10 * kMib), large + 10 * kMib);
  EXPECT_EQ(driver_.allocations, 2);
}

TEST_F(CachingAllocatorTest, FreeNeighboursBecomeOneInEveryOrder) {
  int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    char* pieces[3];
    for (char*& piece : pieces) piece = Get(600'000);
    EXPECT_EQ(driver_.allocations, 1);
    for (int i : order) allocator_.Free(pieces[i]);
    // Whole again: only then both fit.
    char* const a = Get(kMib);
    char* const b = Get(kMib);
    EXPECT_EQ(driver_.allocations, 1);
    allocator_.Free(a);
    allocator_.Free(b);
  }
}

TEST_F(CachingAllocatorTest, SmallRequestsDoNotBreakUpLargePieces) {
  allocator_.Free(Get(4 * kMib));
  Get(256);
  EXPECT_EQ(driver_.allocations, 2);
}

TEST_F(CachingAllocatorTest, ThePeakStays) {
  char* const a = Get(3 * kMib);
  char* const b = Get(1024);
  allocator_.Free(a);
  allocator_.Free(b);
  Get(512);
  EXPECT_EQ(allocator_.stats().peak_bytes, static_cast<int64_t>(3 * kMib + 1024));
  EXPECT_EQ(allocator_.stats().live_bytes, 512);
}

TEST_F(CachingAllocatorTest, ReleaseGivesBackWholeSegmentsOnly) {
  char* const a = Get(256);
  char* const b = Get(256);
  allocator_.Free(Get(6 * kMib));
  allocator_.Free(b);
  allocator_.ReleaseCached();
  EXPECT_EQ(driver_.held, 2 * kMib);
  EXPECT_EQ(driver_.frees, 1);
  allocator_.Free(a);
  allocator_.ReleaseCached();
  EXPECT_EQ(driver_.held, 0u);
  EXPECT_EQ(allocator_.stats().cached_bytes, 0);
}

TEST_F(CachingAllocatorTest, TheLimitCountsWhatIsGivenOut) {
  allocator_.set_limit(1024);
  char* const a = Get(768);
  const auto refused = allocator_.Allocate(300);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(Message(refused.status()),
            "out of memory: 300 bytes asked for, 768 given out; the limit is 1024");
  EXPECT_TRUE(allocator_.Allocate(256).ok());
  allocator_.Free(a);
  EXPECT_TRUE(allocator_.Allocate(700).ok());
  allocator_.set_limit(0);
  EXPECT_TRUE(allocator_.Allocate(10 * kMib).ok());
  EXPECT_EQ(allocator_.stats().allocations, 5);
}

TEST_F(CachingAllocatorTest, AFullDeviceGetsItsCacheBackAndASecondTry) {
  driver_.capacity = 10 * kMib;
  allocator_.Free(Get(4 * kMib));
  allocator_.Free(Get(256));
  char* const kept = Get(2 * kMib);  // in the first segment: it stays
  ASSERT_NE(Get(6 * kMib), nullptr);
  EXPECT_EQ(driver_.frees, 1);
  EXPECT_EQ(driver_.held, 10 * kMib);
  allocator_.Free(kept);
  ASSERT_NE(Get(4 * kMib), nullptr);
}

TEST_F(CachingAllocatorTest, SaysWhatTheDeviceHas) {
  FakeDriver driver;
  driver.capacity = 4 * kMib;
  CachingAllocator allocator(driver.Make());
  ASSERT_TRUE(allocator.Allocate(kMib).ok());
  EXPECT_EQ(Message(allocator.Allocate(5 * kMib).status()),
            "out of memory: 5242880 bytes asked for, 1048576 given out; the device has 4194304");
  EXPECT_EQ(Message(allocator.Allocate(SIZE_MAX).status()),
            "out of memory: 18446744073709551615 bytes asked for, 1048576 given out; "
            "the device has 4194304");
  EXPECT_EQ(allocator.stats().live_bytes, static_cast<int64_t>(kMib));
}

TEST(CachingAllocatorErrors, OfTheDriverAreGivenOn) {
  CachingAllocator allocator(
      {.allocate = [](size_t) -> absl::StatusOr<void*> { return Internal("the device is lost"); },
       .free = [](void*) {},
       .total_bytes = 0});
  EXPECT_EQ(Message(allocator.Allocate(1).status()), "the device is lost");
}

TEST(CachingAllocatorDeath, GivingBackTwiceEndsTheProgram) {
  FakeDriver driver;
  CachingAllocator allocator(driver.Make());
  void* const data = *allocator.Allocate(1);
  allocator.Free(data);
  EXPECT_DEATH(allocator.Free(data), "given back that was not given out");
}

// Pieces never overlap, and all memory is whole again at the end.
TEST_F(CachingAllocatorTest, RandomRequestsNeverOverlap) {
  PhiloxStream random(5);
  std::map<char*, size_t> live;
  int64_t bytes = 0;
  const auto rounded = [](size_t n) { return static_cast<int64_t>((n + 255) / 256 * 256); };
  for (int i = 0; i < 20'000; ++i) {
    if (live.size() > 40 || (!live.empty() && random.Below(2) == 0)) {
      auto it = std::next(live.begin(), static_cast<int>(random.Below(live.size())));
      bytes -= rounded(it->second);
      allocator_.Free(it->first);
      live.erase(it);
    } else {
      const size_t size = 1 + random.Below(size_t{1} << (4 + random.Below(19)));
      char* const data = Get(size);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 256, 0u);
      const auto behind = live.lower_bound(data);
      if (behind != live.end()) {
        ASSERT_LE(data + size, behind->first);
      }
      if (behind != live.begin()) {
        ASSERT_LE(std::prev(behind)->first + std::prev(behind)->second, data);
      }
      live[data] = size;
      bytes += rounded(size);
    }
    ASSERT_EQ(allocator_.stats().live_bytes, bytes);
  }
  for (const auto& [data, size] : live) allocator_.Free(data);
  allocator_.ReleaseCached();
  EXPECT_EQ(driver_.held, 0u);
  EXPECT_EQ(allocator_.stats().cached_bytes, 0);
}

TEST_F(CachingAllocatorTest, ThreadsMayShareIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 1000; ++i) allocator_.Free(Get(1 + i * 1000));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator_.stats().live_bytes, 0);
  EXPECT_EQ(allocator_.stats().allocations, 4000);
}

}  // namespace
}  // namespace halftone::cuda
