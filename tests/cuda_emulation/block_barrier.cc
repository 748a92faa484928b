// __syncthreads and its kinds.
#include "halftone/tests/cuda_emulation/engine.h"

namespace halftone::emulation {
namespace {

int Combined(const Engine& e) {
  int result = e.barrier_kind == BarrierKind::kAnd ? 1 : 0;
  for (int t = 0; t < e.num_threads; ++t) {
    const Thread& thread = e.threads[t];
    if (thread.state != ThreadState::kAtBarrier) continue;
    const int set = thread.predicate != 0 ? 1 : 0;
    if (e.barrier_kind == BarrierKind::kOr) result |= set;
    if (e.barrier_kind == BarrierKind::kAnd) result &= set;
    if (e.barrier_kind == BarrierKind::kCount) result += set;
  }
  return result;
}

// CUDA leaves undefined what happens where threads wait at different barriers, or some have exited.
void CheckOneBarrier(const Engine& e) {
  int line = -1;
  for (int t = 0; t < e.num_threads; ++t) {
    const Thread& thread = e.threads[t];
    if (thread.state != ThreadState::kAtBarrier) continue;
    if (line != -1 && line != thread.line) {
      Fail("divergent barrier: threads of one block wait at the __syncthreads() of lines %d and %d",
           line, thread.line);
    }
    line = thread.line;
  }
  if (e.num_done != 0) {
    Fail(
        "divergent barrier: the __syncthreads() of line %d is reached by %d of %d threads, "
        "the others have exited",
        line, e.num_at_barrier, e.num_threads);
  }
}

}  // namespace

void ReleaseBarrier(Engine& e) {
  CheckOneBarrier(e);
  const int result = Combined(e);
  for (int t = 0; t < e.num_threads; ++t) {
    if (e.threads[t].state != ThreadState::kAtBarrier) continue;
    e.threads[t].barrier_result = result;
    MakeReady(e, t);
  }
  e.num_at_barrier = 0;
  e.races.BlockComplete();
}

int BlockBarrier(BarrierKind kind, int predicate, int line) {
  Engine& e = GetEngine();
  Thread& self = e.threads[e.current];
  self.predicate = predicate;
  self.line = line;
  self.state = ThreadState::kAtBarrier;
  e.barrier_kind = kind;
  ++e.num_at_barrier;
  const int phase = e.races.ArriveAtBlock();
  if (e.num_at_barrier == e.num_threads - e.num_done) ReleaseBarrier(e);
  WaitForTurn(e);
  e.races.LeaveBlock(phase);
  return self.barrier_result;
}

}  // namespace halftone::emulation
