#include "halftone/core/fork.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "halftone/core/threads.h"
#include "halftone/tests/support/sanitizers.h"

namespace halftone {
namespace {

// The exit status of a child that runs `fn`.
int InChild(const std::function<int()>& fn) {
  const pid_t child = fork();
  if (child == 0) _exit(fn());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, F02GenerationsAreCounted) {
  const int here = ForkGeneration();
  EXPECT_FALSE(IsForkedThread());
  EXPECT_EQ(InChild([here] {
              bool elsewhere = true;
              std::thread([&elsewhere] { elsewhere = IsForkedThread(); }).join();
              return ForkGeneration() == here + 1 && IsForkedThread() && !elsewhere ? 0 : 1;
            }),
            0);
  EXPECT_EQ(ForkGeneration(), here);
}

TEST(Fork, F02TheChildHasThreadsOfItsOwn) {
  SetNumThreads(2);
  ASSERT_TRUE(UseNumThreads().ok());
  std::atomic<int64_t> sum{0};
  const auto add = [&sum](int64_t first, int64_t last) { sum += last - first; };
  ParallelFor(0, 1000, 1, add);  // the parent's team is there
  EXPECT_EQ(InChild([&] {
              alarm(60);
              // This thread's team is gone: on its own.
              ParallelFor(0, 1000, 1, add);
              if (sum != 2000) return 1;
              // Twice: the second finds the thread of the first.
              for (int i = 0; i < 2; ++i) {
                const absl::Status ran = RunBesideForkedThread([&]() -> absl::Status {
                  if (IsForkedThread()) return Internal("on the forked thread");
                  HT_RETURN_IF_ERROR(UseNumThreads());
                  ParallelFor(0, 1000, 1, add);
                  return absl::OkStatus();
                });
                if (!ran.ok()) return 2;
              }
              // Errors come through.
              const absl::Status error = RunBesideForkedThread([] { return NotFound("x"); });
              return sum == 4000 && absl::IsNotFound(error) ? 0 : 3;
            }),
            0);
}

TEST(Fork, F02AChildThatGetsNoThread) {
  if (testing::kMemoryIsSanitized) GTEST_SKIP() << "sanitizers need address space";
  ForkGeneration();
  EXPECT_EQ(InChild([] {
              // Stacks of threads that have ended are kept for the next ones: use them up.
              for (int i = 0; i < 16; ++i) std::thread([] { pause(); }).detach();
              rlimit limit;
              getrlimit(RLIMIT_AS, &limit);
              limit.rlim_cur = 1;  // no more than there is
              setrlimit(RLIMIT_AS, &limit);
              const absl::Status ran = RunBesideForkedThread([] { return absl::OkStatus(); });
              return absl::IsResourceExhausted(ran) &&
                             Message(ran).rfind("cannot start a thread after fork: ", 0) == 0
                         ? 0
                         : 1;
            }),
            0);
}

}  // namespace
}  // namespace halftone
