// Which of its three products a convolution is: by our own kernels or by the library.
#pragma once

#include <cstdint>

namespace halftone::cuda {

enum class ConvProduct : uint8_t { kForward, kGradInput, kGradWeight };

}  // namespace halftone::cuda
