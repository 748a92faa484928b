// Blocks, and the turns of their threads.
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "halftone/tests/cuda_emulation/engine.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace halftone::emulation {
namespace {

void ThreadMain();

Fiber* NewFiber(Engine& e) {
  Fiber* fiber = &e.fibers[e.num_fibers];
  fiber->Create(ThreadMain, e.num_fibers++);
  return fiber;
}

// For the next thread to start.
Fiber* FreeFiber(Engine& e) {
  ++e.statistics.fibers;
  // One stack a thread: a stack that changes hands would look like a race.
  if (kThreadSanitizer) {
    return &e.fibers[e.races.set() * kMaxThreads + e.start_order[e.num_started]];
  }
  return e.num_free_fibers == 0 ? NewFiber(e) : e.free_fibers[--e.num_free_fibers];
}

void SwitchTo(Engine& e, Fiber& to) {
  Fiber* from = std::exchange(e.running, &to);
  if (from != &to) Fiber::Switch(*from, to);
}

void SetCurrent(Engine& e, int thread) {
  e.current = thread;
  threadIdx = e.threads[thread].index;
  e.races.EnterThread(thread);
}

void ThreadEnds(Engine& e, int thread) {
  e.threads[thread].state = ThreadState::kDone;
  ++e.num_done;
  const int warp = thread / kLanes;
  e.lanes_live[warp] &= ~(1u << thread % kLanes);
  if (e.lanes_waiting[warp] != 0) {
    TryWarp(e, warp, e.threads[warp * kLanes + __builtin_ctz(e.lanes_waiting[warp])].mask);
  }
  if (e.num_at_barrier != 0 && e.num_at_barrier == e.num_threads - e.num_done) ReleaseBarrier(e);
}

// What every fiber runs, over and over: threads that have not started.
void ThreadMain() {
  Fiber::Started();
  Engine& e = GetEngine();
  Fiber* const self = e.running;
  for (;;) {
    while (e.num_started < e.num_threads) {
      const int thread = e.start_order[e.num_started++];
      e.threads[thread].fiber = self;
      SetCurrent(e, thread);
      e.races.ThreadBegins();
      e.kernel->thread(e.kernel->arguments);
      e.races.ThreadEnds();
      ThreadEnds(e, thread);
      if (kThreadSanitizer || !e.ready.empty()) break;
    }
    if (!kThreadSanitizer) e.free_fibers[e.num_free_fibers++] = self;
    const int next = e.ready.Take(e.order, e.current, e.random);
    if (next >= 0) {
      SetCurrent(e, next);
      SwitchTo(e, *e.threads[next].fiber);
    } else {
      SwitchTo(e, e.host);
    }
  }
}

void BeginBlock(Engine& e) {
  ++e.block_serial;
  ++e.statistics.blocks;
  e.num_started = e.num_done = e.num_at_barrier = 0;
  e.current = -1;
  e.ready.Clear();
  for (int t = 0; t < e.num_threads; ++t) e.threads[t].state = ThreadState::kNew;
  for (int warp = 0; warp < kMaxWarps; ++warp) {
    e.lanes_waiting[warp] = 0;
    const int lanes = std::clamp(e.num_threads - warp * kLanes, 0, kLanes);
    e.lanes_live[warp] = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  }
  if (e.order == ThreadOrder::kRandom) {
    for (int i = e.num_threads - 1; i > 0; --i) {
      std::swap(e.start_order[i], e.start_order[e.random.Below(static_cast<uint64_t>(i) + 1)]);
    }
  }
  e.shared.BeginBlock(e.shared_limit);
  e.static_bytes = 0;
  e.dynamic_shared = nullptr;
  e.races.BeginBlock();
}

bool HasFailed(const Engine& e) { return e.failure[0] != 0; }

void TellOfDeadlock(Engine& e) {
  int in_warp = 0;
  const Thread* example = nullptr;
  for (int t = 0; t < e.num_threads; ++t) {
    if (e.threads[t].state != ThreadState::kInWarp) continue;
    ++in_warp;
    example = &e.threads[t];
  }
  std::snprintf(e.failure, sizeof(e.failure),
                "deadlock: %d threads exited, %d wait at __syncthreads(), "
                "%d in warp collectives (mask %08x)",
                e.num_done, e.num_at_barrier, in_warp, example == nullptr ? 0 : example->mask);
}

void RunBlock(Engine& e) {
  BeginBlock(e);
  while (!HasFailed(e) && e.num_done < e.num_threads) {
    const int next = e.ready.Take(e.order, e.current, e.random);
    if (next >= 0) {
      SetCurrent(e, next);
      SwitchTo(e, *e.threads[next].fiber);
    } else if (e.num_started < e.num_threads) {
      SwitchTo(e, *FreeFiber(e));
    } else {
      break;
    }
  }
  e.races.EnterHost();
  e.statistics.threads += static_cast<uint64_t>(e.num_done);
  if (!HasFailed(e) && e.num_done < e.num_threads) TellOfDeadlock(e);
  if (!HasFailed(e)) return;
  e.races.AbandonBlock();
  e.num_free_fibers = 0;
  for (int i = 0; i < kMaxFibers; ++i) {
    if (!e.fibers[i].created()) continue;
    e.fibers[i].Restart(ThreadMain, i);
    if (!kThreadSanitizer) e.free_fibers[e.num_free_fibers++] = &e.fibers[i];
  }
}

Engine* NewEngine() {
  void* memory =
      mmap(nullptr, sizeof(Engine), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("emulated CUDA device: engine");
    std::abort();
  }
  return new (memory) Engine;
}

}  // namespace

