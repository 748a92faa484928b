// all_reduce_start all_reduce_wait all_reduce: copies into and out of a buffer that others read meanwhile.

#include "halftone/kernels/all_reduce_kernel.h"
#include "halftone/kernels/cpu/support/native_kernel.h"

namespace halftone::kernels {

void Register_cpu_all_reduce(KernelRegistry& r) {
  AddNativeCandidate(r, "exchange", "all_reduce_start", ir::kFloats, nullptr, MakeAllReduceStart);
  AddNativeCandidate(r, "exchange", "all_reduce_wait", ir::kFloats, nullptr, MakeAllReduceWait);
  AddNativeCandidate(r, "exchange", "all_reduce", ir::kFloats, nullptr, MakeAllReduce);
}

}  // namespace halftone::kernels
