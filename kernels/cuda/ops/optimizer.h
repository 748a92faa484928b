// The update ops on the device, many parameters in one launch; those of rows, one table in one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halftone/core/dtype.h"
#include "halftone/graph/ops/support/update_hypers.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::cuda {

enum class CopyType : uint8_t { kNone, kF16, kBF16 };

struct UpdateMember {
  int64_t size;
  CopyType copy;
  uint64_t seed = 0;  // of stochastic rounding
};

// How parameters and states are kept: f64, f32, or bf16 and how it is rounded to.
struct UpdateStorage {
  DType dtype;
  ops::UpdateRounding rounding;
};

inline constexpr int64_t kUpdateChunk = 4096;  // elements of a block

// What a trust ratio is made of: the sums of squares of a chunk, or of a parameter.
struct UpdateSquares {
  double param, direction;
};

// The parameters that are updated: operands as a kernel of a group gets them, one member's after
// the other's. Outputs may be the inputs; the scalar operands are those of the first member.
struct UpdateGroup {
  const UpdateMember* members;
  size_t count;
  const void* const* inputs;
  void* const* outputs;
  void* const* copies;
  // Of an update with a trust ratio: room for every chunk of every member, and for every member.
  UpdateSquares* squares;
  const kernels::DeviceRunState* state;
};

// Parameters, gradients and states are of one type. Where the flag `apply` is false outputs become
// their inputs, and copies the rounded parameters; nothing is written once the step has a fault.
#define HT_UPDATE(Name, ...)                                                         \
  cudaError_t LaunchUpdate(const ops::Name##Update& hyper, const UpdateGroup& group, \
                           const UpdateStorage& storage, cudaStream_t stream);
#include "halftone/graph/ops/support/optimizers.def"

// A table of `rows` rows, `count` of which are updated: operands as a kernel gets them, but that
// outputs hold the tables already.
struct RowUpdate {
  const void* const* inputs;
  void* const* outputs;
  int64_t rows, width, count;
  uint64_t seed;
  const kernels::DeviceRunState* state;
};

// As above; ids out of the table are none.
#define HT_ROW_WISE(Name, ...)                                                         \
  cudaError_t LaunchRowUpdate(const ops::Name##Update& hyper, const RowUpdate& update, \
                              const UpdateStorage& storage, cudaStream_t stream);
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::cuda
