// reduce_scatter_start reduce_scatter_wait all_gather_start all_gather_wait: copies into and out of a buffer
// that others read meanwhile.

#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/shard_kernels.h"

namespace halftone::kernels {

void Register_cpu_shards(KernelRegistry& r) {
  const auto add = [&r](const char* op, auto make) {
    AddNativeCandidate(r, "exchange", op, ir::kFloats, nullptr, make);
  };
  add("reduce_scatter_start", MakeReduceScatterStart);
  add("reduce_scatter_wait", MakeReduceScatterWait);
  add("all_gather_start", MakeAllGatherStart);
  add("all_gather_wait", MakeAllGatherWait);
}

}  // namespace halftone::kernels
