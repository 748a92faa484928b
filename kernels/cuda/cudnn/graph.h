// One convolution as a cuDNN operation graph: forward (with or without a bias), input gradient or
// weight gradient. Products are summed in f32 whatever the operands' type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "halftone/kernels/cuda/cudnn/descriptor.h"
#include "halftone/kernels/cuda/device/conv_product.h"

namespace halftone::cuda {

// Where a graph is to run: a handle, or (no device needed) the properties of a device, from which
// the library chooses and builds plans that cannot be run here.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* device = nullptr;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};

// An operand in the order [N,C,H,W] or [O,C/groups,kh,kw], of conv3d with one axis more; strides in
// elements.
struct CudnnTensor {
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  std::vector<int64_t> dims, strides;

  int64_t elements() const;
  int64_t bytes() const;
};

struct CudnnConv {
  ConvProduct product = ConvProduct::kForward;
  CudnnTensor x, w, y;  // dy, dx, dw likewise
  bool has_bias = false;
  cudnnDataType_t bias_dtype = CUDNN_DATA_FLOAT;
  std::vector<int64_t> stride, padding, dilation;  // of every spatial axis
  bool accumulate = false;                         // the result is added to what its tensor holds
  // f32 operands hold widened 16-bit values: tensor cores' TF32 takes them as they are.
  bool tf32_is_exact = false;
  bool allow_tf32 = false;    // f32 operands may be rounded to it
  bool deterministic = true;  // engines must add in a fixed order

  // All of the above in one line: the key of the autotuning cache, and what messages show.
  std::string ToString() const;
};

// How the operands are named in a variant pack.
enum CudnnUid : int64_t { kUidX = 1, kUidW = 2, kUidY = 3, kUidBias = 4 };

class CudnnGraph {
 public:
  // Errors: those of the library; Unimplemented where it refuses the operands.
  static absl::StatusOr<std::shared_ptr<const CudnnGraph>> Make(const CudnnConv& conv,
                                                                const CudnnTarget& target);
  const CudnnDescriptor& graph() const { return graph_; }
  const CudnnConv& conv() const { return conv_; }
  // Those of the variant pack: x, w, y and, if there is one, the bias.
  std::vector<int64_t> uids() const;

 private:
  explicit CudnnGraph(const CudnnConv& conv) : conv_(conv) {}
  absl::Status Build(const CudnnTarget& target);

  CudnnConv conv_;
  std::vector<CudnnDescriptor> parts_;  // tensors, convolution, pointwise; the graph refers to them
  std::vector<CudnnDescriptor> ops_;
  CudnnDescriptor graph_;
};

}  // namespace halftone::cuda
