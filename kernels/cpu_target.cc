#include "halftone/kernels/cpu_target.h"

#include <string>
#include <utility>

namespace halftone::kernels {
namespace {

class RegistryTarget : public ir::Target {
 public:
  RegistryTarget(const KernelRegistry& registry, Device::Kind device, std::string name)
      : registry_(registry), device_(device), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }

  bool HasKernel(const std::string& op, DType dtype) const override {
    for (const KernelCandidate* candidate : registry_.Candidates(op, device_)) {
      const bool counts =
          candidate->tier != KernelTier::kReference || device_ == Device::Kind::kReference;
      if (counts && candidate->dtypes.Contains(dtype)) return true;
    }
    return false;
  }

  bool CanRun(const std::string& op) const override {
    return !registry_.Candidates(op, device_).empty();
  }

  DType PreferredLowType(std::string* reason) const override {
    if (reason != nullptr) *reason = "the reference device is for checking, not for speed";
    return DType::kF32;
  }

  bool PrefersChannelsLast() const override { return false; }

 private:
  const KernelRegistry& registry_;
  Device::Kind device_;
  std::string name_;
};

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
