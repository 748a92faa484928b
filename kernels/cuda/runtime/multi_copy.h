// Many copies within device memory in one launch: weights that move between buffers, results that
// are kept.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

struct CopySegment {
  void* to;
  const void* from;
  size_t bytes;
};

// Copies the segments, in any order: what is written may overlap nothing else. With a gate (in
// device memory): none of them once it has a fault. One launch for every 144 segments.
cudaError_t LaunchMultiCopy(const CopySegment* segments, size_t count,
                            const kernels::DeviceRunState* gate, cudaStream_t stream);

}  // namespace halftone::cuda
