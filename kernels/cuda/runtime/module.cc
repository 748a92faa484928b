// The entry of libhalftone_cuda.so; in the emulated form a plain function of the program.
#include "halftone/kernels/cuda/runtime/backend.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/cuda_module.h"

namespace halftone::kernels {
namespace {

void ShareAllocationState(internal::AllocationStateFunction of_this_thread) {
  if (internal::allocation_state != of_this_thread) internal::allocation_state = of_this_thread;
}

absl::StatusOr<std::unique_ptr<DeviceBackend>> Open(int index) {
  return cuda::CudaBackend::Open(index);
}

}  // namespace
}  // namespace halftone::kernels

extern "C" __attribute__((visibility("default"))) const halftone::kernels::CudaModule*
halftone_cuda_module() {
  namespace kernels = halftone::kernels;
  static const auto* const abi = new std::string(kernels::CudaAbi());
  static const kernels::CudaModule module{abi->c_str(), &kernels::ShareAllocationState,
                                          &kernels::RegisterCudaKernels, &kernels::Open};
  return &module;
}
