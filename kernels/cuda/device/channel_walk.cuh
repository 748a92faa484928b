// One thread's part of a tensor with channels. Two forms:
//   kColumns (inner 1)  a block takes a tile of up to 32 packs of neighbouring channels and a chunk
//                       of the lines; a thread goes down N channels
//   otherwise           a block takes a chunk of one channel; its threads stride over packs of N
//                       elements
#pragma once

#include "halftone/kernels/cuda/device/channel_cut.h"
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/device/team_size.h"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"

namespace halftone::cuda {

template <int N, bool kColumns>
struct ChannelWalk {
  // Channels of a thread; element e of a pack belongs to channel + (kColumns ? e : 0).
  static constexpr int kChannels = kColumns ? N : 1;

  __device__ ChannelWalk(const ChannelCut& c, int64_t block) : cut(c) {
    const int thread = static_cast<int>(threadIdx.x);
    int64_t units = cut.lines;
    if constexpr (kColumns) {
      const Division place = Divide(block, cut.by_tiles);
      chunk = place.quotient;
      lane = thread % cut.lanes;
      row = thread / cut.lanes;
      rows = kTeamBlock / cut.lanes;
      channel = (place.rest * cut.lanes + lane) * N;
    } else {
      const Division place = Divide(block, cut.by_chunks);
      channel = place.quotient;
      chunk = place.rest;
      lane = 0;
      row = thread;
      rows = kTeamBlock;
      units /= N;
    }
    first = Divide(units * chunk, cut.by_chunks).quotient;
    end = Divide(units * (chunk + 1), cut.by_chunks).quotient;
  }
  // Whether the thread has channels.
  __device__ bool active() const { return channel < cut.channels; }
  // Element at which pack i starts. The thread's are first + row, + rows, ... below end.
  __device__ int64_t Offset(int64_t i) const {
    if constexpr (kColumns) {
      return i * cut.channels + channel;
    } else {
      const Division place = Divide(i, cut.by_packs);
      return (place.quotient * cut.channels + channel) * cut.inner + place.rest * N;
    }
  }

  // The thread's packs from pack `i` on, which moves behind them, in their order and at most `most`:
  // load(offset) gives what is read there, use(offset, loaded) does the rest. kAtOnce of the loads are on
  // their way before the first is used; `most` divides by it.
  template <int kAtOnce, typename Load, typename Use>
  __device__ void ForPacks(int64_t& i, int64_t most, const Load& load, const Use& use) const {
    using Loaded = decltype(load(int64_t{0}));
    for (int64_t done = 0; done < most && i < end;) {
      if (i + (kAtOnce - 1) * int64_t{rows} < end) {
        int64_t at[kAtOnce];
        Loaded loaded[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          at[k] = Offset(i + k * int64_t{rows});
          loaded[k] = load(at[k]);
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) use(at[k], loaded[k]);
        i += kAtOnce * int64_t{rows};
        done += kAtOnce;
      } else {
        const int64_t at = Offset(i);
        use(at, load(at));
        i += rows;
        ++done;
      }
    }
  }
  template <int kAtOnce, typename Load, typename Use>
  __device__ void ForPacks(const Load& load, const Use& use) const {
    int64_t i = first + row;
    ForPacks<kAtOnce>(i, end, load, use);
  }

  const ChannelCut& cut;
  int64_t chunk, channel, first, end;
  int lane, row, rows;
};

// Of a chunk of any channel.
template <int N, bool kColumns>
__device__ int64_t ElementsOfChunk(const ChannelCut& cut, int64_t chunk) {
  const int64_t width = kColumns ? 1 : N, units = cut.lines / width;
  return (Divide(units * (chunk + 1), cut.by_chunks).quotient -
          Divide(units * chunk, cut.by_chunks).quotient) *
         width;
}

// Values of N channels, or one value N times.
template <int N, bool kColumns, typename V>
struct PerChannel {
  __device__ PerChannel(const V* values, int64_t channel) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) value[i] = values[channel + i];
  }
  __device__ V operator[](int i) const { return value[kColumns ? i : 0]; }
  static constexpr int kCount = kColumns ? N : 1;
  V value[kCount];
};

inline dim3 ChannelGrid(const ChannelCut& cut) {
  const int64_t blocks = cut.blocks(), most = int64_t{1} << 24;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

// f(N, kColumns) as integral constants.
template <typename T, typename F>
cudaError_t ForChannelForm(const ChannelCut& cut, const F& f) {
  using Whole = std::integral_constant<int, static_cast<int>(16 / sizeof(T))>;
  using One = std::integral_constant<int, 1>;
  if (cut.inner == 1) {
    return cut.packed ? f(Whole(), std::true_type()) : f(One(), std::true_type());
  }
  return cut.packed ? f(Whole(), std::false_type()) : f(One(), std::false_type());
}

}  // namespace halftone::cuda
