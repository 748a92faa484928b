// all_reduce_start, all_reduce_wait and all_reduce on the device: arrays into and out of the buffer of a
// reduction, and word of a failed rank with it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

// The arrays of one launch, as many as 4 KiB of parameters allow.
struct ConvertBatch {
  static constexpr int kArrays = 128;
  static constexpr int64_t kChunk = 8192;  // elements of a block

  const void* from[kArrays];
  void* to[kArrays];
  int64_t size[kArrays];
  ChunkTable<kArrays> table;
};

// to[i] = from[i] / divisor, in f32 (f64 if either dtype is), rounded once.
cudaError_t LaunchConvert(const ConvertBatch& batch, DType from, DType to, int divisor,
                          cudaStream_t stream);

// What ranks tell each other of their steps: for each rank the four numbers of a fault, 8 digits each, of
// 256, which every dtype holds. All are 0 but the own ones, so that sums are exact in any order.
inline constexpr int kFaultElements = 32;

// Writes this rank's fault, if it has one that the others have not heard of, among `ranks` at `words`.
cudaError_t LaunchTellFault(void* words, DType dtype, int rank, int ranks,
                            const kernels::DeviceRunState* state, cudaStream_t stream);
// The fault of the lowest rank that tells of one becomes the step's on every rank, instead of any other,
// unless the step has heard of one before. If `broken` is not 0, so does a fault of no rank: -1, named
// `fault_id`.
cudaError_t LaunchHearFault(const void* words, DType dtype, int ranks, const int32_t* broken,
                            int64_t fault_id, kernels::DeviceRunState* state, cudaStream_t stream);

}  // namespace halftone::cuda
