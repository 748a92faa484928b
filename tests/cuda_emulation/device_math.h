// Integer and floating-point functions that CUDA offers device code and the host's headers lack.
#pragma once

#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

template <typename T>
T __ldg(const T* p) {
  return *p;
}

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
// e^(x^2) erfc(x), of long double's range and digits; beyond 100 the series' first terms are exact.
inline double erfcx(double x) {
  const long double wide = x;
  if (x > 100)
    return static_cast<double>((1 - 0.5L / (wide * wide)) / (wide * 1.7724538509055161L));
  return static_cast<double>(std::exp(wide * wide) * std::erfc(wide));
}
inline float erfcxf(float x) { return static_cast<float>(erfcx(x)); }
// Of the fast approximations the accurate value.
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
using std::signbit;

// Half arithmetic that cuda_fp16.h keeps for the device. Rounded twice, to double and to half.
inline __half __hfma(__half a, __half b, __half c) {
  return __double2half(std::fma(static_cast<double>(__half2float(a)),
                                static_cast<double>(__half2float(b)),
                                static_cast<double>(__half2float(c))));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __halves2half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
inline __half hexp(__half x) { return __float2half(std::exp(__half2float(x))); }
inline __half hsqrt(__half x) { return __float2half(std::sqrt(__half2float(x))); }
