// Two independent standard normal numbers from two words of 32 bits, by Box-Muller; as accurate as
// NormalFromBits of core/philox.h, and with the same bits on every device: logarithm, sine and
// cosine are sums and products of f64, which IEEE 754 defines, not those of a library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "halftone/core/host_device.h"

namespace halftone::kernels {

struct NormalPairF64 {
  double first, second;
};

// sum of c[i] q^i.
template <int N>
HT_HOST_DEVICE inline double PolynomialOf(const double (&c)[N], double q) {
  double sum = c[N - 1];
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (int i = N - 2; i >= 0; --i) sum = sum * q + c[i];
  return sum;
}

// ln(k 2^-24) for 1 <= k <= 2^24: k = m 2^e with m within sqrt(2) of 1, ln m = 2 atanh s of
// s = (m - 1) / (m + 1), |s| < 0.172. What the series lacks is below 2^-60 of it.
HT_HOST_DEVICE inline double LogOf24Bits(uint32_t k) {
  constexpr double kSeries[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const auto x = static_cast<double>(k);
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xFFFFFFFFFFFFF) | uint64_t{1023} << 52;
  double m;
  memcpy(&m, &bits, sizeof(m));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  return 2 * s * PolynomialOf(kSeries, s * s) +
         static_cast<double>(exponent - 24) * 0.69314718055994531;
}

// The word's upper 24 bits are a share of the full turn. Within an eighth of a turn from a quarter
// it is t, |t| <= pi / 4; what the series of Taylor lack is below 2^-57.
HT_HOST_DEVICE inline void SinCosOfTurn(uint32_t word, double* sine, double* cosine) {
  constexpr double kSine[] = {1,
                              -1.0 / 6,
                              1.0 / 120,
                              -1.0 / 5040,
                              1.0 / 362880,
                              -1.0 / 39916800,
                              1.0 / 6227020800,
                              -1.0 / 1307674368000,
                              1.0 / 355687428096000};
  constexpr double kCosine[] = {1,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200,
                                1.0 / 20922789888000,
                                -1.0 / 6402373705728000};
  const auto turn = static_cast<int32_t>(word >> 8);
  const int32_t quarter = (turn + (1 << 21)) >> 22;
  const double t = static_cast<double>(turn - (quarter << 22)) * 0x1p-24 * 6.283185307179586;
  const double s = t * PolynomialOf(kSine, t * t), c = PolynomialOf(kCosine, t * t);
  const int32_t turned = quarter & 3;
  *sine = turned == 0 ? s : turned == 1 ? c : turned == 2 ? -s : -c;
  *cosine = turned == 0 ? c : turned == 1 ? -s : turned == 2 ? -c : s;
}

HT_HOST_DEVICE inline NormalPairF64 NormalPairOf(uint32_t radius_word, uint32_t angle_word) {
  const double radius = sqrt(-2 * LogOf24Bits((radius_word >> 8) + 1));
  double sine = 0, cosine = 0;
  SinCosOfTurn(angle_word, &sine, &cosine);
  return {radius * cosine, radius * sine};
}

}  // namespace halftone::kernels
