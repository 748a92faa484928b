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

// The channels of an image: `count` sheets, each with all positions of `channels` that lie side by side;
// `source` and `target` elements further is the next one.
struct PoolSheets {
  int64_t count = 1, channels = 1;
  int64_t source = 0, target = 0;
};

// y and index of one window, all channels; pointers are to the first sheet.
using PoolWindowFn = void (*)(const void* x, const WindowPoint* points, int count,
                              const PoolSheets& sheets, void* y, void* index);
// dx of one position from the `count` windows that contain it.
using PoolPositionFn = void (*)(const void* dy, const void* index, const WindowPoint* windows,
                                int count, const PoolSheets& sheets, void* dx);

struct MaxPoolFns {
  PoolWindowFn window;
  PoolPositionFn position;
};

}  // namespace halftone::kernels
