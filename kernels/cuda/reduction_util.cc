#include <algorithm>

#include "halftone/kernels/cuda/reduction.h"
#include "halftone/kernels/cuda/team_size.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kChunkElements = 8192, kThreadRows = 16;

}  // namespace

ReduceCut CutReduction(const ReduceShape& s, DType x) {
  ReduceCut cut{};
  cut.chunks = cut.team = cut.lanes = 1;
  cut.tiles = 1;
  const int64_t pack = std::min<int64_t>(16 / static_cast<int64_t>(SizeOf(x)), kReduceMaxPack);
  const int64_t n = s.reduced * s.rows;
  if (s.width == 1) {
    cut.packed = s.rows % pack == 0 || (s.kept == 1 && s.reduced == 1);
    cut.team = TeamSize(n, /*few=*/cut.packed ? pack : 1, /*most=*/64);
    if (cut.team > kWarp) {
      cut.chunks = std::clamp<int64_t>(kEnoughBlocks / s.kept, 1, CeilDiv(n, kChunkElements));
    }
  } else {
    cut.packed = s.width % pack == 0;
    const int64_t packs = cut.packed ? s.width / pack : s.width;
    while (cut.lanes < kWarp && cut.lanes < packs) cut.lanes *= 2;
    cut.tiles = CeilDiv(packs, cut.lanes);
    const int64_t most = n * cut.lanes / kTeamBlock / kThreadRows;
    cut.chunks =
        std::clamp<int64_t>(kEnoughBlocks / (s.kept * cut.tiles), 1, std::max<int64_t>(1, most));
  }
  cut.by_chunks = WideDivisorOf(cut.chunks);
  cut.by_tiles = WideDivisorOf(cut.tiles);
  cut.by_rows =
      WideDivisorOf(s.width == 1 && cut.packed ? std::max<int64_t>(1, s.rows / pack) : s.rows);
  return cut;
}

}  // namespace halftone::cuda
