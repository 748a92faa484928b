// How the elements of a tensor with channels are dealt out to blocks and threads
// (channel_walk.cuh).
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

// `inner` elements of a channel are neighbours. 1: whole lines of channels are (channels-last, or
// rank 2). `lines` elements in all belong to each channel.
struct ChannelCut {
  int64_t lines, channels, inner;
  bool packed;     // elements move in packs of 16 bytes
  int lanes;       // inner 1: threads of a block along the channels; the others along the lines
  int64_t tiles;   // inner 1: blocks along the channels
  int64_t chunks;  // blocks along the lines; 0 without lines
  WideDivisor by_chunks, by_tiles, by_packs;  // the last: the packs of a run of `inner`

  int64_t blocks() const { return chunks * (inner == 1 ? tiles : channels); }
};

// Depends on shape and dtype alone. Requires: channels >= 1, inner >= 1.
ChannelCut CutChannels(int64_t lines, int64_t channels, int64_t inner, DType dtype);

}  // namespace halftone::cuda
