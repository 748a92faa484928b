#include "halftone/kernels/cuda/device/channel_cut.h"

#include <algorithm>

#include "halftone/kernels/cuda/device/team_size.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kThreadPacks = 8;  // at least, so that results of chunks are few

}  // namespace

ChannelCut CutChannels(int64_t lines, int64_t channels, int64_t inner, DType dtype) {
  ChannelCut cut{};
  cut.lines = lines;
  cut.channels = channels;
  cut.inner = inner;
  cut.lanes = 1;
  cut.tiles = 1;
  const int64_t pack = 16 / static_cast<int64_t>(SizeOf(dtype));
  cut.packed = (inner == 1 ? channels : inner) % pack == 0;
  const int64_t width = cut.packed ? pack : 1;
  int64_t units = lines, threads = kTeamBlock, others = 1;
  if (inner == 1) {
    const int64_t packs = channels / width;
    while (cut.lanes < kWarp && cut.lanes < packs) cut.lanes *= 2;
    cut.tiles = CeilDiv(packs, cut.lanes);
    threads = kTeamBlock / cut.lanes;
    others = cut.tiles;
  } else {
    units = lines / width;
    others = channels;
  }
  if (lines > 0) {
    cut.chunks = std::clamp<int64_t>(kEnoughBlocks / others, 1,
                                     std::max<int64_t>(1, units / threads / kThreadPacks));
  }
  cut.by_chunks = WideDivisorOf(std::max<int64_t>(1, cut.chunks));
  cut.by_tiles = WideDivisorOf(cut.tiles);
  cut.by_packs = WideDivisorOf(inner / (inner == 1 ? 1 : width));
  return cut;
}

}  // namespace halftone::cuda
