#include "halftone/kernels/cuda/runtime/status.h"

#include <string>

namespace halftone::cuda {

absl::Status ToStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  // Of a whole call, its name.
  const std::string_view text(call);
  const std::string name(text.substr(0, text.find('(')));
  const std::string message =
      Concat(name, ": ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ")");
  if (error == cudaErrorMemoryAllocation) return ResourceExhausted(message);
  return Internal(message);
}

}  // namespace halftone::cuda
