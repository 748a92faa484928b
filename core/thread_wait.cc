#include "halftone/core/thread_wait.h"

#ifdef _OPENMP

#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "halftone/core/threads.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kWindow = std::chrono::milliseconds(50);
// Switches that a thread did not ask for, in one window. An idle machine has about one a second; a
// thread that shares its CPU has one every 3 to 24 ms.
constexpr int64_t kBusySwitches = 2;
// So many quiet windows in a row end it.
constexpr int kQuietWindows = 20;

struct State {
  std::mutex mutex;
  Clock::time_point next;  // end of the window
  int64_t switches = 0;    // at its beginning
  int quiet_windows = 0;
  // A thread that keeps a sleeping team, so that libgomp counts more threads than CPUs.
  bool wanted = false;
  std::atomic<bool> present{false};
  std::condition_variable not_wanted;
};

// Never destroyed: programs end while the thread waits.
State& TheState() {
  static auto* const state = new State;
  return *state;
}

// Returns once the team is not wanted any more; OpenMP ends its threads with this one.
void KeepSleepingTeam(State& state) {
  const int size = std::max(2, omp_get_num_procs() - NumThreads() + 2);
  if (StartTeam(size) == size) {
    std::atomic<int> members{0};
#pragma omp parallel num_threads(size)
    members.fetch_add(1, std::memory_order_relaxed);
  }
  std::unique_lock<std::mutex> lock(state.mutex);
  state.not_wanted.wait(lock, [&state] { return !state.wanted; });
  state.present.store(false, std::memory_order_relaxed);
}

void Want(State& state, bool wanted) {
  if (state.wanted == wanted) return;
  state.wanted = wanted;
  if (!wanted) {
    state.not_wanted.notify_all();
  } else if (!state.present.load(std::memory_order_relaxed)) {
    try {
      std::thread([&state] { KeepSleepingTeam(state); }).detach();
      state.present.store(true, std::memory_order_relaxed);
    } catch (const std::system_error&) {
      state.wanted = false;  // no room for a thread: waits as before
    }
  }
}

int64_t InvoluntarySwitches() {
  rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool UserDecides() {
  return std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
}

}  // namespace

void AdaptWaiting() {
  static const bool user_decides = UserDecides();
  if (user_decides) return;
  State& state = TheState();
  const std::unique_lock<std::mutex> lock(state.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread is deciding
  const Clock::time_point now = Clock::now();
  if (now < state.next) return;
  const int64_t switches = InvoluntarySwitches();
  // A window that took much longer had no steps at its end; nothing can be said of it.
  const bool known = now < state.next + kWindow;
  const bool busy = known && switches - state.switches >= kBusySwitches;
  state.next = now + kWindow;
  state.switches = switches;
  state.quiet_windows = busy ? 0 : state.quiet_windows + 1;
  if (busy) {
    Want(state, true);
  } else if (state.quiet_windows >= kQuietWindows) {
    Want(state, false);
  }
}

bool WaitsBriefly() { return TheState().present.load(std::memory_order_relaxed); }

}  // namespace halftone

#else

namespace halftone {

void AdaptWaiting() {}
bool WaitsBriefly() { return false; }

}  // namespace halftone

#endif
