// all_reduce_start all_reduce_wait: copies are as plain here as anywhere, and what others send is
// added in one way on all devices.

#include "halftone/kernels/all_reduce_kernel.h"

namespace halftone::kernels {

void Register_reference_all_reduce(KernelRegistry& r) {
  for (const bool starts : {true, false}) {
    KernelCandidate candidate;
    candidate.op = starts ? "all_reduce_start" : "all_reduce_wait";
    candidate.name = "reference:" + candidate.op;
    candidate.device = Device::Kind::kReference;
    candidate.tier = KernelTier::kReference;
    candidate.dtypes = ir::kFloats;
    candidate.create = starts ? &MakeAllReduceStart : &MakeAllReduceWait;
    r.Add(std::move(candidate));
  }
}

}  // namespace halftone::kernels
