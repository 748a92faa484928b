// RegistryTarget: what a device can do, told from the registered kernels.
#pragma once

#include <string>

#include "halftone/graph/ir/target.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// A device of its own kind overrides the preferences; the base prefers f32 and plain layouts,
// and keeps nothing.
// The registry must outlive the target.
class RegistryTarget : public ir::Target {
 public:
  RegistryTarget(const KernelRegistry& registry, Device::Kind device, std::string name);

  const std::string& name() const override { return name_; }
  // Reference kernels count for the reference device alone.
  bool HasKernel(const std::string& op, DType dtype) const override;
  bool CanRun(const std::string& op) const override;
  DType PreferredLowType(std::string* reason) const override;
  bool PrefersChannelsLast() const override { return false; }
  bool KeepsLowWeights() const override { return false; }
  bool JoinsUpdates(const std::string& op) const override;

 private:
  const KernelRegistry& registry_;
  Device::Kind device_;
  std::string name_;
};

}  // namespace halftone::kernels
