// The threads of CPU kernels. OpenMP's team is shared with oneDNN, so one setting rules both.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace halftone {

// Threads that kernels use from now on, in the whole process. Values under 1 count as 1. Compiled
// executables keep what libraries planned for the number at compile time: set it before compiling.
void SetNumThreads(int count);

// The number set, or OpenMP's own choice (OMP_NUM_THREADS, else all cores) while none is.
int NumThreads();

// OpenMP keeps its setting per calling thread; this brings the caller's in line with SetNumThreads.
// Call it where a run or a compilation enters the library; it costs two loads.
void UseNumThreads();

// Calls fn(first, last) on parts that cover [begin, end) once each. Parts start at begin plus a
// multiple of `grain`, the smallest piece worth a thread: a range of one grain or less, or a call
// from inside a parallel region, runs as one inline call. Never allocates. The parts depend on the
// number of threads, so a reduction that must not depend on it has to fix its own blocks.
// Requires: grain > 0; fn does not throw.
template <typename Fn>
void ParallelFor(int64_t begin, int64_t end, [[maybe_unused]] int64_t grain, const Fn& fn) {
  if (begin >= end) return;
#ifdef _OPENMP
  if (end - begin > grain && omp_in_parallel() == 0) {
    const int threads = NumThreads();
    const int64_t blocks = (end - begin + grain - 1) / grain;
    const int64_t parts = std::min<int64_t>(threads, blocks);
    if (parts > 1) {
      // Always the full team, idle members included: libgomp ends the threads that a smaller team
      // leaves out and starts them anew for the next.
#pragma omp parallel num_threads(threads)
      for (int64_t part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) {
        const int64_t first = begin + blocks * part / parts * grain;
        const int64_t last = begin + blocks * (part + 1) / parts * grain;
        fn(first, std::min(last, end));
      }
      return;
    }
  }
#endif
  fn(begin, end);
}

}  // namespace halftone
