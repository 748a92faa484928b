// The threads of CPU kernels. OpenMP's team is shared with oneDNN, so one setting rules both.
#pragma once

#include <algorithm>
#include <cstdint>

#include "halftone/core/status.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace halftone {

// More threads than this are never used.
inline constexpr int kMaxThreads = 1024;

// Threads that kernels use from now on, in the whole process. Values under 1 count as 1, values
// over kMaxThreads as kMaxThreads. More than AvailableCpus() wait for each other. Compiled
// executables keep what libraries planned for the number at compile time: set it before compiling.
void SetNumThreads(int count);

// The number set. While none is: OMP_NUM_THREADS, else AvailableCpus().
int NumThreads();

// For programs' options: "got 100000, expected 0..1024".
absl::Status CheckNumThreads(int count);

// OpenMP keeps its setting per calling thread; this brings the caller's in line with SetNumThreads
// and starts its team. Call it where a run or a compilation enters the library; after the first
// time it costs a few loads and the reading of a clock.
// Errors: ResourceExhausted if the system refuses the threads.
absl::Status UseNumThreads();

// Threads that a parallel region of this thread gets if it asks for `count`: all of them, or 1 if
// the system refuses some (OpenMP would end the process) or this thread's team was lost in a fork.
int StartTeam(int count);

// Calls fn(first, last) on parts that cover [begin, end) once each. Parts start at begin plus a
// multiple of `grain`, the smallest piece worth a thread: a range of one grain or less, or a call
// from inside a parallel region, runs as one inline call. Never allocates once the thread has its
// team. The parts depend on the number of threads, so a reduction that must not depend on it has to
// fix its own blocks. Requires: grain > 0; fn does not throw.
template <typename Fn>
void ParallelFor(int64_t begin, int64_t end, [[maybe_unused]] int64_t grain, const Fn& fn) {
  if (begin >= end) return;
#ifdef _OPENMP
  if (end - begin > grain && omp_in_parallel() == 0) {
    const int threads = StartTeam(NumThreads());
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
