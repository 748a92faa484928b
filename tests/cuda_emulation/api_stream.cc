// Streams, host functions, and waiting for a device.
#include <algorithm>

#include "halftone/tests/cuda_emulation/runtime.h"

using halftone::emulation::AfterFailure;
using halftone::emulation::ApiCall;
using halftone::emulation::Runtime;

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

template <typename Body>
cudaError_t StreamCall(cudaStream_t handle, Body&& body) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    const std::shared_ptr<CUstream_st> stream = r.Find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return body(r, stream);
  });
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceSynchronize() {
  return ApiCall([&](Runtime& r) {
    const int device = Runtime::current();
    for (const auto& stream : r.StreamsOf(device)) {
      if (const cudaError_t error = r.RefuseCapturing(*stream)) return error;
    }
    ++r.statistics.host_synchronisations;
    r.RunDevice(device);
    return r.AfterWait(device);
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return ApiCall([&](Runtime&) {
    *least = kLeastPriority;
    *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return ApiCall([&](Runtime& r) {
    if ((flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
    auto created = std::make_shared<CUstream_st>();
    created->device = Runtime::current();
    created->flags = flags;
    created->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    *stream = created.get();
    r.streams[*stream] = std::move(created);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

// Does not wait: what is in the stream is still done.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return ApiCall(
      [&](Runtime& r) -> cudaError_t {
        const auto it = r.streams.find(handle);
        if (it == r.streams.end()) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = r.RefuseCapturing(*it->second)) return error;
        if (!it->second->queue.empty()) r.retired.push_back(it->second);
        r.streams.erase(it);
        return cudaSuccess;
      },
      AfterFailure::kRelease);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return StreamCall(handle, [&](Runtime&, const auto& stream) {
    *flags = stream->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return StreamCall(handle, [&](Runtime&, const auto& stream) {
    *priority = stream->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return StreamCall(handle, [&](Runtime& r, const auto& stream) {
    if (const cudaError_t error = r.RefuseCapturing(*stream)) return error;
    if (const cudaError_t error = r.RefuseLegacyStream(*stream)) return error;
    if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
    ++r.statistics.host_synchronisations;
    r.RunUntil(stream, stream->issued);
    return r.AfterWait(stream->device);
  });
}

// Each query lets one piece of work happen, so that a host that polls gets on.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return StreamCall(handle, [&](Runtime& r, const auto& stream) {
    if (const cudaError_t error = r.RefuseCapturing(*stream)) return error;
    if (const cudaError_t error = r.RefuseLegacyStream(*stream)) return error;
    if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
    if (stream->done < stream->issued) {
      if (!r.TryUntil(stream, stream->done + 1)) r.LeaveCpuToOthers();
      return cudaErrorNotReady;
    }
    return r.AfterWait(stream->device);
  });
}

// The function runs on the host: device memory stays closed to it, and so does this API.
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return StreamCall(handle, [&](Runtime& r, const auto& stream) {
    return r.Submit(stream, cudaGraphNodeTypeHost, [function, argument] {
      Runtime& runtime = halftone::emulation::GetRuntime();
      runtime.in_host_function = true;
      function(argument);
      runtime.in_host_function = false;
    });
  });
}

}  // extern "C"
