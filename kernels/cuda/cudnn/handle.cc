#include "halftone/kernels/cuda/cudnn/handle.h"

#include <map>
#include <memory>

#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {

absl::StatusOr<CudnnHandle*> CudnnHandle::Current() {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::map<int, std::unique_ptr<CudnnHandle>>;
  int device = 0;
  HT_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  const std::scoped_lock lock(*mutex);
  std::unique_ptr<CudnnHandle>& kept = (*handles)[device];
  if (kept == nullptr) {
    std::unique_ptr<CudnnHandle> made(new CudnnHandle);
    cudaDeviceProp properties;
    HT_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, device));
    made->description_ = Concat("cudnn ", cudnnGetVersion(), " ", properties.name);
    HT_CUDNN_RETURN_IF_ERROR(cudnnCreate(&made->handle_));
    kept = std::move(made);
  }
  return kept.get();
}

absl::Status CudnnHandle::Execute(const CudnnDescriptor& plan, const CudnnDescriptor& variant_pack,
                                  cudaStream_t stream) {
  const std::scoped_lock lock(mutex_);
  HT_CUDNN_RETURN_IF_ERROR(cudnnSetStream(handle_, stream));
  HT_CUDNN_RETURN_IF_ERROR(cudnnBackendExecute(handle_, plan.get(), variant_pack.get()));
  return absl::OkStatus();
}

}  // namespace halftone::cuda
