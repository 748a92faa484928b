// How fast this processor multiplies bf16.
#pragma once

namespace halftone {

// Time of one AVX512-BF16 dot product (VDPBF16PS: 32 products) in times of one AVX-512 f32
// multiply-add (16 products): about 1 where bf16 doubles the arithmetic, 2 where it gains nothing,
// 4 where it halves it (measured 3.6 on a virtual Emerald Rapids without AMX). No feature bit tells
// these apart. Measures for about 0.15 ms. Requires: avx512f and avx512_bf16.
double MeasureBf16DotCost();

}  // namespace halftone
