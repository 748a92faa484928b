// Runtime: the state behind the emulated CUDA runtime API, and what its entry points share.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "halftone/tests/cuda_emulation/control.h"
#include "halftone/tests/cuda_emulation/device_memory.h"
#include "halftone/tests/cuda_emulation/streams.h"

namespace halftone::emulation {

struct Device {
  std::shared_ptr<CUstream_st> legacy;  // the stream of handle 0
  cudaError_t sticky = cudaSuccess;     // of failed work; every later call returns it
};

struct Runtime {
  Runtime();

  std::recursive_mutex mutex;
  Options options;
  Statistics statistics;
  std::string report;
  DeviceMemory memory;                 // of all devices
  std::map<uintptr_t, size_t> pinned;  // start to bytes
  std::vector<Device> devices;
  std::map<cudaStream_t, std::shared_ptr<CUstream_st>> streams;
  std::vector<std::shared_ptr<CUstream_st>> retired;  // destroyed with work in them
  std::map<cudaEvent_t, std::unique_ptr<CUevent_st>> events;
  std::vector<std::shared_ptr<Capture>> captures;  // begun and not ended
  unsigned long long num_captures = 0;
  bool in_host_function = false;
  uint64_t calls = 0;     // of the API, so far
  std::string waits_for;  // what work that waits for another process says of it
  uint64_t calls_until_failure[kNumCalls] = {};  // by Call; 0: none fails

  Device& current_device();

  // Keeps the text for LastReport and prints it.
  void Report(const std::string& text);
  // Work of `device` failed: reports, and makes it every later call's error.
  void FailDevice(int device, cudaError_t error, const std::string& text);
  bool IsPinned(const void* p) const;

  // The stream of a handle of the current device. Null: no live stream.
  std::shared_ptr<CUstream_st> Find(cudaStream_t handle);
  // All streams of a device that may hold work, the legacy one included.
  std::vector<std::shared_ptr<CUstream_st>> StreamsOf(int device);

  // Appends work to a stream, or to the graph that it captures. The one way for work to come about.
  cudaError_t Submit(cudaStream_t handle, cudaGraphNodeType type, std::function<void()> run);
  cudaError_t Submit(const std::shared_ptr<CUstream_st>& stream, cudaGraphNodeType type,
                     std::function<void()> run);
  // Work of several steps: `begin` makes the one of each launch, if it is captured.
  cudaError_t SubmitSteps(const std::shared_ptr<CUstream_st>& stream, cudaGraphNodeType type,
                          std::function<Step()> begin);
  // Runs the stream's work up to that number, and before each piece what it waits for. False: some of it
  // waits for another process.
  bool TryUntil(const std::shared_ptr<CUstream_st>& stream, uint64_t number);
  // Until it is done. What waits for another process for longer than Options::hang_seconds fails its device.
  void RunUntil(const std::shared_ptr<CUstream_st>& stream, uint64_t number);
  // Before another look at work that waits for another process.
  static void LeaveCpuToOthers();
  void RunDevice(int device);
  // The error of a host that has waited on a device: red zones are checked too.
  cudaError_t AfterWait(int device);

  // Captures. Each returns success or the error, and invalidates what the documentation says.
  cudaError_t RefuseUnsafeCall();  // cudaMalloc and the like, under a capture that is not relaxed
  cudaError_t RefuseCapturing(CUstream_st& stream);  // waits for, or queries, a capturing stream
  cudaError_t RefuseLegacyStream(const CUstream_st& s);  // while a blocking stream captures

  // Whether this call is one that FailCall named. Asked once a call.
  bool IsToFail(Call call);

  // Of the calling host thread.
  static int& current();
  static cudaError_t& last_error();
  // Whether a call may be made at all, but for the error of failed work.
  cudaError_t Admit() const;
};
Runtime& GetRuntime();

// Every entry point: under the lock, admitted, its error kept for cudaGetLastError. Those that
// release something also do it after work has failed, and then return that error.
enum class AfterFailure : uint8_t { kRefuse, kRelease };
template <typename Body>
cudaError_t ApiCall(Body&& body, AfterFailure after_failure = AfterFailure::kRefuse) {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  ++r.calls;
  cudaError_t error = r.Admit();
  if (error == cudaSuccess) {
    const cudaError_t sticky = r.current_device().sticky;
    if (sticky == cudaSuccess || after_failure == AfterFailure::kRelease) error = body(r);
    if (sticky != cudaSuccess) error = sticky;
  }
  if (error != cudaSuccess) Runtime::last_error() = error;
  return error;
}

}  // namespace halftone::emulation
