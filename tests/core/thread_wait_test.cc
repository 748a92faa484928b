#include "halftone/core/thread_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "halftone/core/cpu_count.h"
#include "halftone/core/threads.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;

// Computes, and calls AdaptWaiting now and then, until it decides `brief`; false after `limit`.
bool Becomes(bool brief, Clock::duration limit) {
  const Clock::time_point end = Clock::now() + limit;
  while (Clock::now() < end) {
    AdaptWaiting();
    if (WaitsBriefly() == brief) return true;
    const Clock::time_point next = Clock::now() + std::chrono::milliseconds(5);
    while (Clock::now() < next) {
    }
  }
  return false;
}

#ifdef _OPENMP
TEST(AdaptWaiting, F16ThreadsGiveWayWhileOthersWantTheCpus) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) {
    GTEST_SKIP() << "OMP_WAIT_POLICY is set: the user decides";
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2 * AvailableCpus() + 1; ++i) {
    others.emplace_back([&stop] {
      while (!stop) {
      }
    });
  }
  EXPECT_TRUE(Becomes(true, std::chrono::seconds(30)));
  stop = true;
  for (std::thread& other : others) other.join();
}
#endif

TEST(AdaptWaiting, F16NothingWhereTheUserDecides) {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) GTEST_SKIP() << "OMP_WAIT_POLICY is not set";
  EXPECT_FALSE(Becomes(true, std::chrono::milliseconds(200)));
}

}  // namespace
}  // namespace halftone
