// How updates store bf16 (ops::UpdateRounding): the arithmetic that all devices share, for one
// element. core/philox.h gives the random words.
// Source of both: Zamirai, Zhang, Aberger, De Sa: "Revisiting BFloat16 training", arXiv:2010.06192.
#pragma once

#include <cstdint>
#include <cstring>

#include "halftone/core/host_device.h"

namespace halftone::kernels {

// The 16 random bits of an element of result `result` of an update (0: the parameter; then the
// states, in the order of the ports) are half `result` mod 2 of word `element` mod 4 of
// PhiloxBlock(seed, step, RoundingGroup(result, element)), the lower half first. `step`: that of
// the update, so a skipped one uses none.
HT_HOST_DEVICE constexpr uint64_t RoundingGroup(int result, int64_t element) {
  return static_cast<uint64_t>(element) / 4 | static_cast<uint64_t>(result / 2) << 62;
}
HT_HOST_DEVICE constexpr uint32_t RoundingBits(uint32_t word, int result) {
  return result % 2 == 0 ? word & 0xFFFF : word >> 16;
}

// Of 16 random bits: the bf16 neighbour of x that is farther from 0 with the probability of its
// share of the distance, in steps of 2^-16, else the nearer one: so the mean is x. What bf16 has, inf
// included, stays as it is, and NaN becomes a quiet one.
HT_HOST_DEVICE inline uint16_t RoundStochastically(float x, uint32_t random) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  // A carry would take a NaN's payload into the exponent.
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40 : (bits + random) >> 16);
}

// The value that a parameter and its compensation stand for. A compensation is at most half a unit
// in the last place of its parameter, so one above 2^-8 of it is another value's (the parameter was
// set, or loaded) and counts as 0.
HT_HOST_DEVICE inline float Compensated(float param, float compensation) {
  const float magnitude = param < 0 ? -param : param;
  const float most = compensation < 0 ? -compensation : compensation;
  return most * 256 <= magnitude ? param + compensation : param;
}

// What bf16 took from x, where it made it `kept`: 0 where one of them is not finite.
HT_HOST_DEVICE inline float LostOf(float x, float kept) {
  const float lost = x - kept;
  return lost - lost == 0 ? lost : 0;
}

}  // namespace halftone::kernels
