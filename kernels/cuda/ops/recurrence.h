// lstm, gru and their gradients on the device: what follows the product of a step.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::cuda {

struct RecurrenceParams {
  DType dtype;  // T below; W is f32, or f64 for f64
  int64_t batch, hidden;
};

// Arrays of one step. Products are what the weights give: of h to the gates, or of the gates' gradient
// to h; null: 0.
struct LstmCellArrays {
  const void *x, *product;  // T, W: [B,4H]
  const void* c_before;     // W [B,H]
  void* gates;              // T [B,4H]; may be x
  void* c;                  // W
  void* m;                  // T [B,H]: o tanh(c)
};
struct LstmCellGradArrays {
  const void* product;       // W [B,H]: of m
  const void* dh;            // T [B,H], or null: added to it
  void* dh_sum;              // T: both, where dh is; may be dh
  const void* gates;         // T [B,4H]
  const void *c, *c_before;  // W [B,H]
  const void* dc;            // W, of the step after; may be new_dc
  void* new_dc;              // for the step before
  void* dx;                  // T [B,4H]; may be gates
};
struct GruCellArrays {
  const void *x, *product;  // T, W: [B,3H]
  const void* b;            // W [3H], or null
  const void* h_before;     // T [B,H], unless there is a
  const void* state;        // W [B,H]; may be new_state
  void *gates, *share, *h;  // T; gates may be x
  void* new_state;          // W, or null
};
struct GruCellGradArrays {
  const void *product, *dh;              // W, T: [B,H]
  const void *gates, *share, *h_before;  // T
  const void* kept;                      // W, of the step after, or null; may be new_kept
  void* new_kept;                        // for the step before
  void *dx, *ds;                         // T [B,3H]; dx may be gates
};

cudaError_t LaunchLstmCell(const RecurrenceParams& params, const LstmCellArrays& arrays,
                           cudaStream_t stream);
cudaError_t LaunchLstmCellGrad(const RecurrenceParams& params, const LstmCellGradArrays& arrays,
                               cudaStream_t stream);
cudaError_t LaunchGruCell(const RecurrenceParams& params, const GruCellArrays& arrays,
                          cudaStream_t stream);
cudaError_t LaunchGruCellGrad(const RecurrenceParams& params, const GruCellGradArrays& arrays,
                              cudaStream_t stream);

// y [T] = product [W] + more [W or T], of `size` elements; what is null counts as 0. y may be more.
cudaError_t LaunchAddToProduct(DType dtype, int64_t size, const void* product, const void* more,
                               bool more_is_wide, void* y, cudaStream_t stream);

}  // namespace halftone::cuda
