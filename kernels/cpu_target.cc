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
      return features.fast_bf16 ? "cpu-avx512bf16" : "cpu-avx512";
  }
  return "cpu-scalar";
}

class CpuTarget : public RegistryTarget {
 public:
  CpuTarget(const KernelRegistry& registry, const CpuFeatures& features)
      : RegistryTarget(registry, Device::Kind::kCpu, CpuName(features)),
        has_bf16_(features.avx512_bf16),
        fast_bf16_(features.level() == SimdLevel::kAvx512 && features.fast_bf16) {}

  DType PreferredLowType(std::string* reason) const override {
    if (reason != nullptr) {
      *reason = fast_bf16_ ? "the processor multiplies bf16 faster than f32 (AVX512-BF16, AMX)"
                : has_bf16_
                    ? "the processor multiplies bf16 no faster than f32 (AVX512-BF16, timed)"
                    : "the processor has no 16-bit products (AVX512-BF16)";
    }
    return fast_bf16_ ? DType::kBF16 : DType::kF32;
  }

  bool PrefersChannelsLast() const override { return true; }

 private:
  bool has_bf16_;
  bool fast_bf16_;
};

}  // namespace

std::unique_ptr<ir::Target> MakeCpuTarget(const KernelRegistry& registry,
                                          const CpuFeatures& features) {
  return std::make_unique<CpuTarget>(registry, features);
}

std::unique_ptr<ir::Target> MakeReferenceTarget(const KernelRegistry& registry) {
  return std::make_unique<RegistryTarget>(registry, Device::Kind::kReference, "reference");
}

}  // namespace halftone::kernels
