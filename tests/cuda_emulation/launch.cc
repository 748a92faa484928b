// Launches: their checks, and kernels and library calls as work of a stream.
#include <cstdio>
#include <utility>

#include "halftone/tests/cuda_emulation/device_hooks.h"
#include "halftone/tests/cuda_emulation/device_limits.h"
#include "halftone/tests/cuda_emulation/engine.h"
#include "halftone/tests/cuda_emulation/fault_handler.h"
#include "halftone/tests/cuda_emulation/host_pointers.h"
#include "halftone/tests/cuda_emulation/library_work.h"
#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {
namespace {

// Why the device would refuse, or null.
const char* InvalidConfiguration(const LaunchRequest& request) {
  const dim3 &grid = request.grid, &block = request.block;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads || block.z > kMaxBlockZ) return "block size";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return "empty grid";
  if (grid.x > kMaxGridX || grid.y > kMaxGridYz || grid.z > kMaxGridYz) return "grid size";
  if (request.parameter_bytes > kMaxParameterBytes) return "kernel parameters over 4 KiB";
  return nullptr;
}

void RunKernel(Runtime& r, int device, const LaunchRequest& request) {
  PrepareThreadForFaults();
  const Grid grid{request.grid,    request.block, request.shared_bytes, SharedBytesOptIn(r.options),
                  r.options.order, r.options.seed};
  std::string failure;
  {
    const DeviceAccess access(r.memory);
    const KernelCall call{request.thread, request.arguments.get()};
    const HostPointerGuard guard(r, request);
    failure = RunGrid(grid, call, r.statistics);
  }
  if (!failure.empty()) r.FailDevice(device, cudaErrorLaunchFailure, failure);
}

}  // namespace

cudaError_t Launch(LaunchRequest request) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    const bool too_much_shared = request.shared_bytes > SharedBytesOptIn(r.options);
    const char* why = too_much_shared ? "dynamic shared memory" : InvalidConfiguration(request);
    if (why != nullptr) {
      char text[256];
      std::snprintf(
          text, sizeof(text),
          "invalid launch: %s (grid %u,%u,%u, block %u,%u,%u, %zu bytes of shared memory, "
          "%zu of parameters)",
          why, request.grid.x, request.grid.y, request.grid.z, request.block.x, request.block.y,
          request.block.z, request.shared_bytes, request.parameter_bytes);
      r.Report(text);
      // A launch on a real device opts in to the shared memory first, with this error.
      return too_much_shared ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration;
    }
    const std::shared_ptr<CUstream_st> stream = r.Find(request.stream);
    if (stream == nullptr || stream->device != Runtime::current()) {
      return cudaErrorInvalidResourceHandle;
    }
    const int argument = HostPointerArgument(r, request);
    if (argument >= 0) {
      r.FailDevice(stream->device, cudaErrorIllegalAddress,
                   "kernel argument " + std::to_string(argument) + " is a pointer to host memory");
      return cudaErrorIllegalAddress;
    }
    ++r.statistics.launches;
    if (r.IsToFail(Call::kLaunch)) return cudaErrorLaunchOutOfResources;
    return r.Submit(stream, cudaGraphNodeTypeKernel,
                    [device = stream->device, request = std::move(request)] {
                      RunKernel(GetRuntime(), device, request);
                    });
  });
}

bool IsDevicePointer(const void* p) { return GetRuntime().memory.Contains(p); }

bool IsDeviceMemory(const void* p, size_t bytes) { return GetRuntime().memory.Covers(p, bytes); }

std::string DescribePointer(const void* p) {
  const Runtime& r = GetRuntime();
  return r.memory.Contains(p) ? r.memory.Describe(p) : "not device memory";
}

cudaError_t StreamWork(cudaStream_t stream, std::function<void()> run) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    ++r.statistics.library_calls;
    if (r.IsToFail(Call::kLibrary)) return cudaErrorMemoryAllocation;
    return r.Submit(stream, cudaGraphNodeTypeKernel, [run = std::move(run)] {
      const DeviceAccess access(GetRuntime().memory);
      run();
    });
  });
}

void Report(const std::string& text) {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  r.Report(text);
}

}  // namespace halftone::emulation
