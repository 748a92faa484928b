// Elementwise ops on the device: y = f(x0, x1), operands broadcast or laid out as they may be.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/map.h"

namespace halftone::cuda {

enum class Formula : uint8_t {
  // One operand.
  kRelu,
  kSigmoid,
  kTanh,
  kSilu,
  kGeluErf,
  kGeluTanh,
  kExp,
  kLog,
  kSqrt,
  kNeg,
  kAbs,
  kFloor,
  kCos,
  kSin,
  kErf,
  kReciprocal,
  kIsFinite,
  kNot,
  kIdentity,
  // Two.
  kReluGrad,
  kSigmoidGrad,
  kTanhGrad,
  kSiluGrad,
  kGeluErfGrad,
  kGeluTanhGrad,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kPow,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kAnd,
  kOr,
};

// f32, f16 and bf16, computed in f32; y of the same, or bool where the formula is a comparison.
// kIdentity (a cast) takes u8 and bool too, and gives bool too.
cudaError_t LaunchUnary(Formula formula, const MapParams<1>& params, cudaStream_t stream);
cudaError_t LaunchBinary(Formula formula, const MapParams<2>& params, cudaStream_t stream);
cudaError_t LaunchGrad(Formula formula, const MapParams<2>& params, cudaStream_t stream);
// f64; and whole numbers and bools, computed in 64 bits that wrap. Any width.
cudaError_t LaunchF64(Formula formula, const MapParams<1>& params, cudaStream_t stream);
cudaError_t LaunchF64(Formula formula, const MapParams<2>& params, cudaStream_t stream);
cudaError_t LaunchWhole(Formula formula, const MapParams<1>& params, cudaStream_t stream);
cudaError_t LaunchWhole(Formula formula, const MapParams<2>& params, cudaStream_t stream);

}  // namespace halftone::cuda
