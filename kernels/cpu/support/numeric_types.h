// From a dtype to the type that host code is compiled for.
#pragma once

#include <cstdint>
#include <type_traits>

#include "halftone/core/check.h"
#include "halftone/core/dtype.h"

namespace halftone::kernels {

// f(T()) for the type of a numeric dtype.
template <typename F>
void ForNumericType(DType dtype, const F& f) {
  if (dtype == DType::kF64) return f(double());
  if (dtype == DType::kF32) return f(float());
  if (dtype == DType::kF16) return f(F16());
  if (dtype == DType::kBF16) return f(BF16());
  if (dtype == DType::kI64) return f(int64_t());
  if (dtype == DType::kI32) return f(int32_t());
  if (dtype == DType::kU8) return f(uint8_t());
  HT_CHECK(false, "numeric dtype");
}

// f(T()) for an unsigned type of this many bytes: for what only moves elements.
template <typename F>
void ForElementSize(size_t bytes, const F& f) {
  if (bytes == 1) return f(uint8_t());
  if (bytes == 2) return f(uint16_t());
  if (bytes == 4) return f(uint32_t());
  HT_CHECK(bytes == 8, "element size");
  f(uint64_t());
}

// What sums and products of T are computed in: floats in f64, integers wrap.
template <typename T>
using WideOf = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

}  // namespace halftone::kernels
