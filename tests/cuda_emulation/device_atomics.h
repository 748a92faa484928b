// Atomics and fences. Relaxed, as on the device: ThreadSanitizer takes no order from them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "halftone/tests/cuda_emulation/device_hooks.h"

namespace halftone::emulation {

// Stores update(old) and returns old.
template <typename T, typename Update>
T AtomicUpdate(T* address, Update update) {
  CheckAligned(address, sizeof(T));
  T before;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  T after = update(before);
  while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
    after = update(before);
  }
  return before;
}

}  // namespace halftone::emulation

#define HT_EMULATION_ATOMIC(name, T, expression)                                  \
  inline T name(T* address, T value) {                                            \
    return halftone::emulation::AtomicUpdate(                                     \
        address, [value]([[maybe_unused]] T before) -> T { return expression; }); \
  }
// Signed sums wrap.
HT_EMULATION_ATOMIC(atomicAdd, int,
                    static_cast<int>(static_cast<unsigned>(before) + static_cast<unsigned>(value)))
HT_EMULATION_ATOMIC(atomicAdd, unsigned, before + value)
HT_EMULATION_ATOMIC(atomicAdd, unsigned long long, before + value)
HT_EMULATION_ATOMIC(atomicAdd, float, before + value)
HT_EMULATION_ATOMIC(atomicAdd, double, before + value)
HT_EMULATION_ATOMIC(atomicAdd, __half, before + value)
HT_EMULATION_ATOMIC(atomicAdd, __nv_bfloat16, before + value)
HT_EMULATION_ATOMIC(atomicSub, int,
                    static_cast<int>(static_cast<unsigned>(before) - static_cast<unsigned>(value)))
HT_EMULATION_ATOMIC(atomicSub, unsigned, before - value)
HT_EMULATION_ATOMIC(atomicExch, int, value)
HT_EMULATION_ATOMIC(atomicExch, unsigned, value)
HT_EMULATION_ATOMIC(atomicExch, unsigned long long, value)
HT_EMULATION_ATOMIC(atomicMax, int, std::max(before, value))
HT_EMULATION_ATOMIC(atomicMax, unsigned, std::max(before, value))
HT_EMULATION_ATOMIC(atomicMax, unsigned long long, std::max(before, value))
HT_EMULATION_ATOMIC(atomicMax, long long, std::max(before, value))
HT_EMULATION_ATOMIC(atomicMin, int, std::min(before, value))
HT_EMULATION_ATOMIC(atomicMin, unsigned, std::min(before, value))
HT_EMULATION_ATOMIC(atomicMin, unsigned long long, std::min(before, value))
HT_EMULATION_ATOMIC(atomicMin, long long, std::min(before, value))
HT_EMULATION_ATOMIC(atomicOr, int, before | value)
HT_EMULATION_ATOMIC(atomicOr, unsigned, before | value)
HT_EMULATION_ATOMIC(atomicAnd, int, before& value)
HT_EMULATION_ATOMIC(atomicAnd, unsigned, before& value)
#undef HT_EMULATION_ATOMIC

#define HT_EMULATION_ATOMIC_CAS(T)                                               \
  inline T atomicCAS(T* address, T expected, T value) {                          \
    return halftone::emulation::AtomicUpdate(                                    \
        address, [=](T before) { return before == expected ? value : before; }); \
  }
HT_EMULATION_ATOMIC_CAS(int)
HT_EMULATION_ATOMIC_CAS(unsigned)
HT_EMULATION_ATOMIC_CAS(unsigned long long)
HT_EMULATION_ATOMIC_CAS(unsigned short)
#undef HT_EMULATION_ATOMIC_CAS

// The threads of the emulated device run on one host thread.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
