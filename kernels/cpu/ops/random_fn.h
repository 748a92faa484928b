// Between the SIMD and the host half of simd_random.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

inline constexpr int64_t kRandomGroups = 64;  // of 4 words, at a time

// The words of the kRandomGroups groups from `group` on of the stream (seed, run).
using RandomWordsFn = void (*)(uint64_t seed, uint64_t run, uint64_t group, uint32_t* words);

}  // namespace halftone::kernels
