// Between the SIMD and the host half of hwy_softmax.cc.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// x is [classes, inner]; columns [begin, end) of it are done. With inner = 1 the classes are
// contiguous.
using SoftmaxFn = void (*)(const void* x, void* y, int64_t classes, int64_t inner, int64_t begin,
                           int64_t end);
using SoftmaxGradFn = void (*)(const void* y, const void* dy, void* dx, int64_t classes,
                               int64_t inner, int64_t begin, int64_t end);

}  // namespace halftone::kernels
