// conv2d, conv3d and their input and weight gradients by our own kernels, in any layout.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/conv_product.h"

namespace halftone::cuda {

// One axis of the window: output position o, offset k read input o * stride - padding + k *
// dilation.
struct ConvAxis {
  int64_t input, output, kernel, stride, padding, dilation;
};

struct ConvStrides {
  int64_t n, c, d, h, w;  // in elements
};

// x [n,c,d.input,h.input,w.input], w [o,c/groups,d.kernel,h.kernel,w.kernel] dense,
// y [n,o,d.output,h.output,w.output]; of conv2d all extents of d are 1. Gradients have the place of their operand: the product writes one of the three, the others are
// read.
struct ConvParams {
  int64_t n, c, o, groups;
  ConvAxis d, h, w;
  ConvStrides x_strides, y_strides;
  bool channels_last;  // the order in which threads walk over the result: speed alone
  const void *x, *weight, *y;
  void* result;
  const void* bias;  // [o] or null; kForward
  bool bias_is_f32;
};

// `operands` is the dtype of what is read; `result` the same, or f32 for a weight gradient of
// 16-bit operands. Does nothing for an empty result.
cudaError_t LaunchConv(const ConvParams& params, ConvProduct product, DType operands, DType result,
                       cudaStream_t stream);

}  // namespace halftone::cuda
