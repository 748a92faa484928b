#include "halftone/kernels/cpu/simd/targets.h"
// Highway reads the macro that the line above defines.
#include <hwy/highway.h>

namespace halftone::kernels {
namespace {

void SetSimdLevel(SimdLevel level) {
  int64_t targets = HWY_EMU128 | HWY_SCALAR;
  if (level >= SimdLevel::kAvx2) targets |= HWY_AVX2;
  if (level >= SimdLevel::kAvx512) targets |= HWY_AVX3;
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(targets);
}

}  // namespace

void InitSimdDispatch() {
  static const bool once = [] {
    SetSimdLevel(CpuFeatures::Get().level());
    return true;
  }();
  static_cast<void>(once);
}

void ForceSimdLevel(SimdLevel level) {
  InitSimdDispatch();  // so that it does not undo this later
  SetSimdLevel(level);
}

}  // namespace halftone::kernels
