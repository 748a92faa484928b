// What the kernels of updates and of gradient statistics share; operands of the update loops in
// simd_optimizer.cc, of one step and a piece of one tensor.
#pragma once

#include <cstdint>

#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Pieces of a tensor whose sums are added in order: what comes out does not depend on the threads.
inline constexpr int64_t kSumBlock = 8192;

inline float ScalarF32(const KernelArgs& args, int port) {
  return *static_cast<const float*>(args.inputs[port]);
}

inline absl::Status HasNoF64(const ir::Node& node) {
  for (const ir::Value& v : node.inputs()) {
    if (v.dtype() == DType::kF64) return Unimplemented("no f64 state");
  }
  return absl::OkStatus();
}

struct UpdateOperands {
  static constexpr int kMostStates = 4;

  float lr = 0, inv_scale = 1, clip = 1;
  double step = 1;  // number of this step among the applied ones, from 1
  float trust = 1;  // of an update that has a trust ratio
  const float* param = nullptr;
  const float* grad = nullptr;
  const float* state[kMostStates] = {};  // by the number of the state; null: not there
  float* new_param = nullptr;
  float* new_state[kMostStates] = {};

  // The same of the piece from element `begin` on.
  UpdateOperands At(int64_t begin) const {
    UpdateOperands o = *this;
    o.param += begin, o.grad += begin, o.new_param += begin;
    for (int s = 0; s < kMostStates; ++s) {
      if (state[s] != nullptr) o.state[s] += begin, o.new_state[s] += begin;
    }
    return o;
  }
};

// Rows of a table of `in_table` rows, by id. Ids out of it are none.
struct UpdatedRows {
  const int64_t* ids;
  int64_t count, in_table, width;
};

}  // namespace halftone::kernels