Engine& GetEngine() {
  static Engine& engine = *NewEngine();
  return engine;
}

void Fail(const char* format, ...) {
  Engine& e = GetEngine();
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(e.failure, sizeof(e.failure), format, arguments);
  va_end(arguments);
  SwitchTo(e, e.host);
  std::abort();  // nothing switches back to a fiber that failed
}

void MakeReady(Engine& e, int thread) {
  e.threads[thread].state = ThreadState::kReady;
  e.ready.Add(thread);
}

void WaitForTurn(Engine& e) {
  const int self = e.current;
  if (e.threads[self].state == ThreadState::kReady && e.order == ThreadOrder::kForward) {
    e.ready.Remove(self);  // the last to arrive goes straight on
    return;
  }
  const bool start_one =
      e.num_started < e.num_threads &&
      (e.ready.empty() || (e.order == ThreadOrder::kRandom && e.random.Below(2) == 0));
  if (start_one) {
    SwitchTo(e, *FreeFiber(e));
    return;
  }
  const int next = e.ready.Take(e.order, self, e.random);
  if (next < 0) {
    SwitchTo(e, e.host);  // nothing can go on; the host says why
    return;
  }
  SetCurrent(e, next);
  SwitchTo(e, *e.threads[next].fiber);
}

void* SharedVariable::Resolve() {
  Engine& e = GetEngine();
  if (block == e.block_serial) return where;
  e.static_bytes += bytes;
  where = e.static_bytes > kStaticSharedBytes ? nullptr : e.shared.Take(bytes, align);
  if (where == nullptr) {
    Fail("'%s' of %zu bytes does not fit the shared memory of the block (%zu in use)", name, bytes,
         e.shared.used());
  }
  block = e.block_serial;
  return where;
}

void* DynamicShared() {
  Engine& e = GetEngine();
  if (e.dynamic_shared != nullptr) return e.dynamic_shared;
  e.dynamic_shared = e.shared.Take(e.dynamic_bytes, 16);
  if (e.dynamic_shared == nullptr) {
    Fail("dynamic shared memory of %zu bytes does not fit beside the static %zu", e.dynamic_bytes,
         e.static_bytes);
  }
  return e.dynamic_shared;
}

void CheckAligned(const void* p, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(p) % bytes != 0) {
    Fail("misaligned access of %zu bytes at %p", bytes, p);
  }
}

std::string RunningThread() {
  const Engine& e = GetEngine();
  if (e.running == nullptr || e.running == &e.host) return "";
  char text[128];
  std::snprintf(text, sizeof(text), "block (%u,%u,%u), thread (%u,%u,%u)", blockIdx.x, blockIdx.y,
                blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  return text;
}

std::string RunGrid(const Grid& grid, const KernelCall& kernel, Statistics& statistics) {
  Engine& e = GetEngine();
  e.kernel = &kernel;
  e.num_threads = static_cast<int>(grid.block.x * grid.block.y * grid.block.z);
  e.dynamic_bytes = grid.dynamic_bytes;
  e.shared_limit = grid.shared_limit;
  e.order = grid.order;
  e.random = Random(grid.seed);
  e.failure[0] = 0;
  e.statistics = {};
  e.host.AdoptThread();
  e.running = &e.host;
  blockDim = grid.block;
  gridDim = grid.grid;
  const bool reverse = grid.order == ThreadOrder::kReverse;
  for (int t = 0; t < e.num_threads; ++t) {
    const unsigned i = static_cast<unsigned>(t);
    e.threads[t].index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                          i / (blockDim.x * blockDim.y)};
    e.start_order[t] = reverse ? e.num_threads - 1 - t : t;
  }
  if (kThreadSanitizer) {
    for (int i = 0; i < kMaxFibers; ++i) {
      if (i % kMaxThreads < e.num_threads && !e.fibers[i].created())
        e.fibers[i].Create(ThreadMain, i);
    }
  }
  e.races.BeginGrid(e.num_threads, grid.seed);
  const uint64_t blocks = uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  for (uint64_t i = 0; i < blocks && !HasFailed(e); ++i) {
    const uint64_t block = reverse ? blocks - 1 - i : i;
    blockIdx = {static_cast<unsigned>(block % gridDim.x),
                static_cast<unsigned>(block / gridDim.x % gridDim.y),
                static_cast<unsigned>(block / (uint64_t{gridDim.x} * gridDim.y))};
    RunBlock(e);
  }
  e.races.EndGrid();
  e.running = nullptr;
  statistics.kernels += 1;
  statistics.blocks += e.statistics.blocks;
  statistics.threads += e.statistics.threads;
  statistics.fibers += e.statistics.fibers;
  if (!HasFailed(e)) return "";
  char where[128];
  std::snprintf(where, sizeof(where), " in block (%u,%u,%u) of (%u,%u,%u), %d threads each",
                blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x, gridDim.y, gridDim.z, e.num_threads);
  return std::string(e.failure) + where;
}

}  // namespace halftone::emulation
