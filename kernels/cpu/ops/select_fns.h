// Between the SIMD and the host half of simd_select.cc. Rows of n elements; a stride is 1, or 0
// where the operand is one repeated value.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// y[i] = condition[i] ? a[i * a_stride] : b[i * b_stride]
using SelectFn = void (*)(const uint8_t* condition, const void* a, int64_t a_stride, const void* b,
                          int64_t b_stride, void* y, int64_t n);
// y[i] = whether a[i * a_stride] and b[i * b_stride] compare so.
using CompareFn = void (*)(const void* a, int64_t a_stride, const void* b, int64_t b_stride,
                           uint8_t* y, int64_t n);
using TestFn = void (*)(const void* x, uint8_t* y, int64_t n);

}  // namespace halftone::kernels
