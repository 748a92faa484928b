// The host half of the kernels of recurrent networks: a layer's sizes, its steps in time, and the
// tiles of a step dealt out to threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "halftone/core/threads.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/cpu/simd/recurrence_fns.h"

namespace halftone::kernels {

class RecurrenceShape {
 public:
  // Of a node whose inputs 0 and 1 are gates [T,B,count H] and weights [count H,P].
  RecurrenceShape(const ir::Node& node, int64_t count);

  // Where step i of time lies.
  int64_t At(int64_t i) const { return reverse_ ? steps - 1 - i : i; }
  // Step `position` of an array [T,B,columns] of the op's dtype; of f32.
  template <typename Void>
  Void* Step(Void* x, int64_t position, int64_t columns) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
    return static_cast<Byte*>(x) + position * batch * columns * element_bytes_;
  }
  template <typename Void>
  auto* WideStep(Void* x, int64_t position, int64_t columns) const {
    using Float = std::conditional_t<std::is_const_v<Void>, const float, float>;
    return static_cast<Float*>(x) + position * batch * columns;
  }

  bool is_wide() const { return dtype == DType::kF32; }

  int64_t steps, batch, hidden, features;
  DType dtype;

 private:
  bool reverse_;
  int64_t element_bytes_;
};

// Weights in strips, made anew in each run.
class StripedWeights {
 public:
  StripedWeights(const StripShape& shape, int64_t batch);

  const StripShape& shape() const { return shape_; }
  int64_t floats() const { return shape_.strips() * shape_.strip_floats(); }
  void Pack(PackStripFn pack, const void* w, float* to) const;

  // Calls call(tile) for all tiles of a step; `packed` is what Pack made. A strip stays with its thread.
  template <typename Call>
  void ForTiles(const float* packed, const Call& call) const {
    const int64_t tasks = shape_.strips() * row_blocks_;
    ParallelFor(0, tasks, is_small_ ? std::max<int64_t>(1, tasks) : 1,
                [&](int64_t first, int64_t last) {
                  for (int64_t task = first; task < last; ++task) {
                    const int64_t number = task / row_blocks_, row = task % row_blocks_ * kTileRows;
                    const int64_t column = number * shape_.strip;
                    call(StepTile{row, std::min(kTileRows, batch_ - row), column,
                                  std::min(shape_.strip, shape_.columns - column),
                                  packed + number * shape_.strip_floats()});
                  }
                });
  }

 private:
  StripShape shape_;
  int64_t batch_, row_blocks_;
  bool is_small_;  // a step is less work than starting a parallel region
};

}  // namespace halftone::kernels
