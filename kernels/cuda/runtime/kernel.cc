#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {

void AddCudaCandidate(
    KernelRegistry& r, const std::string& how, const std::string& op, ir::DTypeSet dtypes,
    std::function<absl::Status(const ir::Node&)> supports,
    std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create) {
  KernelCandidate candidate;
  candidate.name = "cuda:" + how + ":" + op;
  candidate.op = op;
  candidate.device = Device::Kind::kCuda;
  candidate.tier = how == "native" ? KernelTier::kNative : KernelTier::kLibrary;
  candidate.dtypes = dtypes;
  candidate.supports = std::move(supports);
  candidate.create = std::move(create);
  r.Add(std::move(candidate));
}

}  // namespace halftone::kernels
