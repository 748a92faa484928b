// Carrying out attention, or its gradient, by a cuDNN plan: in as few steps over the batch as keep
// what the gradient's engines hold of the scores within the limit of workspaces.
#pragma once

#include <memory>
#include <vector>

#include "halftone/kernels/cuda/cudnn/attention_graph.h"
#include "halftone/kernels/cuda/cudnn/handle.h"
#include "halftone/kernels/cuda/cudnn/plan.h"

namespace halftone::cuda {

// Not thread-safe.
class AttentionRun {
 public:
  // `plan`, of a CudnnAttentionGraph, is for what OneStep makes of `whole`.
  AttentionRun(const CudnnAttention& whole, CudnnPlan plan, CudnnHandle* handle);

  // Of the gradient's 256 MiB, some is left for sums.
  static constexpr int64_t kScoreBytes = kCudnnWorkspaceLimit - (int64_t{16} << 20);
  // A part of the batch that keeps the scores' gradient, 16 bit in whole tiles of 64 x 128, within
  // `limit` bytes, or one element of it; all where parts of that size would not be aligned.
  static CudnnAttention OneStep(const CudnnAttention& whole, int64_t limit = kScoreBytes);

  const CudnnPlan& plan() const { return plan_; }
  // A multiple of 256.
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // `workspace`: workspace_bytes() bytes, 256-byte aligned; null if none.
  absl::Status Launch(const AttentionPointers& pointers, void* workspace, cudaStream_t stream);

 private:
  struct Pack {
    AttentionPointers pointers;
    void* workspace = nullptr;
    CudnnDescriptor descriptor;
  };

  CudnnAttention whole_;
  CudnnPlan plan_;
  CudnnHandle* handle_;
  int64_t workspace_bytes_ = 0;
  std::vector<Pack> packs_;  // of every step, kept while the pointers stay
};

}  // namespace halftone::cuda
