#include "halftone/passes/fixed_targets.h"

namespace halftone::passes {
namespace {

const std::vector<FixedTarget>& Targets() {
  static const auto* const targets = new std::vector<FixedTarget>{
      FixedTarget({.name = "cpu-avx512bf16",
                   .kernel_dtypes = {DType::kF32, DType::kBF16, DType::kF16},
                   .cannot_run = {},
                   .preferred_low = DType::kBF16,
                   .preferred_reason = "AVX512-BF16 multiplies bf16 twice as fast as f32"}),
      FixedTarget(
          {.name = "cpu-avx2",
           .kernel_dtypes = {DType::kF32, DType::kBF16, DType::kF16},
           .cannot_run = {},
           .preferred_low = DType::kF32,
           .preferred_reason = "without AVX512-BF16, 16 bit is storage only and costs time"}),
      FixedTarget({.name = "cuda-sm90",
                   .kernel_dtypes = {DType::kF32, DType::kBF16, DType::kF16},
                   .cannot_run = {},
                   .preferred_low = DType::kBF16,
                   .preferred_reason = "tensor cores; bf16 needs no loss scaling",
                   .keeps_low_weights = true,
                   .joins_updates = true}),
  };
  return *targets;
}

}  // namespace

bool FixedTarget::HasKernel(const std::string& op, DType dtype) const {
  return CanRun(op) && d_.kernel_dtypes.Contains(dtype);
}

DType FixedTarget::PreferredLowType(std::string* reason) const {
  if (reason != nullptr) *reason = d_.preferred_reason;
  return d_.preferred_low;
}

std::vector<std::string> FixedTargetNames() {
  std::vector<std::string> names;
  for (const FixedTarget& target : Targets()) names.push_back(target.name());
  return names;
}

absl::StatusOr<const ir::Target*> FindFixedTarget(const std::string& name) {
  std::string known;
  for (const FixedTarget& target : Targets()) {
    if (target.name() == name) return &target;
    known += (known.empty() ? "" : ", ") + target.name();
  }
  return NotFound("target \"", name, "\" is unknown; expected one of ", known);
}

}  // namespace halftone::passes
