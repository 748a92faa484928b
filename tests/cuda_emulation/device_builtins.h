// Built-in variables, barriers, votes and shuffles. Names and meanings are CUDA's.
#pragma once

#include <vector_types.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "halftone/tests/cuda_emulation/device_hooks.h"

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

inline void __syncthreads(int line = __builtin_LINE()) {
  halftone::emulation::BlockBarrier(halftone::emulation::BarrierKind::kPlain, 0, line);
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return halftone::emulation::BlockBarrier(halftone::emulation::BarrierKind::kOr, predicate, line);
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return halftone::emulation::BlockBarrier(halftone::emulation::BarrierKind::kAnd, predicate, line);
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return halftone::emulation::BlockBarrier(halftone::emulation::BarrierKind::kCount, predicate,
                                           line);
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  halftone::emulation::WarpCollective(halftone::emulation::WarpKind::kSync, mask, 0, 0);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(halftone::emulation::WarpCollective(
      halftone::emulation::WarpKind::kBallot, mask, predicate != 0 ? 1 : 0, 0));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}
inline unsigned __activemask() { return halftone::emulation::ActiveMask(); }

namespace halftone::emulation {

// The value of lane `source` of this warp, which is in [0, 32).
template <typename T>
T Shuffle(unsigned mask, T value, int source) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = WarpCollective(WarpKind::kShuffle, mask, bits, source);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace halftone::emulation

// `width` is a power of two up to 32; a lane whose source lies outside of its segment gets its own
// value.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  const int first = halftone::emulation::LaneId() & ~(width - 1);
  return halftone::emulation::Shuffle(mask, value, first | (lane & (width - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  const int self = halftone::emulation::LaneId(), source = self ^ lane_mask;
  return halftone::emulation::Shuffle(mask, value, source > (self | (width - 1)) ? self : source);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int self = halftone::emulation::LaneId(), source = self + static_cast<int>(delta);
  return halftone::emulation::Shuffle(mask, value, source > (self | (width - 1)) ? self : source);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int self = halftone::emulation::LaneId(), source = self - static_cast<int>(delta);
  return halftone::emulation::Shuffle(mask, value, source < (self & ~(width - 1)) ? self : source);
}

// One store of the whole, as `st.wb` is.
template <typename T>
void __stwb(T* p, T value) {
  halftone::emulation::CheckAligned(p, sizeof(T));
  std::memcpy(static_cast<void*>(p), &value, sizeof(T));
}
