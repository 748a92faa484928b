// How many threads share a row (team.cuh). Also for host code, which g++ compiles.
#pragma once

#include <cstdint>

namespace halftone::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kTeamBlock = 256;          // threads of a block of teams
inline constexpr int64_t kEnoughBlocks = 1024;  // keep any GPU busy

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// For rows of n: of lanes while each gets at most `most` elements, one for every `few` of them;
// else of a block.
inline int TeamSize(int64_t n, int64_t few, int64_t most) {
  if (n > kWarp * most) return kTeamBlock;
  int size = 1;
  while (size < kWarp && size * few < n) size *= 2;
  return size;
}

}  // namespace halftone::cuda
