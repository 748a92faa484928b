// cos and sin for every argument. CUDA's own keep an array on the stack for large ones, which the
// build refuses.
//
// Source of the reduction: Payne, Hanek, "Radian reduction for trigonometric functions", ACM SIGNUM
// 18, 1983; of the polynomials: FreeBSD msun, k_cos.c and k_sin.c (f64), Moshier, Cephes, sinf.c
// (f32).
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"

namespace halftone::kernels::functors {

// x = quadrant pi/2 + rest, |rest| <= pi/4; of the quadrant the two low bits.
struct ReducedAngle {
  int quadrant;
  double rest;
};

// Upper half of a product.
__device__ inline uint64_t MultiplyHigh(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
  const uint64_t low = a0 * b1 + (a0 * b0 >> 32);
  const uint64_t middle = a1 * b0 + (low & 0xFFFFFFFFu);
  return a1 * b1 + (low >> 32) + (middle >> 32);
}

// 64 bits of the binary fraction of 2 / pi, word 1 the first; word 0 is the 0 before its point.
__device__ inline uint64_t TwoOverPi(int word) {
  switch (word) {
    case 1:
      return 0xA2F9836E4E441529;
    case 2:
      return 0xFC2757D1F534DDC0;
    case 3:
      return 0xDB6295993C439041;
    case 4:
      return 0xFE5163ABDEBBC561;
    case 5:
      return 0xB7246E3A424DD2E0;
    case 6:
      return 0x06492EEA09D1921C;
    case 7:
      return 0xFE1DEB1CB129A73E;
    case 8:
      return 0xE88235F52EBB4484;
    case 9:
      return 0xE99C7026B45F7E41;
    case 10:
      return 0x3991D639835339F4;
    case 11:
      return 0x9C845F8BBDF9283B;
    case 12:
      return 0x1FF897FFDE05980F;
    case 13:
      return 0xEF2F118B5A0A6D1F;
    case 14:
      return 0x6D367ECF27CB09B7;
    case 15:
      return 0x4F463F669E5FEA2D;
    case 16:
      return 0x7527BAC7EBE5F17B;
    case 17:
      return 0x3D0739F78A5292EA;
    case 18:
      return 0x6BFB5FB11F8D5D08;
    case 19:
      return 0x56033046FC7B6BAB;
    default:
      return 0;
  }
}

// x = mantissa 2^exponent, at least 2^15 and finite. Bits of 2 / pi whose product with x is a
// multiple of 4 are left out, and of the others 192 are used: 139 more than the mantissa has.
__device__ inline ReducedAngle ReduceLarge(double x) {
  uint64_t mantissa;
  memcpy(&mantissa, &x, sizeof mantissa);
  const int exponent = static_cast<int>(mantissa >> 52) - 1075;
  constexpr uint64_t kHidden = uint64_t{1} << 52;
  mantissa = (mantissa & (kHidden - 1)) | kHidden;
  const int first = exponent - 2 + 64;
  const int word = first / 64, shift = first % 64;
  uint64_t window[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    window[i] = TwoOverPi(word + i) << shift;
    if (shift > 0) window[i] |= TwoOverPi(word + i + 1) >> (64 - shift);
  }
  const uint64_t low = mantissa * window[2];
  const uint64_t middle = mantissa * window[1] + MultiplyHigh(mantissa, window[2]);
  const uint64_t carry = middle < mantissa * window[1] ? 1 : 0;
  const uint64_t high = mantissa * window[0] + MultiplyHigh(mantissa, window[1]) + carry;
  // The product in quarter turns: two bits before the point.
  int quadrant = static_cast<int>(high >> 62);
  uint64_t upper = high << 2 | middle >> 62, lower = middle << 2 | low >> 62;
  const bool negative = upper >> 63 != 0;
  if (negative) {
    ++quadrant;
    lower = 0 - lower;
    upper = ~upper + (lower == 0 ? 1 : 0);
  }
  const double turns = static_cast<double>(upper) * 0x1p-64 + static_cast<double>(lower) * 0x1p-128;
  const double rest = turns * 1.5707963267948966;
  return {quadrant & 3, negative ? -rest : rest};
}

// x at least 0 and finite.
__device__ inline ReducedAngle Reduce(double x) {
  if (x >= 2147483648.0) return ReduceLarge(x);
  const double n = rint(x * 0.63661977236758134);
  // pi/2 in three parts.
  double rest = fma(-n, 1.5707963267948966, x);
  rest = fma(-n, 6.123233995736766e-17, rest);
  rest = fma(-n, -1.4973849048591698e-33, rest);
  return {static_cast<int>(static_cast<int64_t>(n) & 3), rest};
}

// cos(quadrant pi/2 + r).
__device__ inline double CosOfReduced(int quadrant, double r) {
  const double z = r * r;
  double y;
  if (quadrant % 2 == 0) {
    double p = -1.13596475577881948265e-11;
    p = p * z + 2.08757232129817482790e-09;
    p = p * z - 2.75573143513906633035e-07;
    p = p * z + 2.48015872894767294178e-05;
    p = p * z - 1.38888888888741095749e-03;
    p = p * z + 4.16666666666666019037e-02;
    const double half = 0.5 * z, near = 1.0 - half;
    y = near + (((1.0 - near) - half) + z * (z * p));
  } else {
    double p = 1.58969099521155010221e-10;
    p = p * z - 2.50507602534068634195e-08;
    p = p * z + 2.75573137070700676789e-06;
    p = p * z - 1.98412698298579493134e-04;
    p = p * z + 8.33333333332248946124e-03;
    p = p * z - 1.66666666666666324348e-01;
    y = r + z * r * p;
  }
  return quadrant == 1 || quadrant == 2 ? -y : y;
}

// The same in f32.
struct ReducedAngleF32 {
  int quadrant;
  float rest;
};

__device__ inline ReducedAngleF32 Reduce(float x) {
  if (x >= 100000.0f) {
    const ReducedAngle angle = ReduceLarge(x);
    return {angle.quadrant, static_cast<float>(angle.rest)};
  }
  const float n = rintf(x * 0.636619747f);
  // pi/2 in three parts.
  float rest = fmaf(-n, 1.57079601f, x);
  rest = fmaf(-n, 3.13916473e-07f, rest);
  rest = fmaf(-n, 5.39030253e-15f, rest);
  return {static_cast<int>(n) & 3, rest};
}

__device__ inline float CosOfReduced(int quadrant, float r) {
  const float z = r * r;
  float y;
  if (quadrant % 2 == 0) {
    const float p = (2.443315711809948e-05f * z - 1.388731625493765e-03f) * z;
    y = ((p + 4.166664568298827e-02f) * z - 0.5f) * z + 1.0f;
  } else {
    const float p = (-1.9515295891e-04f * z + 8.3321608736e-03f) * z;
    y = (p - 1.6666654611e-01f) * z * r + r;
  }
  return quadrant == 1 || quadrant == 2 ? -y : y;
}

template <typename V>
__device__ __forceinline__ V CosV(V x) {
  if (!isfinite(x)) return x - x;
  const auto angle = Reduce(Abs(x));
  return CosOfReduced(angle.quadrant, angle.rest);
}

// sin x = cos(x - pi/2), and odd: -0 stays -0.
template <typename V>
__device__ __forceinline__ V SinV(V x) {
  if (!isfinite(x)) return x - x;
  const auto angle = Reduce(Abs(x));
  const V y = CosOfReduced((angle.quadrant + 3) % 4, angle.rest);
  return signbit(x) ? -y : y;
}

}  // namespace halftone::kernels::functors
