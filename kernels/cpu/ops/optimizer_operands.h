// Operands of the update loops in simd_optimizer.cc, of one step and a piece of one tensor.
#pragma once

namespace halftone::kernels {

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
};

}  // namespace halftone::kernels
