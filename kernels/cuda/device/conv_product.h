// Which of its three products a convolution is: by our own kernels or by the library.
#pragma once

#include <cstdint>
#include <utility>

namespace halftone::cuda {

enum class ConvProduct : uint8_t { kForward, kGradInput, kGradWeight };

// Each with what the name of its op adds to "conv2d".
inline constexpr std::pair<const char*, ConvProduct> kConvProducts[] = {
    {"", ConvProduct::kForward},
    {"_grad_input", ConvProduct::kGradInput},
    {"_grad_weight", ConvProduct::kGradWeight}};

}  // namespace halftone::cuda
