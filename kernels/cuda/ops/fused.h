// A tree of elementwise ops on the device: a program that each thread walks for its elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/wide_divisor.h"
#include "halftone/kernels/cuda/ops/elementwise.h"

namespace halftone::cuda {

inline constexpr int kFusedInputs = 12;
inline constexpr int kFusedSteps = 32;
// Results that wait for their reader while others are computed. Trees of kFusedSteps ops with at most five
// computed operands, the most demanding operand first, need no more: 31 steps are the least that need 8 (five
// operands of five each), 63 those that need 9.
inline constexpr int kFusedSlots = 8;

// Which element of an input belongs to element i of the result, both in the order of memory.
enum class FusedReach : uint8_t { kSame, kRow, kOne };  // i, i % period, 0

struct FusedInput {
  const void* x = nullptr;
  DType dtype = DType::kF32;  // f32, f16, bf16 or bool
  FusedReach reach = FusedReach::kSame;
};

struct FusedOperand {
  // What the step before gave, what an earlier one left in a slot, or an input.
  enum class Kind : uint8_t { kLast, kSlot, kInput };
  Kind kind = Kind::kLast;
  uint8_t index = 0;
};

// Computed in f32 and rounded to `dtype`, as the op's own kernel does.
struct FusedStep {
  // A formula; a ? b : c; (a - b - c) d + e.
  enum class Kind : uint8_t { kFormula, kSelect, kBatchNorm };
  Kind kind = Kind::kFormula;
  Formula formula = Formula::kIdentity;
  uint8_t operands = 0;  // how many
  FusedOperand operand[5];
  DType dtype = DType::kF32;
  int8_t slot =
      -1;  // where to leave the result; -1: the next step, or the last one's reader, has it
  float numbers[2] = {};
};

struct FusedParams {
  int64_t size = 0;  // of y, above 0
  // Elements of an access: 4 where the arrays are aligned and the period is a multiple of it, else 1.
  int width = 1;
  int steps = 0;
  int slots = 0;
  WideDivisor period;
  void* y = nullptr;  // of the last step's dtype; may be an input that is kSame
  FusedInput input[kFusedInputs];
  FusedStep step[kFusedSteps];
};

cudaError_t LaunchFused(const FusedParams& params, cudaStream_t stream);

}  // namespace halftone::cuda
