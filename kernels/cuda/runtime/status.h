// Errors of the CUDA runtime as statuses.
#pragma once

#include <cuda_runtime_api.h>

#include "halftone/core/status.h"

namespace halftone::cuda {

// OK, or the call, the error's name and its text: "cudaMemcpyAsync: cudaErrorInvalidValue (invalid
// argument)". ResourceExhausted when memory ran out, Internal otherwise. The runtime then
// forgets the error, so that the next launch does not report it again.
absl::Status ToStatus(cudaError_t error, const char* call);

}  // namespace halftone::cuda

// Returns the status of the function around it when a runtime call fails.
#define HT_CUDA_RETURN_IF_ERROR(call) HT_RETURN_IF_ERROR(::halftone::cuda::ToStatus(call, #call))
