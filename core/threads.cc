#include "halftone/core/threads.h"

#include <atomic>

namespace halftone {
namespace {

std::atomic<int> g_num_threads{0};  // 0: not set

}  // namespace

void SetNumThreads(int count) {
  g_num_threads.store(std::max(count, 1), std::memory_order_relaxed);
  UseNumThreads();
}

#ifdef _OPENMP

int NumThreads() {
  const int count = g_num_threads.load(std::memory_order_relaxed);
  return count > 0 ? count : omp_get_max_threads();
}

void UseNumThreads() {
  const int count = g_num_threads.load(std::memory_order_relaxed);
  if (count > 0 && omp_get_max_threads() != count) omp_set_num_threads(count);
}

#else

int NumThreads() { return 1; }

void UseNumThreads() {}

#endif

}  // namespace halftone
