// Arguments of the optimizer loops in simd_optimizer.cc: the scalars of one step, and the arrays of
// one tensor.
#pragma once

namespace halftone::kernels {

struct SgdStep {
  float lr = 0, inv_scale = 1, clip = 1;
  float clip_value = 0;  // 0: no clipping
  float momentum = 0, one_minus_dampening = 1, weight_decay = 0;
  bool nesterov = false;
  bool first = false;  // the buffer starts as the gradient
};
struct SgdArrays {
  const float* param = nullptr;
  const float* grad = nullptr;
  const float* buffer = nullptr;  // null without momentum
  float* param_out = nullptr;
  float* buffer_out = nullptr;
};

struct AdamStep {
  float inv_scale = 1, clip = 1;
  float clip_value = 0;  // 0: no clipping
  float one_minus_beta1 = 0, beta2 = 0, one_minus_beta2 = 0, eps = 0;
  float weight_decay = 0;           // added to the gradient (Adam)
  float decay = 1;                  // multiplies the parameter (AdamW)
  float step_size = 0;              // lr / (1 - beta1^t)
  float bias_correction2_sqrt = 1;  // sqrt(1 - beta2^t)
};
struct AdamArrays {
  const float* param = nullptr;
  const float* grad = nullptr;
  const float* exp_avg = nullptr;
  const float* exp_avg_sq = nullptr;
  float* param_out = nullptr;
  float* exp_avg_out = nullptr;
  float* exp_avg_sq_out = nullptr;
};

}  // namespace halftone::kernels
