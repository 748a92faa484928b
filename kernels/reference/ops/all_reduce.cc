// all_reduce_start all_reduce_wait all_reduce, reduce_scatter_start reduce_scatter_wait, all_gather_start
// all_gather_wait: copies are as plain here as anywhere, and what others
// send is added in one way on all devices.

#include <utility>

#include "halftone/kernels/all_reduce_kernel.h"
#include "halftone/kernels/shard_kernels.h"

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
  AddExchange(r, "reduce_scatter_start", MakeReduceScatterStart);
  AddExchange(r, "reduce_scatter_wait", MakeReduceScatterWait);
  AddExchange(r, "all_gather_start", MakeAllGatherStart);
  AddExchange(r, "all_gather_wait", MakeAllGatherWait);
}

}  // namespace halftone::kernels
