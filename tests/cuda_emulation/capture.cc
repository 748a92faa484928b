// What may not be done while a stream captures.
#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {

cudaError_t Runtime::RefuseUnsafeCall() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode != cudaStreamCaptureModeGlobal &&
        !(own && capture->mode == cudaStreamCaptureModeThreadLocal)) {
      continue;
    }
    capture->invalidated = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  if (error != cudaSuccess) Report("a call that may not be made while a stream captures");
  return error;
}

cudaError_t Runtime::RefuseCapturing(CUstream_st& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->invalidated = true;
  Report("a wait for, or a query of, a stream that captures");
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t Runtime::RefuseLegacyStream(const CUstream_st& s) {
  if (&s != devices[s.device].legacy.get()) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (const auto& capture : captures) {
    for (const CUstream_st* stream : capture->streams) {
      if (stream->device != s.device || !stream->blocking()) continue;
      capture->invalidated = true;
      error = cudaErrorStreamCaptureImplicit;
    }
  }
  if (error != cudaSuccess) {
    Report("use of the legacy stream while a stream captures that is not cudaStreamNonBlocking");
  }
  return error;
}

}  // namespace halftone::emulation
