// allocator.h and alloc_counter.h.
#include "halftone/core/allocator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "halftone/core/alloc_counter.h"
#include "halftone/core/mapped_blocks.h"
#include "halftone/tests/support/allocation_hook.h"
#include "halftone/tests/support/sanitizers.h"

namespace halftone {
namespace {

TEST(BufferTest, AlignedAndWritable) {
  for (const size_t size : {0, 1, 63, 64, 65, 4097}) {
    const std::shared_ptr<Buffer> buffer = *Buffer::Allocate(size);
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment, 0u);
    std::memset(buffer->data(), 1, size);
  }
}

TEST(BufferTest, StatsFollowLiveAndPeak) {
  const AllocatorStats before = BufferStats();
  {
    const auto a = *Buffer::Allocate(1000);
    auto b = *Buffer::Allocate(500);
    EXPECT_EQ(BufferStats().live_bytes, before.live_bytes + 1500);
    EXPECT_EQ(BufferStats().allocations, before.allocations + 2);
    EXPECT_GE(BufferStats().peak_bytes, before.live_bytes + 1500);
    b.reset();
    EXPECT_EQ(BufferStats().live_bytes, before.live_bytes + 1000);
  }
  EXPECT_EQ(BufferStats().live_bytes, before.live_bytes);
  EXPECT_GE(BufferStats().peak_bytes, before.live_bytes + 1500);
}

TEST(BufferTest, StatsAreThreadSafe) {
  const AllocatorStats before = BufferStats();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Buffer::Allocate(64).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(BufferStats().live_bytes, before.live_bytes);
  EXPECT_EQ(BufferStats().allocations, before.allocations + 4000);
}

TEST(BufferTest, LimitRefusesWithTheNumbers) {
  const int64_t live = BufferStats().live_bytes;
  SetBufferLimit(live + 1000);
  {
    const auto fits = Buffer::Allocate(1000);
    EXPECT_TRUE(fits.ok());
    const absl::Status status = Buffer::Allocate(1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Message(status), Concat("cannot allocate 1 bytes: ", live + 1000,
                                      " are live and the limit is ", live + 1000));
    EXPECT_EQ(BufferStats().live_bytes, live + 1000);
  }
  EXPECT_TRUE(Buffer::Allocate(1).ok());
  SetBufferLimit(0);
  EXPECT_TRUE(Buffer::Allocate(2000).ok());
}

TEST(BufferTest, ImpossibleSizes) {
  const AllocatorStats before = BufferStats();
  const absl::Status status = Buffer::Allocate(std::numeric_limits<size_t>::max()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "cannot allocate 18446744073709551615 bytes; expected at most 4611686018427387903");
  EXPECT_EQ(BufferStats().live_bytes, before.live_bytes);
  EXPECT_EQ(BufferStats().allocations, before.allocations);
}

// More than any address space holds, and less than is refused unasked.
TEST(BufferTest, SizesThatTheSystemDoesNotGive) {
  if (testing::kMemoryIsSanitized) GTEST_SKIP() << "sanitizers end a program that asks for so much";
  const AllocatorStats before = BufferStats();
  const absl::Status status = Buffer::Allocate(size_t{1} << 61).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "cannot allocate 2305843009213693952 bytes: the system has no more memory");
  EXPECT_EQ(BufferStats().live_bytes, before.live_bytes);
}

TEST(BufferTest, F19ZeroedIsZeroAlsoAfterReuse) {
  for (const size_t size :
       {size_t{1}, size_t{100}, kMappedBytes - 1, kMappedBytes, size_t{1} << 23}) {
    for (int round = 0; round < 3; ++round) {
      const auto buffer = *Buffer::AllocateZeroed(size);
      EXPECT_EQ(buffer->size(), size);
      const char* bytes = static_cast<const char*>(buffer->data());
      ASSERT_TRUE(std::all_of(bytes, bytes + size, [](char c) { return c == 0; })) << size;
      std::memset(buffer->data(), 0xFF, size);
    }
  }
}

int64_t ResidentBytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Sizes that never come again, a few alive at a time, as the arrays of a graph whose shapes grow by
// one: in a heap each leaves a hole in which the next does not fit.
TEST(BufferTest, F64SizesThatGrowLeaveNothingBehind) {
  if (testing::kMemoryIsSanitized) GTEST_SKIP() << "sanitizers keep freed memory for a while";
  constexpr size_t kMiB = size_t{1} << 20;
  const int64_t before = ResidentBytes();
  std::deque<std::shared_ptr<Buffer>> alive;
  for (size_t i = 0; i < 600; ++i) {
    for (const size_t size : {kMiB + 4096 * i, 2 * kMiB + 1024 * i, kMappedBytes + 64 * i}) {
      alive.push_back(*Buffer::Allocate(size));
      std::memset(alive.back()->data(), 1, size);
    }
    while (alive.size() > 24) alive.pop_front();
  }
  alive.clear();
  EXPECT_LT(ResidentBytes() - before, static_cast<int64_t>(kMaxKeptBytes + 8 * kMiB));
}

TEST(BufferTest, GivesABlockOfAboutTheSizeAgain) {
  if (!IsMapped(1 << 22)) GTEST_SKIP() << "the sanitizer watches the heap";
  const void* first = (*Buffer::Allocate(size_t{1} << 22))->data();
  EXPECT_EQ((*Buffer::Allocate((size_t{1} << 22) - 1000))->data(), first);
  EXPECT_NE((*Buffer::Allocate(size_t{1} << 21))->data(), first) << "half of it would be wasted";
}

TEST(AllocationCounterTest, CountsNotesOfThisThread) {
  const AllocationCounter counter;
  NoteAllocation();
  std::thread([] {
    for (int i = 0; i < 100; ++i) NoteAllocation();
  }).join();
  // Starting a thread itself allocates here: a handful, not 101.
  EXPECT_GE(counter.count(), 1);
  EXPECT_LT(counter.count(), 50);
  EXPECT_EQ(counter.paused_count(), 0);
}

TEST(AllocationCounterTest, PauseNestsAndCountsApart) {
  const AllocationCounter counter;
  {
    const AllocationPause outer;
    NoteAllocation();
    {
      const AllocationPause inner;
      NoteAllocation();
    }
    NoteAllocation();
  }
  NoteAllocation();
  EXPECT_EQ(counter.count(), 1);
  EXPECT_EQ(counter.paused_count(), 3);
}

TEST(AllocationCounterTest, BuffersCount) {
  const AllocationCounter counter;
  EXPECT_TRUE(Buffer::Allocate(8).ok());
  EXPECT_GE(counter.count(), 1);
}

TEST(AllocationCounterTest, HookCountsOperatorNew) {
  if (!testing::AllocationHookInstalled()) GTEST_SKIP() << "the sanitizer owns operator new";
  const AllocationCounter counter;
  {
    std::vector<int> values(100);
    EXPECT_EQ(counter.count(), 1);
    const AllocationPause pause;
    values.resize(1000);
    EXPECT_EQ(counter.count(), 1);
    EXPECT_EQ(counter.paused_count(), 1);
  }
  struct alignas(128) Wide {
    char bytes[128];
  };
  const std::vector<Wide> wide(2);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(wide.data()) % 128, 0u);
  EXPECT_EQ(counter.count(), 2);
}

}  // namespace
}  // namespace halftone
