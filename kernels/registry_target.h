// RegistryTarget: what a device can do, told from the registered kernels.
#pragma once

#include <string>

#include "halftone/graph/ir/target.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// What does not follow from kernels; see ir::Target.
struct TargetTraits {
  DType preferred_low = DType::kF32;
  std::string low_reason;  // for it
  bool channels_last = false;
  bool channel_blocks = false;
  bool rounds_biases = false;
  bool keeps_low_weights = false;
  bool packs_weights = false;
  bool runs_on_after_fault = false;
  bool fuses_elementwise = false;
  // Why kernels of libraries are not to compute on bf16; empty: they are.
  std::string slow_bf16 = {};
  // Why the device has no products of 8-bit operands; empty: its kernels tell.
  std::string no_f8 = {};
  // Whether kernels can be created here; else what they say of a node before that has to do.
  bool is_here = false;
};

// The registry must outlive the target.
class RegistryTarget : public ir::Target {
 public:
  RegistryTarget(const KernelRegistry& registry, Device::Kind device, std::string name,
                 TargetTraits traits = {});

  const std::string& name() const override { return name_; }
  // Reference kernels count for the reference device alone.
  bool HasKernel(const std::string& op, DType dtype) const override;
  bool CanRun(const std::string& op) const override;
  DType PreferredLowType(std::string* reason) const override;
  // The reference device's own kernels count.
  std::string WhyNoF8() const override;
  bool PrefersChannelsLast() const override { return traits_.channels_last; }
  bool PrefersChannelBlocks() const override { return traits_.channel_blocks; }
  bool RoundsBiases() const override { return traits_.rounds_biases; }
  bool KeepsLowWeights() const override { return traits_.keeps_low_weights; }
  bool PacksWeights() const override { return traits_.packs_weights; }
  bool RunsOnAfterFault() const override { return traits_.runs_on_after_fault; }
  bool FusesElementwise() const override { return traits_.fuses_elementwise; }
  bool FusesOp(const std::string& op) const override;
  // The refusal of the first candidate, where the one that a step gets widens.
  std::string WhyWidened(const ir::Node& node) const override;
  bool JoinsUpdates(const std::string& op) const override;
  ir::KernelTraits TraitsOf(const ir::Node& node) const override;

 private:
  // OK, or why `candidate` does not run `node` on this device.
  absl::Status Refusal(const KernelCandidate& candidate, const ir::Node& node) const;

  const KernelRegistry& registry_;
  Device::Kind device_;
  std::string name_;
  TargetTraits traits_;
};

}  // namespace halftone::kernels
