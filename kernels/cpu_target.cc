#include "halftone/kernels/cpu_target.h"

#include <string>

#include "halftone/kernels/registry_target.h"

namespace halftone::kernels {
namespace {

const char* CpuName(const CpuFeatures& features) {
  switch (features.level()) {
    case SimdLevel::kScalar:
      return "cpu-scalar";
    case SimdLevel::kAvx2:
      return "cpu-avx2";
    case SimdLevel::kAvx512:
      if (!features.channel_blocks) {
        return features.fast_bf16 ? "cpu-avx512bf16-nhwc" : "cpu-avx512-nhwc";
      }
      return features.fast_bf16 ? "cpu-avx512bf16" : "cpu-avx512";
  }
  return "cpu-scalar";
}

TargetTraits CpuTraits(const CpuFeatures& features) {
  TargetTraits traits;
  traits.channels_last = true;
  traits.channel_blocks = features.channel_blocks && features.level() == SimdLevel::kAvx512;
  traits.keeps_low_weights = true;
  traits.packs_weights = true;
  traits.fuses_elementwise = true;
  // Emulated bf16 takes 2 to 3 times as long as f32 between two conversions, slow instructions 1.5
  // times.
  if (!features.fast_bf16) {
    traits.slow_bf16 = "the processor multiplies bf16 no faster than f32";
  }
  traits.is_here = std::string(CpuName(features)) == CpuName(CpuFeatures::Get());
  if (features.level() == SimdLevel::kAvx512 && features.fast_bf16) {
    traits.preferred_low = DType::kBF16;
    traits.low_reason = "the processor multiplies bf16 faster than f32 (AVX512-BF16, AMX)";
  } else {
    traits.low_reason =
        features.avx512_bf16
            ? "the processor multiplies bf16 no faster than f32 (AVX512-BF16, timed)"
            : "the processor has no 16-bit products (AVX512-BF16)";
  }
  return traits;
}

}  // namespace

std::unique_ptr<ir::Target> MakeCpuTarget(const KernelRegistry& registry,
                                          const CpuFeatures& features) {
  return std::make_unique<RegistryTarget>(registry, Device::Kind::kCpu, CpuName(features),
                                          CpuTraits(features));
}

std::unique_ptr<ir::Target> MakeReferenceTarget(const KernelRegistry& registry) {
  TargetTraits traits;
  traits.low_reason = "the reference device is for checking, not for speed";
  traits.is_here = true;
  return std::make_unique<RegistryTarget>(registry, Device::Kind::kReference, "reference",
                                          std::move(traits));
}

}  // namespace halftone::kernels
