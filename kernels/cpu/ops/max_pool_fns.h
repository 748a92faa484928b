// Between the SIMD and the host half of simd_max_pool.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// A place of the other tensor: its first channel's element, and the offset in the window that links
// the two.
struct WindowPoint {
  int64_t element;
  int32_t offset;
};

// y and index of one window, all channels.
using PoolWindowFn = void (*)(const void* x, const WindowPoint* points, int count, int64_t channels,
                              void* y, void* index);
// dx of one position from the `count` windows that contain it.
using PoolPositionFn = void (*)(const void* dy, const void* index, const WindowPoint* windows,
                                int count, int64_t channels, void* dx);

struct MaxPoolFns {
  PoolWindowFn window;
  PoolPositionFn position;
};

}  // namespace halftone::kernels
