// The engine: one grid at a time, its blocks one after another, the threads of a block as fibers.
// This is its state, which block_engine.cc, block_barrier.cc and warp.cc share.
//
// 1. A thread runs on the stack of the thread before it until one has to wait, so that kernels
//    without barriers run as a plain loop.
// 2. A thread that waits is at the block's barrier or in a collective of its warp. Whoever arrives
//    last makes all of them ready.
// 3. A mistake of the kernel ends the grid: Fail leaves the fiber for good, the host reports.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "halftone/tests/cuda_emulation/control.h"
#include "halftone/tests/cuda_emulation/device_hooks.h"
#include "halftone/tests/cuda_emulation/fiber.h"
#include "halftone/tests/cuda_emulation/race_detector.h"
#include "halftone/tests/cuda_emulation/ready_set.h"
#include "halftone/tests/cuda_emulation/shared_arena.h"

namespace halftone::emulation {

inline constexpr int kLanes = 32;
inline constexpr int kMaxWarps = kMaxThreads / kLanes;

inline constexpr int kMaxFibers = RaceDetector::kSets * kMaxThreads;

enum class ThreadState : uint8_t { kNew, kReady, kAtBarrier, kInWarp, kDone };

struct Thread {
  Fiber* fiber;
  uint3 index;
  ThreadState state;
  // At the block's barrier.
  int predicate, line, barrier_result;
  // In a collective of its warp.
  uint64_t value, warp_result;
  unsigned mask;
  int source;
  WarpKind kind;
};

// One thread of a kernel.
struct KernelCall {
  void (*thread)(const void* arguments);
  const void* arguments;
};

// In pages of its own and without parts on the heap: host_pointers.h poisons heap memory while it
// works.
struct Engine {
  // The grid.
  const KernelCall* kernel = nullptr;
  int num_threads = 0;  // of a block
  size_t dynamic_bytes = 0, shared_limit = 0;
  ThreadOrder order = ThreadOrder::kForward;
  Random random;
  char failure[512] = {};  // empty: none
  Statistics statistics;   // of the grid

  // The block.
  uint64_t block_serial = 0;  // over all grids
  Thread threads[kMaxThreads];
  int start_order[kMaxThreads];
  int num_started = 0, num_done = 0, num_at_barrier = 0;
  int current = -1;
  ReadySet ready;
  BarrierKind barrier_kind = BarrierKind::kPlain;
  unsigned lanes_waiting[kMaxWarps], lanes_live[kMaxWarps];
  size_t static_bytes = 0;
  void* dynamic_shared = nullptr;
  SharedArena shared;

  // Stacks.
  Fiber host;
  Fiber* running = nullptr;
  Fiber fibers[kMaxFibers];
  Fiber* free_fibers[kMaxFibers];
  int num_fibers = 0, num_free_fibers = 0;
  RaceDetector races;
};
Engine& GetEngine();

// Ends the grid with this failure; from within a thread only.
[[noreturn, gnu::format(printf, 1, 2)]] void Fail(const char* format, ...);
void MakeReady(Engine& e, int thread);
// The current thread waits; returns when it was made ready and it is its turn.
void WaitForTurn(Engine& e);
// Makes the threads at the barrier ready: all that have not exited are there.
void ReleaseBarrier(Engine& e);
// Carries out the collective of this mask if all its lanes that have not exited are there.
void TryWarp(Engine& e, int warp, unsigned mask);

struct Grid {
  dim3 grid, block;
  size_t dynamic_bytes;
  size_t shared_limit;  // static and dynamic
  ThreadOrder order;
  uint64_t seed;
};
// Runs all threads. Returns what went wrong, or nothing. Adds to `statistics`.
std::string RunGrid(const Grid& grid, const KernelCall& kernel, Statistics& statistics);

// Where device code is, for reports: "block (0,0,0), thread (3,0,0)". Empty: the host runs.
std::string RunningThread();

}  // namespace halftone::emulation
