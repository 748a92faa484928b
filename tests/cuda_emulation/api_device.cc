// Devices, versions, kernels' attributes.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "halftone/tests/cuda_emulation/device_limits.h"
#include "halftone/tests/cuda_emulation/ready_set.h"
#include "halftone/tests/cuda_emulation/runtime.h"

using halftone::emulation::ApiCall;
using halftone::emulation::Options;
using halftone::emulation::Runtime;

namespace {

constexpr int kCudaVersion = 13000;
constexpr int kWarpSize = 32;
constexpr int kClockKilohertz = 1000000;
constexpr int kRegistersPerMultiprocessor = 65536;

bool IsDevice(const Runtime& r, int device) {
  return device >= 0 && device < r.options.device_count;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return ApiCall([&](Runtime& r) {
    *count = r.options.device_count;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return ApiCall([&](Runtime&) {
    *device = Runtime::current();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return ApiCall([&](Runtime& r) {
    if (!IsDevice(r, device)) return cudaErrorInvalidDevice;
    Runtime::current() = device;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = halftone::emulation::GetOptions().no_driver ? 0 : kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return ApiCall([&](Runtime& r) {
    if (!IsDevice(r, device)) return cudaErrorInvalidDevice;
    const Options& options = r.options;
    std::memset(properties, 0, sizeof(*properties));
    std::snprintf(properties->name, sizeof(properties->name), "Emulated CUDA device");
    properties->major = options.compute_major;
    properties->minor = options.compute_minor;
    properties->totalGlobalMem = options.memory_bytes;
    properties->sharedMemPerBlock = size_t{48} * 1024;
    properties->sharedMemPerBlockOptin = SharedBytesOptIn(options);
    properties->sharedMemPerMultiprocessor = SharedBytesPerMultiprocessor(options);
    properties->regsPerBlock = kRegistersPerMultiprocessor;
    properties->regsPerMultiprocessor = kRegistersPerMultiprocessor;
    properties->warpSize = kWarpSize;
    properties->maxThreadsPerBlock = halftone::emulation::kMaxThreads;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = halftone::emulation::kMaxThreads;
    properties->maxThreadsDim[2] = halftone::emulation::kMaxBlockZ;
    properties->maxGridSize[0] = halftone::emulation::kMaxGridX;
    properties->maxGridSize[1] = properties->maxGridSize[2] = halftone::emulation::kMaxGridYz;
    properties->multiProcessorCount = halftone::emulation::kMultiprocessors;
    properties->maxThreadsPerMultiProcessor = ThreadsPerMultiprocessor(options);
    properties->maxBlocksPerMultiProcessor = BlocksPerMultiprocessor(options);
    properties->unifiedAddressing = 1;
    properties->asyncEngineCount = 2;
    properties->concurrentKernels = 1;
    properties->streamPrioritiesSupported = 1;
    properties->textureAlignment = properties->memPitch = 512;
    properties->pciDeviceID = device;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device)) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(properties.sharedMemPerMultiprocessor);
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = properties.warpSize;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = properties.maxThreadsPerMultiProcessor;
      return cudaSuccess;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = properties.maxBlocksPerMultiProcessor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return cudaSuccess;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      *value = kClockKilohertz;
      return cudaSuccess;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
      *value = 1;
      return cudaSuccess;
    default:
      return ApiCall([&](Runtime& r) {
        r.Report("device attribute " + std::to_string(attribute) + " is not emulated");
        return cudaErrorInvalidValue;
      });
  }
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return ApiCall([&](Runtime& r) {
    if (function == nullptr) return cudaErrorInvalidDeviceFunction;
    const bool fits = value >= 0 && static_cast<size_t>(value) <= SharedBytesOptIn(r.options);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && !fits) {
      return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return ApiCall([&](Runtime& r) {
    if (function == nullptr) return cudaErrorInvalidDeviceFunction;
    std::memset(attributes, 0, sizeof(*attributes));
    attributes->maxThreadsPerBlock = halftone::emulation::kMaxThreads;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(SharedBytesOptIn(r.options));
    attributes->binaryVersion = r.options.compute_major * 10 + r.options.compute_minor;
    return cudaSuccess;
  });
}

// By threads and dynamic shared memory; registers are not known here.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared_bytes) {
  return ApiCall([&](Runtime& r) {
    if (function == nullptr) return cudaErrorInvalidDeviceFunction;
    if (block_size <= 0) return cudaErrorInvalidValue;
    const int warps = (block_size + kWarpSize - 1) / kWarpSize;
    *blocks = std::min(BlocksPerMultiprocessor(r.options),
                       ThreadsPerMultiprocessor(r.options) / (warps * kWarpSize));
    if (shared_bytes > 0) {
      *blocks = std::min(*blocks,
                         static_cast<int>(SharedBytesPerMultiprocessor(r.options) / shared_bytes));
    }
    return cudaSuccess;
  });
}

}  // extern "C"
