// RaceDetector: tells ThreadSanitizer of the threads of the device and of what orders them. Each
// CUDA thread is a TSan fiber; a barrier is a release by those that arrive and an acquire by those
// that leave. Without TSan all of it is empty.
#pragma once

#include <cstdint>

#include "halftone/tests/cuda_emulation/ready_set.h"
#include "halftone/tests/cuda_emulation/sanitizers.h"

#if defined(HT_EMULATION_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace halftone::emulation {

#if defined(HT_EMULATION_TSAN)

class RaceDetector {
 public:
  // Two sets of threads, used by turns: a thread of one block is not ordered with its namesake in
  // the next block.
  static constexpr int kSets = 2;
  // Blocks whose shared memory lies apart; then the grid is ordered once, so that no block seems to
  // race with the former owner of its shared memory.
  static constexpr int kBlocksApart = 64;

  // What happened on the host so far is before everything in the grid.
  void BeginGrid(int threads) {
    host_ = __tsan_get_current_fiber();
    threads_ = threads;
    for (int set = 0; set < kSets; ++set) {
      for (int t = 0; t < threads; ++t) {
        if (fibers_[set][t] == nullptr) fibers_[set][t] = __tsan_create_fiber(0);
      }
    }
    __tsan_release(&grid_begin_);
  }
  void BeginBlock(uint64_t number) {
    if (number % kBlocksApart == kBlocksApart - 1) {
      __tsan_acquire(&grid_end_);
      __tsan_release(&grid_begin_);
    }
    set_ = static_cast<int>(number % kSets);
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
    __tsan_release(&block_sync_[phase]);
    return phase;
  }
  void LeaveBlock(int phase) { __tsan_acquire(&block_sync_[phase]); }
  void BlockComplete() { ++block_phase_; }
  int ArriveAtWarp(int warp) {
    const int phase = warp_phase_[warp] & 1;
    __tsan_release(&warp_sync_[warp][phase]);
    return phase;
  }
  void LeaveWarp(int warp, int phase) { __tsan_acquire(&warp_sync_[warp][phase]); }
  void WarpComplete(int warp) { ++warp_phase_[warp]; }

 private:
  static constexpr unsigned kNoSync = 1;
  void* host_ = nullptr;
  void* fibers_[kSets][kMaxThreads] = {};
  int threads_ = 0, set_ = 0;
  int block_phase_ = 0, warp_phase_[32] = {};
  char grid_begin_ = 0, grid_end_ = 0, block_sync_[2] = {}, warp_sync_[32][2] = {};
};

#else

class RaceDetector {
 public:
  static constexpr int kSets = 1, kBlocksApart = 1;
  void BeginGrid(int) {}
  void BeginBlock(uint64_t) {}
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
};

#endif

}  // namespace halftone::emulation
