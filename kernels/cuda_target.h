// What passes may know of a CUDA device besides its kernels. Apart from kernels/cuda, since graphs
// are also lowered for such a device where its kernels are not.
#pragma once

#include "halftone/kernels/registry_target.h"

namespace halftone::kernels {

// `capability`: 10 times the major version and the minor one.
inline TargetTraits CudaTraits(int capability) {
  return {.preferred_low = DType::kBF16,
          .low_reason = "tensor cores; bf16 needs no loss scaling",
          .channels_last = true,
          .rounds_biases = true,
          .keeps_low_weights = true,
          .runs_on_after_fault = true,
          .fuses_elementwise = true,
          .no_f8 = capability < 89 ? "8-bit products need compute capability 8.9" : ""};
}

}  // namespace halftone::kernels
