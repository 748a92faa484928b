// One convolution as a cuDNN operation graph: forward (with or without a bias), input gradient or
// weight gradient. Products are summed in f32 whatever the operands' type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "halftone/kernels/cuda/cudnn/graph.h"
#include "halftone/kernels/cuda/device/conv_product.h"

namespace halftone::cuda {

// Operands in the order [N,C,H,W] or [O,C/groups,kh,kw], of conv3d with one axis more.
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

  CudnnPromises promises() const;
  // All of the above in one line: the key of the autotuning cache, and what messages show.
  std::string ToString() const;
};

// How the operands are named in a variant pack.
enum CudnnUid : int64_t { kUidX = 1, kUidW = 2, kUidY = 3, kUidBias = 4 };

class CudnnConvGraph : public CudnnGraph {
 public:
  // Errors: those of the library; Unimplemented where it refuses the operands.
  static absl::StatusOr<std::shared_ptr<const CudnnConvGraph>> Make(const CudnnConv& conv,
                                                                    const CudnnTarget& target);
  const CudnnConv& conv() const { return conv_; }
  // Those of the variant pack: x, w, y and, if there is one, the bias.
  std::vector<int64_t> uids() const;

 private:
  explicit CudnnConvGraph(const CudnnConv& conv) : CudnnGraph(conv.promises()), conv_(conv) {}
  absl::Status Build(const CudnnTarget& target);

  CudnnConv conv_;
};

}  // namespace halftone::cuda
