#include "halftone/kernels/cpu/support/bf16_tiles.h"

#include "halftone/core/check.h"
#include "halftone/core/cpu_features.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace halftone::kernels {
#if defined(__x86_64__) && defined(__linux__)
namespace {

bool AskForTileData() {
  constexpr int kArchReqXcompPerm = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) == 0;
}

constexpr int64_t kAmxRows = 16, kAmxDepth = 32;

// What LDTILECFG reads: palette 1, eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// In assembly: the compilers' own functions promise too little about memory (g++ 12 may move a store
// behind a load of a tile). Tiles 0 to 3 are of c, 4 and 5 of a, 6 and 7 of b.
#define HALFTONE_LOAD_TILE(tile, at, bytes)                                                       \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(at), "r"(static_cast<int64_t>(bytes)) \
                   : "memory")
#define HALFTONE_STORE_TILE(tile, at, bytes)                         \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(at), \
                   "r"(static_cast<int64_t>(bytes))                  \
                   : "memory")
#define HALFTONE_ZERO_TILE(tile) __asm__ volatile("tilezero %%tmm" #tile ::)
#define HALFTONE_ADD_TILES(c, a, b) \
  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

// kRows by kColumns tiles of c: with two by two each tile of a and b that is read is used twice.
template <int kRows, int kColumns, bool kAdd>
void MultiplyTiles(const Bf16Product& p, const BF16* a, const uint32_t* b, float* c) {
  constexpr bool kLow = kRows > 1, kRight = kColumns > 1;
  const int64_t a_bytes = p.a_stride * 2, b_bytes = p.b_stride * 4, c_bytes = p.c_stride * 4;
  float* const low = c + kAmxRows * p.c_stride;
  if constexpr (kAdd) {
    HALFTONE_LOAD_TILE(0, c, c_bytes);
    if constexpr (kRight) HALFTONE_LOAD_TILE(1, c + kAmxRows, c_bytes);
    if constexpr (kLow) HALFTONE_LOAD_TILE(2, low, c_bytes);
    if constexpr (kLow && kRight) HALFTONE_LOAD_TILE(3, low + kAmxRows, c_bytes);
  } else {
    HALFTONE_ZERO_TILE(0);
    HALFTONE_ZERO_TILE(1);
    HALFTONE_ZERO_TILE(2);
    HALFTONE_ZERO_TILE(3);
  }
  for (int64_t k = 0; k < p.depth;
       k += kAmxDepth, a += kAmxDepth, b += kAmxDepth / 2 * p.b_stride) {
    HALFTONE_LOAD_TILE(4, a, a_bytes);
    HALFTONE_LOAD_TILE(6, b, b_bytes);
    HALFTONE_ADD_TILES(0, 4, 6);
    if constexpr (kRight) {
      HALFTONE_LOAD_TILE(7, b + kAmxRows, b_bytes);
      HALFTONE_ADD_TILES(1, 4, 7);
    }
    if constexpr (kLow) {
      HALFTONE_LOAD_TILE(5, a + kAmxRows * p.a_stride, a_bytes);
      HALFTONE_ADD_TILES(2, 5, 6);
    }
    if constexpr (kLow && kRight) HALFTONE_ADD_TILES(3, 5, 7);
  }
  HALFTONE_STORE_TILE(0, c, c_bytes);
  if constexpr (kRight) HALFTONE_STORE_TILE(1, c + kAmxRows, c_bytes);
  if constexpr (kLow) HALFTONE_STORE_TILE(2, low, c_bytes);
  if constexpr (kLow && kRight) HALFTONE_STORE_TILE(3, low + kAmxRows, c_bytes);
}

#undef HALFTONE_LOAD_TILE
#undef HALFTONE_STORE_TILE
#undef HALFTONE_ZERO_TILE
#undef HALFTONE_ADD_TILES

