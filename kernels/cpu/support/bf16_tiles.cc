#include "halftone/kernels/cpu/support/bf16_tiles.h"

#include "halftone/core/check.h"
#include "halftone/core/cpu_features.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
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

}  // namespace

bool HasBf16Tiles() {
  static const bool lent = CpuFeatures::Get().amx_bf16 && AskForTileData();
  return lent;
}

Bf16Tiles::Bf16Tiles() {
  const TileConfig config;
  __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

Bf16Tiles::~Bf16Tiles() { __asm__ volatile("tilerelease" ::); }

void MultiplyBf16(const Bf16Product& p) { MultiplyAll<false>(p); }
void AddBf16Product(const Bf16Product& p) { MultiplyAll<true>(p); }

#else

bool HasBf16Tiles() { return false; }
Bf16Tiles::Bf16Tiles() { HT_CHECK(false, "no AMX here"); }
Bf16Tiles::~Bf16Tiles() = default;
void MultiplyBf16(const Bf16Product& /*p*/) { HT_CHECK(false, "no AMX here"); }
void AddBf16Product(const Bf16Product& /*p*/) { HT_CHECK(false, "no AMX here"); }

#endif
}  // namespace halftone::kernels
