#include "halftone/core/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "halftone/core/alloc_counter.h"
#include "halftone/tests/support/sanitizers.h"

namespace halftone {
namespace {

#ifdef _OPENMP
constexpr bool kOpenMp = true;
#else
constexpr bool kOpenMp = false;
#endif

// Restores the number of threads.
class ThreadsTest : public ::testing::Test {
 protected:
  ~ThreadsTest() override { SetNumThreads(before_); }
  const int before_ = NumThreads();
};

TEST_F(ThreadsTest, SetIsProcessWide) {
  SetNumThreads(3);
  EXPECT_EQ(NumThreads(), kOpenMp ? 3 : 1);
  int elsewhere = 0;
  std::thread([&elsewhere] { elsewhere = NumThreads(); }).join();
  EXPECT_EQ(elsewhere, kOpenMp ? 3 : 1);
  SetNumThreads(-5);
  EXPECT_EQ(NumThreads(), 1);
}

#ifdef _OPENMP
TEST_F(ThreadsTest, UseBringsAnotherThreadInLine) {
  SetNumThreads(3);
  int used = 0;
  std::thread([&used] {
    omp_set_num_threads(7);
    EXPECT_TRUE(UseNumThreads().ok());
    used = omp_get_max_threads();
  }).join();
  EXPECT_EQ(used, 3);
}
#endif

TEST_F(ThreadsTest, F57NumbersAreBounded) {
  SetNumThreads(2147483647);
  EXPECT_EQ(NumThreads(), kOpenMp ? kMaxThreads : 1);
  EXPECT_TRUE(CheckNumThreads(0).ok());
  EXPECT_TRUE(CheckNumThreads(kMaxThreads).ok());
  EXPECT_EQ(CheckNumThreads(100000).message(), "got 100000, expected 0..1024");
  EXPECT_EQ(CheckNumThreads(-1).message(), "got -1, expected 0..1024");
}

#ifdef _OPENMP
// In a process of its own: the limit stays.
TEST_F(ThreadsTest, F58ThreadsThatTheSystemRefuses) {
  if (testing::kMemoryIsSanitized) GTEST_SKIP() << "sanitizers need address space";
  EXPECT_EXIT(
      {
        std::thread([] {
          rlimit limit;
          getrlimit(RLIMIT_AS, &limit);
          limit.rlim_cur = rlim_t{256} << 20;  // 8 MiB a stack
          setrlimit(RLIMIT_AS, &limit);
          SetNumThreads(200);
          const absl::Status status = UseNumThreads();
          std::atomic<int> calls{0};
          ParallelFor(0, 1000, 1, [&](int64_t, int64_t) { ++calls; });
          std::fprintf(stderr, "%s; %d call", Message(status).c_str(), calls.load());
        }).join();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0),
      "the system refuses 200 threads for kernels; "
      "expected a lower number of threads, or a higher limit of processes or memory; 1 call");
}
#endif

TEST_F(ThreadsTest, EveryIndexOnceForAnyGrain) {
  for (const int threads : {1, 2, 5}) {
    SetNumThreads(threads);
    for (const int64_t count : {0, 1, 2, 7, 64, 1001}) {
      for (const int64_t grain : {1, 2, 64, 1000, 5000}) {
        std::vector<std::atomic<int>> visits(count);
        constexpr int64_t kBegin = -3;
        ParallelFor(kBegin, kBegin + count, grain, [&](int64_t first, int64_t last) {
          EXPECT_LT(first, last);
          EXPECT_EQ((first - kBegin) % grain, 0);
          for (int64_t i = first; i < last; ++i) ++visits[i - kBegin];
        });
        for (const auto& v : visits) ASSERT_EQ(v, 1) << count << " by " << grain;
      }
    }
  }
}

TEST_F(ThreadsTest, SmallRangesRunInline) {
  SetNumThreads(4);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  ParallelFor(0, 100, 100, [&](int64_t first, int64_t last) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(last, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  ParallelFor(5, 5, 1, [&](int64_t, int64_t) { ++calls; });
  ParallelFor(5, 4, 1, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(ThreadsTest, LargeRangesUseTheThreads) {
  SetNumThreads(4);
  std::atomic<int> calls{0};
  ParallelFor(0, 100, 10, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, kOpenMp ? 4 : 1);
  calls = 0;
  ParallelFor(0, 100, 60, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, kOpenMp ? 2 : 1);
}

TEST_F(ThreadsTest, NestedCallsRunInline) {
  SetNumThreads(2);
  std::atomic<int> inner_calls{0};
  ParallelFor(0, 2, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      ParallelFor(0, 100, 1, [&](int64_t, int64_t) { ++inner_calls; });
    }
  });
  EXPECT_EQ(inner_calls, 2);
}

TEST_F(ThreadsTest, AllocatesNothing) {
  SetNumThreads(2);
  std::atomic<int64_t> sum{0};
  const auto add = [&sum](int64_t first, int64_t last) { sum += last - first; };
  ParallelFor(0, 1000, 1, add);
  const AllocationCounter counter;
  ParallelFor(0, 1000, 1, add);
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(sum, 2000);
}

}  // namespace
}  // namespace halftone
