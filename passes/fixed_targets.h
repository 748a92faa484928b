// Descriptions of devices that do not depend on the machine: for golden tests, and for tools that
// ask what a graph becomes elsewhere.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "halftone/graph/ir/op.h"
#include "halftone/graph/ir/target.h"

namespace halftone::passes {

// A device as plain data; every op runs in every dtype of `kernel_dtypes` but for the exceptions.
struct TargetDescription {
  std::string name;
  ir::DTypeSet kernel_dtypes;        // of non-reference kernels
  std::set<std::string> cannot_run;  // ops without any kernel: decomposed; tests give some
  DType preferred_low = DType::kF32;
  std::string preferred_reason;
  bool channels_last = true;
  bool keeps_low_weights = false;
  bool joins_updates = false;
};

class FixedTarget : public ir::Target {
 public:
  explicit FixedTarget(TargetDescription description) : d_(std::move(description)) {}

  const std::string& name() const override { return d_.name; }
  bool HasKernel(const std::string& op, DType dtype) const override;
  bool CanRun(const std::string& op) const override { return !d_.cannot_run.contains(op); }
  DType PreferredLowType(std::string* reason) const override;
  bool PrefersChannelsLast() const override { return d_.channels_last; }
  bool KeepsLowWeights() const override { return d_.keeps_low_weights; }
  bool JoinsUpdates(const std::string& op) const override { return d_.joins_updates && CanRun(op); }

 private:
  const TargetDescription d_;
};

// "cpu-avx512bf16", "cpu-avx2", "cuda-sm90".
std::vector<std::string> FixedTargetNames();
// Never null on success; lives as long as the program. Error: NotFound listing the names.
absl::StatusOr<const ir::Target*> FindFixedTarget(const std::string& name);

}  // namespace halftone::passes
