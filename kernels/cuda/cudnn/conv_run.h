// Carrying out a convolution by a cuDNN plan, with what has to happen around it: filters, which the
// graph stores as [O,C/groups,kh,kw], in the order of a channels-last plan, and 16-bit operands as
// f32 for an f32 weight gradient that the library does not make of them.
#pragma once

#include <memory>
#include <vector>

#include "halftone/kernels/cuda/cudnn/conv_graph.h"
#include "halftone/kernels/cuda/cudnn/handle.h"
#include "halftone/kernels/cuda/cudnn/plan.h"

namespace halftone::cuda {

// Operands, and the result in the place of the one it stands for.
struct ConvPointers {
  const void *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr;
};

struct ConvRunShape {
  CudnnConv conv;  // as the library is to see it, operands in their own dtypes
  // Channels-last: w lies as [O,C/groups,kh,kw] and goes through the workspace.
  bool reorder_filter = false;
};

// Not thread-safe.
class ConvRun {
 public:
  // `plan`, of a CudnnConvGraph, is for the operands as they are, or for what Widened makes of them.
  ConvRun(const ConvRunShape& shape, CudnnPlan plan, CudnnHandle* handle);

  static constexpr int64_t kWidenedBytes = int64_t{128} << 20;
  // The convolution that a plan of widened operands is for: f32, in as few steps over the images as
  // keep the widened operands within `limit` bytes (one image at least), each adding to dw.
  static CudnnConv Widened(const CudnnConv& conv, int64_t limit = kWidenedBytes);

  const CudnnPlan& plan() const { return plan_; }
  bool widened() const { return widened_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // `workspace`: workspace_bytes() bytes of any alignment.
  absl::Status Launch(const ConvPointers& pointers, void* workspace, cudaStream_t stream);

 private:
  struct Pack {
    std::vector<void*> pointers;  // in the order of the graph's uids; the workspace last
    CudnnDescriptor descriptor;
  };
  const CudnnConvGraph& graph() const { return static_cast<const CudnnConvGraph&>(*plan_.graph); }
  absl::Status ExecuteStep(int64_t step, const ConvPointers& pointers, void* workspace,
                           cudaStream_t stream);

  ConvRunShape shape_;
  CudnnPlan plan_;
  bool widened_ = false;
  CudnnHandle* handle_;
  int64_t steps_ = 1;
  // In the workspace, in this order; that of the plan is last.
  int64_t filter_bytes_ = 0, widened_x_bytes_ = 0, widened_y_bytes_ = 0;
  int64_t workspace_bytes_ = 0;
  std::vector<Pack> packs_;  // of every step, kept while the pointers stay
};

}  // namespace halftone::cuda
