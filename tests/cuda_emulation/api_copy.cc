// Copies and memsets. What makes the host wait: CUDA Runtime API 13.0, "API synchronization
// behavior".
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {
namespace {

enum class Place : uint8_t { kDevice, kPinned, kPageable };

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  Place to_place, from_place;
};

Place PlaceOf(const Runtime& r, const void* p) {
  if (r.memory.Contains(p)) return Place::kDevice;
  return r.IsPinned(p) ? Place::kPinned : Place::kPageable;
}

bool KindFits(const Copy& copy, cudaMemcpyKind kind) {
  const bool to_device = copy.to_place == Place::kDevice;
  const bool from_device = copy.from_place == Place::kDevice;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

cudaError_t CheckDeviceRange(Runtime& r, const char* what, const void* p, size_t bytes) {
  if (r.memory.Covers(p, bytes)) return cudaSuccess;
  r.Report(std::string(what) + " of " + std::to_string(bytes) + " bytes out of bounds: from " +
           (r.memory.Contains(p) ? r.memory.Describe(p) : "what is no device memory"));
  return cudaErrorInvalidValue;
}

cudaError_t Check(Runtime& r, const Copy& copy, cudaMemcpyKind kind) {
  if (!KindFits(copy, kind)) {
    r.Report("cudaMemcpyKind " + std::to_string(kind) + " does not fit the pointers of the copy");
    return cudaErrorInvalidValue;
  }
  if (copy.to_place == Place::kDevice) {
    if (const auto e = CheckDeviceRange(r, "copy to", copy.to, copy.bytes)) return e;
  }
  if (copy.from_place == Place::kDevice) {
    if (const auto e = CheckDeviceRange(r, "copy from", copy.from, copy.bytes)) return e;
  }
  return cudaSuccess;
}

std::function<void()> CopyWork(const Copy& copy) {
  return [copy] {
    const DeviceAccess access(GetRuntime().memory);
    std::memmove(copy.to, copy.from, copy.bytes);
  };
}

// The source may change once the call has returned.
std::function<void()> StagedCopyWork(const Copy& copy) {
  const char* from = static_cast<const char*>(copy.from);
  auto staged = std::make_shared<std::vector<char>>(from, from + copy.bytes);
  return [to = copy.to, staged] {
    const DeviceAccess access(GetRuntime().memory);
    std::memcpy(to, staged->data(), staged->size());
  };
}

// `blocking`: cudaMemcpy.
cudaError_t CopyOn(Runtime& r, cudaStream_t handle, const Copy& copy, cudaMemcpyKind kind,
                   bool blocking) {
  const std::shared_ptr<CUstream_st> stream = r.Find(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (copy.bytes == 0) return cudaSuccess;
  if (const cudaError_t error = Check(r, copy, kind)) return error;
  ++r.statistics.copies;
  const bool pageable = copy.to_place == Place::kPageable || copy.from_place == Place::kPageable;
  if (stream->capture != nullptr && pageable) {
    stream->capture->invalidated = true;
    r.Report("a copy between device and pageable memory in a stream that captures");
    return cudaErrorStreamCaptureUnsupported;
  }
  const bool on_device = copy.to_place == Place::kDevice && copy.from_place == Place::kDevice;
  const bool on_host = copy.to_place != Place::kDevice && copy.from_place != Place::kDevice;
  if (stream->capture != nullptr || (!pageable && !on_host && !(blocking && !on_device))) {
    return r.Submit(stream, cudaGraphNodeTypeMemcpy, CopyWork(copy));
  }
  ++r.statistics.host_synchronisations;
  if (copy.to_place == Place::kDevice && copy.from_place == Place::kPageable) {
    // Back when the source is staged; the copy itself may still wait.
    if (blocking) r.RunUntil(stream, stream->issued);
    return r.Submit(stream, cudaGraphNodeTypeMemcpy, StagedCopyWork(copy));
  }
  if (const auto e = r.Submit(stream, cudaGraphNodeTypeMemcpy, CopyWork(copy))) return e;
  r.RunUntil(stream, stream->issued);
  return r.devices[stream->device].sticky;
}

Copy MakeCopy(const Runtime& r, void* to, const void* from, size_t bytes) {
  return {to, from, bytes, PlaceOf(r, to), PlaceOf(r, from)};
}

cudaError_t SetOn(Runtime& r, cudaStream_t handle, void* p, int value, size_t bytes) {
  const std::shared_ptr<CUstream_st> stream = r.Find(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (const auto e = CheckDeviceRange(r, "memset", p, bytes)) return e;
  ++r.statistics.memsets;
  return r.Submit(stream, cudaGraphNodeTypeMemset, [=] {
    const DeviceAccess access(GetRuntime().memory);
    std::memset(p, value, bytes);
  });
}

// cudaMemcpy and cudaMemset use the legacy stream.
cudaError_t RefuseBlockingCall(Runtime& r) {
  if (const auto e = r.RefuseLegacyStream(*r.current_device().legacy)) return e;
  return r.RefuseUnsafeCall();
}

}  // namespace
}  // namespace halftone::emulation

using halftone::emulation::ApiCall;
using halftone::emulation::Runtime;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return ApiCall([&](Runtime& r) {
    return CopyOn(r, stream, halftone::emulation::MakeCopy(r, to, from, bytes), kind, false);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return ApiCall([&](Runtime& r) {
    if (const cudaError_t error = halftone::emulation::RefuseBlockingCall(r)) return error;
    return CopyOn(r, nullptr, halftone::emulation::MakeCopy(r, to, from, bytes), kind, true);
  });
}

cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t stream) {
  return ApiCall(
      [&](Runtime& r) { return halftone::emulation::SetOn(r, stream, p, value, bytes); });
}

// Does not wait either.
cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  return ApiCall([&](Runtime& r) {
    if (const cudaError_t error = halftone::emulation::RefuseBlockingCall(r)) return error;
    return halftone::emulation::SetOn(r, nullptr, p, value, bytes);
  });
}

}  // extern "C"
