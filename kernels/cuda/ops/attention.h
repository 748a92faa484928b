// scaled_dot_product_attention and its gradient on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/core/host_device.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

// An axis before the last two of query.
struct AttentionAxis {
  int64_t extent, mask_stride;
};
inline constexpr int kMaxAttentionAxes = 6;

// Where the rows of each head of an operand or result lie, in elements: ops::HeadRows for the device.
struct AttentionRows {
  int64_t offset, heads, batch, head, row;
  HT_HOST_DEVICE int64_t First(int64_t number) const {
    return offset + number / heads * batch + number % heads * head;
  }
};

struct AttentionParams {
  DType dtype;
  int64_t heads, group;        // of query; those that meet one head of key and value
  int64_t length, keys;        // rows of a head
  int64_t columns, v_columns;  // of query and key; of value
  AttentionRows q, k, v, y;    // of y those of dy too
  AttentionRows dq, dk, dv;
  double scale;
  bool causal;
  // Strides in elements, 0 where the mask repeats; axes outermost first.
  bool has_mask, bool_mask;
  int64_t mask_row, mask_column;
  int32_t axes;
  AttentionAxis axis[kMaxAttentionAxes];
  // Dropout keeps where the upper 24 bits of the word are at least the threshold; 0: no dropout.
  uint64_t seed;
  int32_t threshold;
  double keep;  // 1 / (1 - p); a float's value unless f64
};

// Stats and masks are row-major arrays of the op's shapes, f32 (f64 for f64) unless a mask is of bools.
struct AttentionArrays {
  const void *q, *k, *v, *mask;
  void *y, *stats;
};
struct AttentionGradArrays {
  const void *q, *k, *v, *y, *stats, *dy, *mask;
  void *dq, *dk, *dv;
  void* delta;  // [heads, length] of the stats' dtype, to work with
};

// The run count comes from the state. Does nothing for an empty output.
cudaError_t LaunchAttention(const AttentionParams& params, const AttentionArrays& arrays,
                            const kernels::DeviceRunState* state, cudaStream_t stream);
cudaError_t LaunchAttentionGrad(const AttentionParams& params, const AttentionGradArrays& arrays,
                                const kernels::DeviceRunState* state, cudaStream_t stream);

}  // namespace halftone::cuda
