#include "halftone/kernels/fixed_targets.h"

#include <memory>

#include "halftone/kernels/cpu_target.h"
#include "halftone/kernels/cuda_target.h"

namespace halftone::kernels {
namespace {

using Targets = std::vector<std::unique_ptr<ir::Target>>;

void AddCpus(Targets& targets) {
  CpuFeatures features;
  const auto add = [&] { targets.push_back(MakeCpuTarget(KernelRegistry::Global(), features)); };
  add();
  features.avx2 = features.fma = features.f16c = true;
  add();
  features.avx512f = features.avx512bw = features.avx512vl = features.avx512dq = true;
  for (const bool bf16 : {false, true}) {
    features.avx512_bf16 = features.fast_bf16 = bf16;
    for (const bool blocks : {true, false}) {
      features.channel_blocks = blocks;
      add();
    }
  }
}

const Targets& All() {
  static const auto* const all = [] {
    auto* targets = new Targets;
    AddCpus(*targets);
    targets->push_back(MakeReferenceTarget());
    targets->push_back(std::make_unique<DescribedTarget>(
        TargetDescription{.name = "cuda-sm90",
                          .kernel_dtypes = {DType::kF32, DType::kBF16, DType::kF16},
                          .traits = CudaTraits(90),
                          .joins_updates = true}));
    return targets;
  }();
  return *all;
}

}  // namespace

bool DescribedTarget::HasKernel(const std::string& op, DType dtype) const {
  return CanRun(op) && d_.kernel_dtypes.Contains(dtype);
}

DType DescribedTarget::PreferredLowType(std::string* reason) const {
  if (reason != nullptr) *reason = d_.traits.low_reason;
  return d_.traits.preferred_low;
}

std::vector<std::string> FixedTargetNames() {
  std::vector<std::string> names;
  for (const auto& target : All()) names.push_back(target->name());
  return names;
}

absl::StatusOr<const ir::Target*> FindFixedTarget(const std::string& name) {
  std::string known;
  for (const auto& target : All()) {
    if (target->name() == name) return target.get();
    known += (known.empty() ? "" : ", ") + target->name();
  }
  return NotFound("target \"", name, "\" is unknown; expected one of ", known);
}

}  // namespace halftone::kernels
