// CpuTarget: what the CPU can do, told from the registered kernels and the processor.
#pragma once

#include <memory>

#include "halftone/core/cpu_features.h"
#include "halftone/graph/ir/target.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// "cpu-avx512bf16", "cpu-avx512", "cpu-avx2" or "cpu-scalar"; with AVX-512 and images that stay
// channels-last "-nhwc" is added. The low type that `amp auto` chooses
// is bf16 where the processor has fast bf16 products, else none: 16-bit storage with f32 arithmetic
// saves memory but rarely time. The registry must outlive the target.
std::unique_ptr<ir::Target> MakeCpuTarget(const KernelRegistry& registry = KernelRegistry::Global(),
                                          const CpuFeatures& features = CpuFeatures::Get());

// "reference": every op on its reference kernel, in every dtype that has one; for checking.
std::unique_ptr<ir::Target> MakeReferenceTarget(
    const KernelRegistry& registry = KernelRegistry::Global());

}  // namespace halftone::kernels
