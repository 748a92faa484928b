#include "halftone/core/thread_wait.h"

#ifdef _OPENMP

#include <fcntl.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "halftone/core/threads.h"

namespace halftone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Clock::duration kWindow = std::chrono::milliseconds(50);
// The part of a window in which the calling thread could run and had no CPU. Measured on a virtual
// machine with two: at most 0.03 while it is idle, 0.3 to 0.6 beside one or two programs that
// compute, whether the team spins or sleeps. Switches that nobody asked for do not tell the two
// apart: 40 a second here while idle.
constexpr double kBusy = 0.15, kQuiet = 0.05;
// So many windows in a row begin it, and end it.
constexpr int kBusyWindows = 2, kQuietWindows = 20;

struct State {
  std::mutex mutex;
  Clock::time_point begin;  // of the window
  int64_t delay = -1;       // of `thread` at that time; -1: not known
  pid_t thread = 0;
  int busy_windows = 0, quiet_windows = 0;
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

// Nanoseconds that this thread has waited for a CPU, the second number of its schedstat
// (Documentation/scheduler/sched-stats in Linux); -1 where the kernel keeps none.
int64_t RunDelay() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[96];
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  if (size <= 0) return -1;
  text[size] = '\0';
  long long running = 0, delay = -1;
  return std::sscanf(text, "%lld %lld", &running, &delay) == 2 ? delay : -1;
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
  const std::chrono::duration<double> window = now - state.begin;
  if (window < kWindow) return;
  const int64_t delay = RunDelay();
  const pid_t thread = gettid();
  if (state.delay >= 0 && delay >= 0 && thread == state.thread) {
    const double waited = static_cast<double>(delay - state.delay) * 1e-9 / window.count();
    state.busy_windows = waited >= kBusy ? state.busy_windows + 1 : 0;
    state.quiet_windows = waited <= kQuiet ? state.quiet_windows + 1 : 0;
  }
  state.begin = now;
  state.delay = delay;
  state.thread = thread;
  if (state.busy_windows >= kBusyWindows) {
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
