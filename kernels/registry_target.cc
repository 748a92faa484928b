#include "halftone/kernels/registry_target.h"

#include <algorithm>
#include <utility>

namespace halftone::kernels {

RegistryTarget::RegistryTarget(const KernelRegistry& registry, Device::Kind device,
                               std::string name, TargetTraits traits)
    : registry_(registry), device_(device), name_(std::move(name)), traits_(std::move(traits)) {}

bool RegistryTarget::HasKernel(const std::string& op, DType dtype) const {
  for (const KernelCandidate* candidate : registry_.Candidates(op, device_)) {
    const bool counts =
        candidate->tier != KernelTier::kReference || device_ == Device::Kind::kReference;
    if (counts && candidate->dtypes.Contains(dtype)) return true;
  }
  return false;
}

bool RegistryTarget::CanRun(const std::string& op) const {
  return !registry_.Candidates(op, device_).empty();
}

bool RegistryTarget::JoinsUpdates(const std::string& op) const {
  const std::vector<const KernelCandidate*> candidates = registry_.Candidates(op, device_);
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const auto* candidate) { return candidate->create_group != nullptr; });
}

DType RegistryTarget::PreferredLowType(std::string* reason) const {
  if (reason != nullptr) *reason = traits_.low_reason;
  return traits_.preferred_low;
}

}  // namespace halftone::kernels
