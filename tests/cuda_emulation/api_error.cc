// Errors.
#include "halftone/tests/cuda_emulation/runtime.h"

namespace {

struct ErrorText {
  cudaError_t code;
  const char *name, *text;
};

#define HT_EMULATION_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorText kErrors[] = {
    HT_EMULATION_ERROR(cudaSuccess, "no error"),
    HT_EMULATION_ERROR(cudaErrorInvalidValue, "invalid argument"),
    HT_EMULATION_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    HT_EMULATION_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    HT_EMULATION_ERROR(cudaErrorInitializationError, "initialization error"),
    HT_EMULATION_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    HT_EMULATION_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    HT_EMULATION_ERROR(cudaErrorInsufficientDriver,
                       "CUDA driver version is insufficient for CUDA runtime version"),
    HT_EMULATION_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    HT_EMULATION_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    HT_EMULATION_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    HT_EMULATION_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    HT_EMULATION_ERROR(cudaErrorIllegalState,
                       "the operation cannot be performed in the present state"),
    HT_EMULATION_ERROR(cudaErrorNotReady, "device not ready"),
    HT_EMULATION_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    HT_EMULATION_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    HT_EMULATION_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    HT_EMULATION_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    HT_EMULATION_ERROR(cudaErrorNotSupported, "operation not supported"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureUnsupported,
                       "operation not permitted when stream is capturing"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureInvalidated,
                       "operation failed due to a previous error during capture"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureMerge,
                       "operation would result in a merge of separate capture sequences"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureUnmatched,
                       "capture was not ended in the same stream as it began"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureIsolation,
                       "dependency created on uncaptured work in another stream"),
    HT_EMULATION_ERROR(
        cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    HT_EMULATION_ERROR(cudaErrorCapturedEvent,
                       "operation not permitted on an event last recorded in a capturing stream"),
    HT_EMULATION_ERROR(cudaErrorStreamCaptureWrongThread,
                       "attempt to terminate a thread-local capture sequence from another thread"),
};
#undef HT_EMULATION_ERROR

const ErrorText* Find(cudaError_t code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t code) {
  const ErrorText* error = Find(code);
  return error == nullptr ? "unrecognized error code" : error->name;
}

const char* cudaGetErrorString(cudaError_t code) {
  const ErrorText* error = Find(code);
  return error == nullptr ? "unrecognized error code" : error->text;
}

// Errors of failed work stay.
cudaError_t cudaGetLastError() {
  using halftone::emulation::Runtime;
  const cudaError_t error = cudaPeekAtLastError();
  Runtime::last_error() = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  using halftone::emulation::Runtime;
  Runtime& r = halftone::emulation::GetRuntime();
  const std::scoped_lock lock(r.mutex);
  const cudaError_t sticky = r.current_device().sticky;
  return sticky != cudaSuccess ? sticky : Runtime::last_error();
}

}  // extern "C"
