// Philox4x32-10, a counter-based random generator: the same (key, counter) gives the same numbers
// on every backend. Source: Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011, section 3.3.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace halftone {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Ten rounds over one 128-bit counter.
PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key);

// The four words for group `group` of stream (seed, run): counter = {group lo, group hi, run lo,
// run hi}, key = seed.
PhiloxCounter PhiloxBlock(uint64_t seed, uint64_t run, uint64_t group);

// Uniform in [0, 1) with 24 bits: (word >> 8) * 2^-24.
inline float UniformFromBits(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// Two independent standard normal numbers from two words, by Box-Muller.
struct NormalPair {
  float first, second;
};
NormalPair NormalFromBits(uint32_t radius_word, uint32_t angle_word);

// A sequential generator over one stream, for initialisers and data shuffling.
class PhiloxStream {
 public:
  explicit PhiloxStream(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  uint32_t NextWord();
  float Uniform() { return UniformFromBits(NextWord()); }
  // Standard normal; two words give two of them.
  float Normal();
  // Uniform in [0, n) without modulo bias. Requires: n > 0.
  uint64_t Below(uint64_t n);

 private:
  uint64_t seed_, stream_, group_ = 0;
  PhiloxCounter block_{};
  int used_ = 4;
  bool has_spare_ = false;
  float spare_ = 0;
};

// A stable 64-bit hash of a name (FNV-1a), for seeds that follow module paths.
uint64_t HashName(const char* data, size_t size);

}  // namespace halftone
