// One cuDNN handle a device.
#pragma once

#include <cudnn_graph.h>

#include <mutex>
#include <string>

#include "halftone/kernels/cuda/cudnn/descriptor.h"

namespace halftone::cuda {

// Made at the first use on its device and kept until the program ends: the driver may be gone
// before objects are destroyed. Thread-safe.
class CudnnHandle {
 public:
  // That of the current device. Errors: those of cudnnCreate and the CUDA runtime.
  static absl::StatusOr<CudnnHandle*> Current();

  // For whoever asks the library for plans, which uses the handle: held meanwhile, as Execute does.
  // NVIDIA allows a handle to one thread at a time.
  std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }
  cudnnHandle_t get() const { return handle_; }
  // Library's version and device, for keys of the autotuning cache: "cudnn 91900 NVIDIA H100".
  const std::string& description() const { return description_; }
  // Puts a plan's work on the stream. Not under Lock().
  absl::Status Execute(const CudnnDescriptor& plan, const CudnnDescriptor& variant_pack,
                       cudaStream_t stream);

 private:
  CudnnHandle() = default;

  cudnnHandle_t handle_ = nullptr;
  std::string description_;
  std::mutex mutex_;
};

}  // namespace halftone::cuda
