// Collectives of a warp: lanes deposit their operands, the last to arrive computes all results.
#include <bit>

#include "halftone/tests/cuda_emulation/engine.h"

namespace halftone::emulation {
namespace {

void CheckAgreement(const Engine& e, int warp, unsigned lanes) {
  const Thread* first = nullptr;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const Thread& lane = e.threads[warp * kLanes + std::countr_zero(rest)];
    if (first == nullptr) first = &lane;
    if (lane.mask != first->mask || lane.kind != first->kind) {
      Fail("warp %d: lanes %d and %d disagree on a collective (masks %08x and %08x)", warp,
           std::countr_zero(lanes), std::countr_zero(rest), first->mask, lane.mask);
    }
  }
}

}  // namespace

void TryWarp(Engine& e, int warp, unsigned mask) {
  const unsigned lanes = mask & e.lanes_live[warp];
  if (lanes == 0 || (e.lanes_waiting[warp] & lanes) != lanes) return;
  CheckAgreement(e, warp, lanes);
  Thread* const threads = e.threads + warp * kLanes;
  uint64_t ballot = 0;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (threads[lane].value != 0) ballot |= uint64_t{1} << lane;
  }
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Thread& thread = threads[lane];
    thread.warp_result = ballot;
    if (thread.kind == WarpKind::kShuffle) {
      if ((lanes >> thread.source & 1u) == 0) {
        Fail("warp %d: lane %d shuffles from lane %d, which is not in mask %08x or has exited",
             warp, lane, thread.source, mask);
      }
      thread.warp_result = threads[thread.source].value;
    }
    MakeReady(e, warp * kLanes + lane);
  }
  e.lanes_waiting[warp] &= ~lanes;
  e.races.WarpComplete(warp);
}

uint64_t WarpCollective(WarpKind kind, unsigned mask, uint64_t value, int source_lane) {
  Engine& e = GetEngine();
  const int warp = e.current / kLanes, lane = e.current % kLanes;
  if ((mask >> lane & 1u) == 0) {
    Fail("warp %d: lane %d calls a collective whose mask %08x leaves it out", warp, lane, mask);
  }
  Thread& self = e.threads[e.current];
  self.value = value;
  self.source = source_lane & (kLanes - 1);
  self.mask = mask;
  self.kind = kind;
  self.state = ThreadState::kInWarp;
  e.lanes_waiting[warp] |= 1u << lane;
  // Of the collectives only __syncwarp orders memory.
  const int phase = kind == WarpKind::kSync ? e.races.ArriveAtWarp(warp) : 0;
  TryWarp(e, warp, mask);
  WaitForTurn(e);
  if (kind == WarpKind::kSync) e.races.LeaveWarp(warp, phase);
  return self.warp_result;
}

unsigned ActiveMask() {
  const Engine& e = GetEngine();
  return e.lanes_live[e.current / kLanes];
}

int LaneId() { return GetEngine().current % kLanes; }

}  // namespace halftone::emulation