template <int kRows, bool kAdd>
void MultiplyStrip(const Bf16Product& p, int64_t row) {
  const BF16* const a = p.a + row * p.a_stride;
  float* const c = p.c + row * p.c_stride;
  int64_t j = 0;
  for (; j + 2 * kAmxRows <= p.columns; j += 2 * kAmxRows) {
    MultiplyTiles<kRows, 2, kAdd>(p, a, p.b + j, c + j);
  }
  if (j < p.columns) MultiplyTiles<kRows, 1, kAdd>(p, a, p.b + j, c + j);
}

template <bool kAdd>
void MultiplyAll(const Bf16Product& p) {
  int64_t row = 0;
  for (; row + 2 * kAmxRows <= p.rows; row += 2 * kAmxRows) MultiplyStrip<2, kAdd>(p, row);
  if (row < p.rows) MultiplyStrip<1, kAdd>(p, row);
}

bool HasAmx() {
  static const bool lent = CpuFeatures::Get().amx_bf16 && AskForTileData();
  return lent;
}

// AVX512-BF16: a lane adds the two products of a word of b, a column of two rows, with a word of a.

#define HALFTONE_DOTS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
constexpr int64_t kDotRows = 8, kDotLanes = 16;

// kDotRows rows by kVectors vectors of c: with two, 16 sums are under way, and each vector of b is used
// eight times.
template <int kVectors, bool kAdd>
HALFTONE_DOTS void DotTile(const Bf16Product& p, const BF16* a, const uint32_t* b, float* c) {
  __m512 sums[kDotRows][kVectors];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kDotRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = kAdd ? _mm512_loadu_ps(c + r * p.c_stride + v * kDotLanes) : _mm512_setzero_ps();
    }
  }
  for (int64_t k = 0; k < p.depth; k += 2, a += 2, b += p.b_stride) {
    __m512i right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = _mm512_loadu_si512(b + v * kDotLanes);
#pragma GCC unroll 8
    for (int64_t r = 0; r < kDotRows; ++r) {
      int32_t two;
      __builtin_memcpy(&two, a + r * p.a_stride, sizeof(two));
      const __m512i left = _mm512_set1_epi32(two);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], reinterpret_cast<__m512bh>(left),
                                      reinterpret_cast<__m512bh>(right[v]));
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kDotRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(c + r * p.c_stride + v * kDotLanes, sums[r][v]);
    }
  }
}

#undef HALFTONE_DOTS

template <bool kAdd>
void MultiplyByDots(const Bf16Product& p) {
  for (int64_t row = 0; row < p.rows; row += kDotRows) {
    const BF16* const a = p.a + row * p.a_stride;
    float* const c = p.c + row * p.c_stride;
    int64_t j = 0;
    for (; j + 2 * kDotLanes <= p.columns; j += 2 * kDotLanes) {
      DotTile<2, kAdd>(p, a, p.b + j, c + j);
    }
    if (j < p.columns) DotTile<1, kAdd>(p, a, p.b + j, c + j);
  }
}

bool HasFastDots() {
  const CpuFeatures& features = CpuFeatures::Get();
  return features.level() == SimdLevel::kAvx512 && features.avx512_bf16 && features.fast_bf16;
}

}  // namespace

bool HasBf16Tiles() { return HasAmx() || HasFastDots(); }

Bf16Tiles::Bf16Tiles() {
  if (!HasAmx()) return;
  const TileConfig config;
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

Bf16Tiles::~Bf16Tiles() {
  if (HasAmx()) __asm__ volatile("tilerelease" ::);
}

void MultiplyBf16(const Bf16Product& p) {
  HasAmx() ? MultiplyAll<false>(p) : MultiplyByDots<false>(p);
}
void AddBf16Product(const Bf16Product& p) {
  HasAmx() ? MultiplyAll<true>(p) : MultiplyByDots<true>(p);
}

#else

bool HasBf16Tiles() { return false; }
Bf16Tiles::Bf16Tiles() { HT_CHECK(false, "no products of bf16 here"); }
Bf16Tiles::~Bf16Tiles() = default;
void MultiplyBf16(const Bf16Product& /*p*/) { HT_CHECK(false, "no products of bf16 here"); }
void AddBf16Product(const Bf16Product& /*p*/) { HT_CHECK(false, "no products of bf16 here"); }

#endif
}  // namespace halftone::kernels
