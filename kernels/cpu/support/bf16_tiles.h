// Products of small bf16 matrices in the caches, summed in f32: by AMX's tiles, or by AVX512-BF16's dot
// products where those are worth it.
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::kernels {

// Whether there is either, unless HALFTONE_SIMD or HALFTONE_BF16 excludes it: AMX whose registers the
// system lends this process, for which the first call asks, or AVX512-BF16 that is fast (cpu_features.h).
bool HasBf16Tiles();

// While one lives, its thread can multiply. The library's kernels set AMX's registers up on their own,
// each time. Requires: HasBf16Tiles().
class Bf16Tiles {
 public:
  Bf16Tiles();
  ~Bf16Tiles();
  Bf16Tiles(const Bf16Tiles&) = delete;
  Bf16Tiles& operator=(const Bf16Tiles&) = delete;
};

// c [rows, columns] of a [rows, depth] and b [depth, columns]; strides in elements. Of b two rows
// lie in one, its element (k, j) in the lower half of the word (k / 2, j) if k is even, else in the
// upper one. Requires: rows and columns are multiples of 16, depth of 32.
struct Bf16Product {
  int64_t rows, columns, depth;
  const BF16* a;
  int64_t a_stride;
  const uint32_t* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
};

// c = a b, and c += a b. Requires: a Bf16Tiles in this thread.
void MultiplyBf16(const Bf16Product& p);
void AddBf16Product(const Bf16Product& p);

}  // namespace halftone::kernels
