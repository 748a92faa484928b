// Which instruction sets the SIMD sources (simd/*.cc, ops/simd_*.cc) are compiled for: a scalar
// baseline, AVX2, AVX3 (AVX-512 F, BW, VL, DQ). Include first in such a source, before any Highway
// header. HALFTONE_SIMD_NO_AVX3: without the last, whose code is that of AVX2 in wider vectors; for builds whose
// checks make each set dear.
#pragma once

#ifdef HWY_DISABLED_TARGETS
#error "include simd/targets.h before Highway"
#endif
#ifdef HALFTONE_SIMD_NO_AVX3
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif

#include "halftone/core/cpu_features.h"

namespace halftone::kernels {

// Makes Highway's dispatch choose `level` from now on, for kernels constructed later; for tests.
// Requires: the CPU has it.
void ForceSimdLevel(SimdLevel level);

// Brings Highway's dispatch in line with CpuFeatures::Get() (so with HALFTONE_SIMD), once. Every
// kernel factory of a SIMD source calls it before it asks for a function.
void InitSimdDispatch();

}  // namespace halftone::kernels
