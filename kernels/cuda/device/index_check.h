// Indices that arrive at run time (labels, token ids), checked before a kernel uses them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

struct IndexCheck {
  const void* indices;
  int64_t count;
  bool wide;      // i64, else i32
  int64_t bound;  // valid: [0, bound)
  bool has_ignored = false;
  int64_t ignored = 0;         // a value that is valid too and does not count
  int64_t* counted = nullptr;  // if given, receives how many indices are valid and not ignored
};

// The first bad index by position becomes the fault of the step, unless it has one already. The
// kernels behind it run on: they must treat a bad index as one that reads and writes nothing.
cudaError_t LaunchIndexCheck(const IndexCheck& check, int64_t fault_id,
                             kernels::DeviceRunState* state, cudaStream_t stream);

}  // namespace halftone::cuda
