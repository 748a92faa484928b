// all_reduce_start all_reduce_wait all_reduce: copies are as plain here as anywhere, and what others
// send is added in one way on all devices.

#include <utility>

#include "halftone/kernels/all_reduce_kernel.h"

namespace halftone::kernels {
namespace {

void AddExchange(KernelRegistry& r, const std::string& op,
                 absl::StatusOr<std::unique_ptr<Kernel>> (*make)(const ir::Node&)) {
  KernelCandidate candidate;
  candidate.op = op;
  candidate.name = "reference:" + op;
  candidate.device = Device::Kind::kReference;
  candidate.tier = KernelTier::kReference;
  candidate.dtypes = ir::kFloats;
  candidate.create = make;
  r.Add(std::move(candidate));
}

}  // namespace

void Register_reference_all_reduce(KernelRegistry& r) {
  AddExchange(r, "all_reduce_start", MakeAllReduceStart);
  AddExchange(r, "all_reduce_wait", MakeAllReduceWait);
  AddExchange(r, "all_reduce", MakeAllReduce);
}

}  // namespace halftone::kernels
