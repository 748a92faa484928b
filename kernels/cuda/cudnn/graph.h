// An operation graph of cuDNN: what every kind of graph has, and its tensors. Sums are in f32
// whatever the operands' type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/kernels/cuda/cudnn/descriptor.h"

namespace halftone::cuda {

// Where a graph is to run: a handle, or (no device needed) the properties of a device, from which
// the library chooses and builds plans that cannot be run here.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* device = nullptr;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};

// Strides in elements.
struct CudnnTensor {
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  std::vector<int64_t> dims, strides;

  int64_t elements() const;
  int64_t bytes() const;         // from the first element to the last
  std::string ToString() const;  // "2[8,12,64](768,64,1)", the dtype as cuDNN numbers it
};

// "8,12,64".
std::string JoinInts(const std::vector<int64_t>& values);

// What an engine may not do to a graph's numbers.
struct CudnnPromises {
  bool low = false;  // operands of 16 bit
  // f32 operands hold widened 16-bit values: tensor cores' TF32 takes them as they are.
  bool tf32_is_exact = false;
  bool allow_tf32 = false;    // f32 operands may be rounded to it
  bool deterministic = true;  // engines must add in a fixed order
};

// Of device pointers in bytes: what the arena gives.
inline constexpr int64_t kTensorAlignment = 64;

enum class TensorKind : uint8_t {
  kDevice,   // in the variant pack, by a device pointer
  kVirtual,  // between two operations
  kByValue,  // in the variant pack, by a host pointer that is read when the plan is executed
};
// Finalized.
absl::StatusOr<CudnnDescriptor> MakeCudnnTensor(const CudnnTensor& t, int64_t uid,
                                                const std::string& what,
                                                TensorKind kind = TensorKind::kDevice);

class CudnnGraph {
 public:
  virtual ~CudnnGraph() = default;
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;

  const CudnnDescriptor& graph() const { return graph_; }
  const CudnnPromises& promises() const { return promises_; }

 protected:
  explicit CudnnGraph(const CudnnPromises& promises) : promises_(promises) {}
  // Of the operations in ops_.
  absl::Status FinishGraph(const CudnnTarget& target);

  std::vector<CudnnDescriptor> parts_;  // what the operations refer to
  std::vector<CudnnDescriptor> ops_;

 private:
  CudnnPromises promises_;
  CudnnDescriptor graph_;
};

}  // namespace halftone::cuda
