// Allocation of device and pinned host memory.
#include <cstdlib>
#include <cstring>

#include "halftone/tests/cuda_emulation/runtime.h"

using halftone::emulation::AfterFailure;
using halftone::emulation::ApiCall;
using halftone::emulation::DeviceAccess;
using halftone::emulation::Runtime;

namespace {

constexpr size_t kPinnedAlignment = 4096;
// Sizes no host has: AddressSanitizer ends the process where the host's allocator would say no.
constexpr size_t kMaxPinnedBytes = size_t{1} << 36;

cudaError_t Allocate(Runtime& r, void** p, size_t bytes) {
  *p = nullptr;
  if (bytes == 0) return cudaSuccess;
  const int device = Runtime::current();
  const size_t live = r.memory.live_bytes(device);
  if (bytes > r.options.memory_bytes || live > r.options.memory_bytes - bytes) {
    return cudaErrorMemoryAllocation;
  }
  *p = r.memory.Allocate(bytes, device);
  if (*p == nullptr) return cudaErrorMemoryAllocation;
  ++r.statistics.device_allocations;
  return cudaSuccess;
}

cudaError_t Release(Runtime& r, int device, void* p) {
  std::string changed;
  {
    const DeviceAccess access(r.memory);
    changed = r.memory.CheckRedZones();
  }
  if (!changed.empty()) r.FailDevice(device, cudaErrorIllegalAddress, changed);
  if (!r.memory.Free(p)) {
    r.Report("cudaFree of what is not the start of a live allocation");
    return cudaErrorInvalidValue;
  }
  return r.devices[device].sticky;
}

cudaError_t AllocatePinned(Runtime& r, void** p, size_t bytes) {
  *p = nullptr;
  if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kMaxPinnedBytes) return cudaErrorMemoryAllocation;
  if (posix_memalign(p, kPinnedAlignment, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*p, 0xFF, bytes);
  r.pinned[reinterpret_cast<uintptr_t>(*p)] = bytes;
  ++r.statistics.pinned_allocations;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** p, size_t bytes) {
  return ApiCall([&](Runtime& r) {
    if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
    return Allocate(r, p, bytes);
  });
}

// Waits for the device. Memory of a device that has failed is freed all the same.
cudaError_t cudaFree(void* p) {
  return ApiCall(
      [&](Runtime& r) -> cudaError_t {
        if (p == nullptr) return cudaSuccess;
        if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
        const halftone::emulation::DeviceAllocation* allocation = r.memory.Find(p);
        const int device = allocation == nullptr ? Runtime::current() : allocation->device;
        ++r.statistics.host_synchronisations;
        r.RunDevice(device);
        return Release(r, device, p);
      },
      AfterFailure::kRelease);
}

// Allocates at once; the order of the stream is a promise to the caller that this keeps.
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t stream) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    const auto found = r.Find(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (found->capture != nullptr) {
      r.Report("allocation nodes of graphs are not emulated");
      return r.RefuseCapturing(*found);
    }
    return Allocate(r, p, bytes);
  });
}

cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    const auto found = r.Find(stream);
    if (found == nullptr) return cudaErrorInvalidResourceHandle;
    if (found->capture != nullptr) {
      r.Report("free nodes of graphs are not emulated");
      return r.RefuseCapturing(*found);
    }
    if (p == nullptr) return cudaSuccess;
    if (r.memory.Find(p) == nullptr) return cudaErrorInvalidValue;
    return r.Submit(found, cudaGraphNodeTypeMemFree, [device = found->device, p] {
      Release(halftone::emulation::GetRuntime(), device, p);
    });
  });
}

cudaError_t cudaMallocHost(void** p, size_t bytes) {
  return ApiCall([&](Runtime& r) { return AllocatePinned(r, p, bytes); });
}

cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags) {
  return ApiCall([&](Runtime& r) {
    constexpr unsigned kKnown =
        cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if ((flags & ~kKnown) != 0) return cudaErrorInvalidValue;
    return AllocatePinned(r, p, bytes);
  });
}

// Waits for all devices, whose work may still use the memory.
cudaError_t cudaFreeHost(void* p) {
  return ApiCall(
      [&](Runtime& r) -> cudaError_t {
        if (p == nullptr) return cudaSuccess;
        if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
        ++r.statistics.host_synchronisations;
        for (int i = 0; i < r.options.device_count; ++i) r.RunDevice(i);
        if (r.pinned.erase(reinterpret_cast<uintptr_t>(p)) == 0) {
          r.Report("cudaFreeHost of what is not the start of pinned memory");
          return cudaErrorInvalidValue;
        }
        std::free(p);
        return cudaSuccess;
      },
      AfterFailure::kRelease);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return ApiCall([&](Runtime& r) {
    *total_bytes = r.options.memory_bytes;
    *free_bytes = r.options.memory_bytes - r.memory.live_bytes(Runtime::current());
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  return ApiCall([&](Runtime& r) {
    *attributes = {};
    const halftone::emulation::DeviceAllocation* allocation = r.memory.Find(p);
    if (allocation != nullptr) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = allocation->device;
      attributes->devicePointer = const_cast<void*>(p);
    } else if (r.IsPinned(p)) {
      attributes->type = cudaMemoryTypeHost;
      attributes->devicePointer = attributes->hostPointer = const_cast<void*>(p);
    } else {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(p);
    }
    return cudaSuccess;
  });
}

}  // extern "C"
