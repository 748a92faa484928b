// Lines: what a softmax or a loss runs along, elements of one line `inner` apart. Lines that lie
// beside each other are worked on together with a line a lane: a strip. Where many lie beside each
// other, a strip is a part of the tensor, read row by row in pieces that hardware prefetches.
// Otherwise lines are copied into a tile of f32 with a line a column, and copied back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "halftone/core/align.h"
#include "halftone/core/threads.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::kernels {

inline constexpr int64_t kMaxTileWidth = 512;

// x as [outer, size, inner]. Line l is [l / inner, :, l % inner].
struct LineShape {
  LineShape(const Shape& x, int64_t axis_attr) {
    const int axis = ops::CheckedAxis(axis_attr, x.rank());
    for (int i = 0; i < axis; ++i) outer *= x[i];
    size = x[axis];
    for (int i = axis + 1; i < x.rank(); ++i) inner *= x[i];
  }
  int64_t lines() const { return outer * inner; }
  // Whether strips lie in the tensor.
  bool in_place() const { return inner >= 64; }
  // Element at which a line starts.
  int64_t Start(int64_t line) const { return line / inner * size * inner + line % inner; }

  int64_t outer = 1, size = 1, inner = 1;
};

// `count` lines beside each other; element k of each is `stride` behind element k - 1.
struct Strip {
  int64_t size, stride, count;
};

// Deals the lines out to threads, tile by tile. A tile that is copied holds all of its lines'
// elements, so long lines make it narrow: it is to stay in the second-level cache.
class LineTiles {
 public:
  // `arrays` of f32 to a tile that is copied.
  LineTiles(const LineShape& shape, int64_t arrays)
      : shape_(shape),
        width_(shape.in_place()     ? StripWidth(shape.lines())
               : shape.size <= 2048 ? 64
               : shape.size <= 4096 ? 32
                                    : 16),
        tiles_((shape.lines() + width_ - 1) / width_),
        slots_(std::min<int64_t>(NumThreads(), tiles_)),
        slot_elements_(shape.in_place() ? 0 : arrays * shape.size * width_) {}

  int64_t width() const { return width_; }
  size_t workspace_bytes() const {
    return static_cast<size_t>(slots_ * slot_elements_) * sizeof(float);
  }

  // call(first line, count of lines, arrays)
  template <typename Call>
  void Run(void* workspace, const Call& call) const {
    constexpr int64_t kWorthAThread = 2048;  // elements
    const bool shared = shape_.lines() * shape_.size > kWorthAThread;
    ParallelFor(0, slots_, shared ? 1 : slots_, [&](int64_t first_slot, int64_t last_slot) {
      for (int64_t slot = first_slot; slot < last_slot; ++slot) {
        float* arrays = static_cast<float*>(workspace) + slot * slot_elements_;
        const int64_t end = tiles_ * (slot + 1) / slots_;
        for (int64_t tile = tiles_ * slot / slots_; tile < end; ++tile) {
          const int64_t first = tile * width_;
          call(first, std::min(width_, shape_.lines() - first), arrays);
        }
      }
    });
  }

 private:
  // Wide, for memory that is read in order, but a strip for each thread.
  static int64_t StripWidth(int64_t lines) {
    constexpr int64_t kUnit = 64;
    const int64_t share = (lines + NumThreads() - 1) / NumThreads();
    return std::clamp(AlignUp(share, kUnit), kUnit, kMaxTileWidth);
  }

  LineShape shape_;
  int64_t width_, tiles_, slots_, slot_elements_;
};

}  // namespace halftone::kernels
