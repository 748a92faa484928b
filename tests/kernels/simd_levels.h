// The SIMD levels to test, and forcing one.
#pragma once

#include <vector>

#include "halftone/core/cpu_features.h"
#include "halftone/kernels/cpu/simd/targets.h"

namespace halftone::testing {

// From scalar up to what the CPU has and HALFTONE_SIMD allows.
inline std::vector<SimdLevel> SimdLevelsHere() {
  std::vector<SimdLevel> levels = {SimdLevel::kScalar};
  if (CpuFeatures::Get().level() >= SimdLevel::kAvx2) levels.push_back(SimdLevel::kAvx2);
  if (CpuFeatures::Get().level() >= SimdLevel::kAvx512) levels.push_back(SimdLevel::kAvx512);
  return levels;
}

// Kernels constructed while one lives are for `level`.
class ForcedSimdLevel {
 public:
  explicit ForcedSimdLevel(SimdLevel level) { kernels::ForceSimdLevel(level); }
  ~ForcedSimdLevel() { kernels::ForceSimdLevel(CpuFeatures::Get().level()); }
  ForcedSimdLevel(const ForcedSimdLevel&) = delete;
  ForcedSimdLevel& operator=(const ForcedSimdLevel&) = delete;
};

}  // namespace halftone::testing
