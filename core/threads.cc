#include "halftone/core/threads.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "halftone/core/cpu_count.h"
#include "halftone/core/fork.h"
#include "halftone/core/thread_wait.h"

namespace halftone {
namespace {

std::atomic<int> g_num_threads{0};  // 0: not set

}  // namespace

void SetNumThreads(int count) {
  g_num_threads.store(std::clamp(count, 1, kMaxThreads), std::memory_order_relaxed);
#ifdef _OPENMP
  omp_set_num_threads(NumThreads());  // what oneDNN plans for
#endif
}

absl::Status CheckNumThreads(int count) {
  if (count >= 0 && count <= kMaxThreads) return absl::OkStatus();
  return InvalidArgument("got ", count, ", expected 0..", kMaxThreads);
}

#ifdef _OPENMP

namespace {

// Without a number set by the user of the program or of the library.
int DefaultThreads() {
  static const bool by_user = std::getenv("OMP_NUM_THREADS") != nullptr;
  const int wanted = omp_get_max_threads();
  return by_user ? wanted : std::min(wanted, AvailableCpus());
}

// Whether the system gives `count` threads at a time. OpenMP's own would end the process if not.
bool CanStart(int count) {
  std::mutex mutex;
  std::condition_variable changed;
  bool all_started = false;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  bool refused = false;
  for (int i = 0; i < count && !refused; ++i) {
    try {
      threads.emplace_back([&] {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return all_started; });
      });
    } catch (const std::system_error&) {
      refused = true;
    }
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    all_started = true;
  }
  changed.notify_all();
  for (std::thread& thread : threads) thread.join();
  return !refused;
}

// The largest team that this thread has had.
thread_local int largest_team = 1;

}  // namespace

int NumThreads() {
  const int count = g_num_threads.load(std::memory_order_relaxed);
  return count > 0 ? count : DefaultThreads();
}

int StartTeam(int count) {
  if (IsForkedThread()) return 1;
  if (count <= largest_team) return count;
  if (!CanStart(count - 1)) return 1;
  // At once, while there is room.
  std::atomic<int> members{0};
#pragma omp parallel num_threads(count)
  members.fetch_add(1, std::memory_order_relaxed);
  largest_team = count;
  return count;
}

absl::Status UseNumThreads() {
  const int count = NumThreads();
  if (omp_get_max_threads() != count) omp_set_num_threads(count);
  if (count == 1) return absl::OkStatus();
  // Before the team is there: a child of fork must learn of it.
  static const int generation = ForkGeneration();
  (void)generation;
  if (!IsForkedThread() && StartTeam(count) != count) {
    return ResourceExhausted(
        "the system refuses ", count,
        " threads for kernels; expected a lower number of threads, or a higher ",
        "limit of processes or memory");
  }
  AdaptWaiting();
  return absl::OkStatus();
}

#else

int NumThreads() { return 1; }
int StartTeam(int /*count*/) { return 1; }
absl::Status UseNumThreads() { return absl::OkStatus(); }

#endif

}  // namespace halftone
