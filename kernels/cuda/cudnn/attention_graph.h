// Scaled dot-product attention, or its gradient, as a cuDNN operation graph: the composition of
// products, pointwise operations and reductions that the library's fused engines know. Which one
// that is, is not in its reference; https://github.com/NVIDIA/cudnn-frontend composes it so.
//
// Scores, sums and the softmax are f32; weights, and in the gradient those of the scores, are rounded
// to the operands' dtype before they are multiplied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/kernels/cuda/cudnn/graph.h"

namespace halftone::cuda {

struct CudnnAttention {
  bool gradient = false;
  // [B,H,L,E], [B,K,S,E], [B,K,S,V] and [B,H,L,V], any strides with 1 last; dy as y.
  CudnnTensor q, k, v, y;
  // Of the gradient: shapes of q, k and v.
  CudnnTensor dq, dk, dv;
  float scale = 1;
  bool causal = false;  // row i sees the columns 0..i

  // Those that there are.
  std::vector<CudnnTensor*> tensors();
  std::vector<const CudnnTensor*> tensors() const;
  int64_t rows() const { return q.dims[0] * q.dims[1] * q.dims[2]; }
  // All of the above in one line: the key of the autotuning cache, and what messages show.
  std::string ToString() const;
};

// What a variant pack points to; stats are f32 [B,H,L,1], dense.
struct AttentionPointers {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* y = nullptr;  // read by the gradient
  // Forward. The largest score of each row, and the sum of exp(score - largest).
  void *max = nullptr, *sum = nullptr;
  // Gradient. log(sum(exp(score))) of each row; sum(dy y) of each row, written.
  const void *log_sum_exp = nullptr, *dy = nullptr;
  void* delta = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;

  friend bool operator==(const AttentionPointers&, const AttentionPointers&) = default;
};

class CudnnAttentionGraph : public CudnnGraph {
 public:
  // Errors: those of the library; Unimplemented where it refuses the operands.
  static absl::StatusOr<std::shared_ptr<const CudnnAttentionGraph>> Make(
      const CudnnAttention& attention, const CudnnTarget& target);
  const CudnnAttention& attention() const { return attention_; }
  // The variant pack. This object holds the numbers that it points to.
  absl::StatusOr<CudnnDescriptor> Pack(const AttentionPointers& pointers, void* workspace) const;

 private:
  explicit CudnnAttentionGraph(const CudnnAttention& attention);
  absl::Status Build(const CudnnTarget& target);

  CudnnAttention attention_;
  // By value: the scale, what masked scores become, and 1.
  float scale_, masked_, one_ = 1;
};

}  // namespace halftone::cuda
