// Whether oneDNN multiplies f16 matrices well here.
#pragma once

namespace halftone::kernels::onednn {

// Time of the library's f16 matmul in times of its f32 one, on one thread; infinity where it has
// none but reference code (2.6; processors without AVX512-FP16 or AMX-FP16). It sums in f32 either
// way. Measures for a few milliseconds when first called.
double F16MatmulCost();

}  // namespace halftone::kernels::onednn
