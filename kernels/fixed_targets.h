// Devices by name, whatever machine this is: for tools that ask what a graph becomes elsewhere, and
// for golden tests. A graph lowered for one of them is the one that compiling on such a device
// gives.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "halftone/graph/ir/op.h"
#include "halftone/graph/ir/target.h"
#include "halftone/kernels/registry_target.h"

namespace halftone::kernels {

// A device whose kernels this program need not have: every op runs in every dtype of
// `kernel_dtypes` but for the exceptions.
struct TargetDescription {
  std::string name;
  ir::DTypeSet kernel_dtypes;             // of non-reference kernels
  std::set<std::string> cannot_run = {};  // ops without any kernel: decomposed; tests give some
  TargetTraits traits;
  bool joins_updates = false;
};

class DescribedTarget : public ir::Target {
 public:
  explicit DescribedTarget(TargetDescription description) : d_(std::move(description)) {}

  const std::string& name() const override { return d_.name; }
  bool HasKernel(const std::string& op, DType dtype) const override;
  bool CanRun(const std::string& op) const override { return !d_.cannot_run.contains(op); }
  DType PreferredLowType(std::string* reason) const override;
  std::string WhyNoF8() const override { return d_.traits.no_f8; }
  bool PrefersChannelsLast() const override { return d_.traits.channels_last; }
  bool PrefersChannelBlocks() const override { return d_.traits.channel_blocks; }
  bool RoundsBiases() const override { return d_.traits.rounds_biases; }
  bool PacksWeights() const override { return d_.traits.packs_weights; }
  bool KeepsLowWeights() const override { return d_.traits.keeps_low_weights; }
  bool RunsOnAfterFault() const override { return d_.traits.runs_on_after_fault; }
  bool FusesElementwise() const override { return d_.traits.fuses_elementwise; }
  std::string WhyWidened(const ir::Node&) const override { return ""; }
  bool JoinsUpdates(const std::string& op) const override { return d_.joins_updates && CanRun(op); }
  ir::KernelTraits TraitsOf(const ir::Node&) const override { return {}; }

 private:
  const TargetDescription d_;
};

// "cpu-avx512bf16" and "cpu-avx512", both also with "-nhwc" (a CPU with AMX, or HALFTONE_LAYOUT=nhwc),
// "cpu-avx2", "cpu-scalar", "reference" and "cuda-sm90". All but the last are what the registry has for such a machine. CUDA's kernels are in a module that may
// not be there, so that device is described; tests/cuda holds the description to the registry.
std::vector<std::string> FixedTargetNames();
// Never null on success; lives as long as the program. Error: NotFound listing the names.
absl::StatusOr<const ir::Target*> FindFixedTarget(const std::string& name);

}  // namespace halftone::kernels
