// RaceDetector: tells ThreadSanitizer of the threads of the device and of what orders them. Each
// CUDA thread is a TSan fiber; a barrier is a release by those that arrive and an acquire by those
// that leave. Without TSan all of it is empty.
//
// Nothing orders two blocks of a grid, however far apart, but that threads of the same number take turns
// in two sets of fibers: a conflict of such threads is seen where the sets of their blocks differ, which
// are drawn at random in every grid. What a block leaves behind (the clocks of its barriers, accesses to
// its shared memory) is nobody else's, or forgotten before it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "halftone/tests/cuda_emulation/ready_set.h"
#include "halftone/tests/cuda_emulation/sanitizers.h"

#if defined(HT_EMULATION_TSAN)
#include <sys/mman.h>

extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace halftone::emulation {

#if defined(HT_EMULATION_TSAN)

class RaceDetector {
 public:
  static constexpr int kSets = 2;
  // Blocks whose shared memory and barriers are new; then the former ones are forgotten.
  static constexpr int kBlocksApart = 64;

  // What happened on the host so far is before everything in the grid.
  void BeginGrid(int threads, uint64_t seed) {
    host_ = __tsan_get_current_fiber();
    threads_ = threads;
    draw_ = Random(seed + ++grids_ * 0x632BE59BD9B4E019ull);
    for (auto& set : fibers_) {
      for (int t = 0; t < threads; ++t) {
        if (set[t] == nullptr) set[t] = __tsan_create_fiber(0);
      }
    }
    __tsan_release(&grid_begin_);
  }
  void BeginBlock() {
    const uint64_t place = blocks_++ % kBlocksApart;
    if (place == 0) RenewBarriers();
    barriers_ = &all_barriers_[place];
    set_ = static_cast<int>(draw_.Below(kSets));
  }
  int set() const { return set_; }
  void EndGrid() { __tsan_acquire(&grid_end_); }
  // The threads of the block will never end: what they did is before what the host does next.
  void AbandonBlock() {
    for (auto& set : fibers_) {
      for (int t = 0; t < threads_; ++t) {
        __tsan_switch_to_fiber(set[t], kNoSync);
        __tsan_release(&grid_end_);
        __tsan_switch_to_fiber(host_, kNoSync);
        __tsan_destroy_fiber(set[t]);  // its shadow call stack is unbalanced
        set[t] = nullptr;
      }
    }
  }

  void EnterThread(int thread) { __tsan_switch_to_fiber(fibers_[set_][thread], kNoSync); }
  void EnterHost() { __tsan_switch_to_fiber(host_, kNoSync); }
  void ThreadBegins() { __tsan_acquire(&grid_begin_); }
  void ThreadEnds() { __tsan_release(&grid_end_); }

  // Each returns what to give to the Leave of the same barrier.
  int ArriveAtBlock() {
    const int phase = block_phase_ & 1;
    __tsan_release(&barriers_->of_block[phase]);
    return phase;
  }
  void LeaveBlock(int phase) { __tsan_acquire(&barriers_->of_block[phase]); }
  void BlockComplete() { ++block_phase_; }
  int ArriveAtWarp(int warp) {
    const int phase = warp_phase_[warp] & 1;
    __tsan_release(&barriers_->of_warp[warp][phase]);
    return phase;
  }
  void LeaveWarp(int warp, int phase) { __tsan_acquire(&barriers_->of_warp[warp][phase]); }
  void WarpComplete(int warp) { ++warp_phase_[warp]; }

  // Makes pages new: nobody has accessed them yet. On the host's fiber.
  static void Forget(void* pages, size_t bytes) {
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);  // else it would count as written by the host
    if (mmap(pages, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != pages) {
      std::abort();
    }
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }

 private:
  static constexpr unsigned kNoSync = 1;
  // TSan keeps a clock for 8 bytes.
  struct Barriers {
    uint64_t of_block[2], of_warp[32][2];
  };
  // Clocks go with the memory of their barriers.
  void RenewBarriers() {
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    std::free(all_barriers_);
    all_barriers_ = static_cast<Barriers*>(std::calloc(kBlocksApart, sizeof(Barriers)));
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    if (all_barriers_ == nullptr) std::abort();
  }

  void* host_ = nullptr;
  void* fibers_[kSets][kMaxThreads] = {};
  int threads_ = 0, set_ = 0;
  uint64_t grids_ = 0, blocks_ = 0;
  Random draw_;
  Barriers *all_barriers_ = nullptr, *barriers_ = nullptr;
  int block_phase_ = 0, warp_phase_[32] = {};
  char grid_begin_ = 0, grid_end_ = 0;
};

#else

class RaceDetector {
 public:
  static constexpr int kSets = 1, kBlocksApart = 1;
  void BeginGrid(int, uint64_t) {}
  void BeginBlock() {}
  int set() const { return 0; }
  void EndGrid() {}
  void AbandonBlock() {}
  void EnterThread(int) {}
  void EnterHost() {}
  void ThreadBegins() {}
  void ThreadEnds() {}
  int ArriveAtBlock() { return 0; }
  void LeaveBlock(int) {}
  void BlockComplete() {}
  int ArriveAtWarp(int) { return 0; }
  void LeaveWarp(int, int) {}
  void WarpComplete(int) {}
  static void Forget(void*, size_t) {}
};

#endif

}  // namespace halftone::emulation
