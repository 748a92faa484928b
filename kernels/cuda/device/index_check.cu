// One block scans all indices: thread t takes t, t + 1024, ...; the smallest bad position and the
// number of good ones are reduced over the block. A batch has up to some 10^5 indices, so the scan
// takes microseconds, and one block needs no second pass and no atomics.
// Shared: 512 bytes. Reads each index once; bound: latency.
#include "halftone/kernels/cuda/device/index_check.h"
#include "halftone/kernels/cuda/device/reduce.cuh"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 1024;

template <typename Index>
__global__ void __launch_bounds__(kThreads)
    IndexCheckKernel(IndexCheck p, int64_t fault_id, kernels::DeviceRunState* state) {
  const auto* indices = static_cast<const Index*>(p.indices);
  int64_t first_bad = p.count, good = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < p.count; i += kThreads) {
    const int64_t index = indices[i];
    if (p.has_ignored && index == p.ignored) continue;
    if (index >= 0 && index < p.bound) {
      ++good;
    } else if (first_bad == p.count) {
      first_bad = i;
    }
  }
  first_bad = BlockReduce(first_bad, Min(), p.count);
  good = BlockReduce(good, Add(), int64_t{0});
  if (threadIdx.x != 0) return;
  if (p.counted != nullptr) *p.counted = good;
  if (first_bad == p.count || state->fault_id != 0) return;
  state->fault_value = indices[first_bad];
  state->fault_bound = p.bound;
  state->fault_position = first_bad;
  state->fault_id = fault_id;
}

}  // namespace

cudaError_t LaunchIndexCheck(const IndexCheck& check, int64_t fault_id,
                             kernels::DeviceRunState* state, cudaStream_t stream) {
  if (check.count == 0 && check.counted == nullptr) return cudaSuccess;
  return LaunchKernel(check.wide ? IndexCheckKernel<int64_t> : IndexCheckKernel<int32_t>, 1,
                      kThreads, 0, stream, check, fault_id, state);
}

}  // namespace halftone::cuda
