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

bool RegistryTarget::FusesOp(const std::string& op) const {
  const std::vector<const KernelCandidate*> candidates = registry_.Candidates("fused", device_);
  return traits_.fuses_elementwise &&
         std::any_of(candidates.begin(), candidates.end(), [&op](const auto* candidate) {
           return candidate->takes_op == nullptr || candidate->takes_op(op);
         });
}

std::string RegistryTarget::WhyNoF8() const {
  if (!traits_.no_f8.empty()) return traits_.no_f8;
  return HasKernel("f8_matmul", DType::kF8E4M3) ? "" : Concat(name_, " has no kernel for it");
}

bool RegistryTarget::CanRun(const std::string& op) const {
  return !registry_.Candidates(op, device_).empty();
}

absl::Status RegistryTarget::Refusal(const KernelCandidate& candidate, const ir::Node& node) const {
  if (candidate.tier == KernelTier::kLibrary && node.input_type(0).dtype == DType::kBF16 &&
      !traits_.slow_bf16.empty()) {
    return Unimplemented(traits_.slow_bf16);
  }
  HT_RETURN_IF_ERROR(candidate.Accepts(node));
  return traits_.is_here ? candidate.create(node).status() : absl::OkStatus();
}

std::string RegistryTarget::WhyWidened(const ir::Node& node) const {
  const std::vector<const KernelCandidate*> candidates =
      registry_.Candidates(node.op().name, device_);
  if (std::none_of(candidates.begin(), candidates.end(), [&node](const auto* candidate) {
        return candidate->widens && candidate->Accepts(node).ok();
      })) {
    return "";
  }
  std::string why;
  for (const KernelCandidate* candidate : candidates) {
    const absl::Status refusal = Refusal(*candidate, node);
    if (refusal.ok()) return candidate->widens ? why : "";
    if (absl::IsResourceExhausted(refusal)) return "";  // the choice of kernels will fail likewise
    if (why.empty()) why = Concat(candidate->name, ": ", Message(refusal));
  }
  return "";
}

bool RegistryTarget::JoinsUpdates(const std::string& op) const {
  const std::vector<const KernelCandidate*> candidates = registry_.Candidates(op, device_);
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const auto* candidate) { return candidate->create_group != nullptr; });
}

ir::KernelTraits RegistryTarget::TraitsOf(const ir::Node& node) const {
  if (!traits_.is_here) return {};
  const auto kernel = registry_.Select(node, device_);
  if (!kernel.ok()) return {};  // the choice of kernels will fail likewise
  return {static_cast<int64_t>((*kernel)->workspace_bytes()), (*kernel)->keeps_state_on_fault()};
}

DType RegistryTarget::PreferredLowType(std::string* reason) const {
  if (reason != nullptr) *reason = traits_.low_reason;
  return traits_.preferred_low;
}

}  // namespace halftone::kernels
