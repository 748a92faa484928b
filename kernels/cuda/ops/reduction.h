// sum, mean, sum_to_shape and max over any axes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"

namespace halftone::cuda {

// kernels::ReducePlan as device code needs it: results are [kept, width]; for each of the `kept`
// groups there are `reduced` blocks of [rows, width], dense, to be reduced over rows.
struct ReduceAxes {
  int count;
  WideDivisor extent[4];
  int64_t stride[4];  // innermost first
};
struct ReduceShape {
  int64_t kept, reduced, rows, width;
  ReduceAxes kept_axes, reduced_axes;
};

inline constexpr int kReduceMaxPack = 8;

// How a reduction is cut into blocks and threads; depends on shape and dtype alone.
struct ReduceCut {
  // Parts of the reduced elements: with several, each leaves a partial result in the workspace.
  int64_t chunks;
  int team;       // width 1: threads per result
  int lanes;      // width > 1: threads along the columns; the rest of the block lies along the rows
  bool packed;    // elements move in packs of 16 bytes
  int64_t tiles;  // width > 1: blocks along the columns
  WideDivisor by_chunks, by_tiles;
  WideDivisor by_rows;  // by the rows of a block; width 1: by the packs of a run
};
ReduceCut CutReduction(const ReduceShape& shape, DType x);

struct Reduction {
  ReduceShape shape;
  ReduceCut cut;
  DType x_dtype, y_dtype;
  double divisor;  // of a sum
  const void* x;
  void* y;
  void* partials;  // chunks * kept * width values of 8 bytes if there are several chunks
};

// y has the dtype of x or, for 16-bit x, f32. Where rows is 0 a sum is 0 / divisor.
// Requires: results.
cudaError_t LaunchSum(const Reduction& r, cudaStream_t stream);
// Requires: elements for every result.
cudaError_t LaunchMax(const Reduction& r, cudaStream_t stream);

}  // namespace halftone::cuda
