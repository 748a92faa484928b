// Work in streams: how it comes about and when it runs.
#include "halftone/tests/cuda_emulation/streams.h"

#include <utility>

#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {

std::shared_ptr<CUstream_st> Runtime::Find(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().legacy;
  const auto it = streams.find(handle);
  return it == streams.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<CUstream_st>> Runtime::StreamsOf(int device) {
  std::vector<std::shared_ptr<CUstream_st>> found = {devices[device].legacy};
  for (const auto& [handle, stream] : streams) {
    if (stream->device == device) found.push_back(stream);
  }
  for (const auto& stream : retired) {
    if (stream->device == device) found.push_back(stream);
  }
  return found;
}

cudaError_t Runtime::Submit(cudaStream_t handle, cudaGraphNodeType type,
                            std::function<void()> run) {
  const std::shared_ptr<CUstream_st> stream = Find(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  return Submit(stream, type, std::move(run));
}

cudaError_t Runtime::Submit(const std::shared_ptr<CUstream_st>& stream, cudaGraphNodeType type,
                            std::function<void()> run) {
  return SubmitSteps(stream, type, [run = std::move(run)]() -> Step {
    if (!run) return nullptr;
    return [run] {
      run();
      return true;
    };
  });
}

cudaError_t Runtime::SubmitSteps(const std::shared_ptr<CUstream_st>& stream, cudaGraphNodeType type,
                                 std::function<Step()> begin) {
  if (stream->capture != nullptr) {
    Capture& capture = *stream->capture;
    if (capture.invalidated) return cudaErrorStreamCaptureInvalidated;
    capture.nodes.push_back({type, std::move(begin), stream->capture_tail});
    stream->capture_tail = {capture.nodes.size() - 1};
    return cudaSuccess;
  }
  if (const cudaError_t error = RefuseLegacyStream(*stream)) return error;

  Work work{begin(), std::exchange(stream->waits, {})};
  Device& device = devices[stream->device];
  if (stream == device.legacy) {
    for (const auto& other : StreamsOf(stream->device)) {
      if (other != stream && other->blocking()) work.after.push_back({other, other->issued});
    }
  } else if (stream->blocking()) {
    work.after.push_back({device.legacy, device.legacy->issued});
  }
  stream->queue.push_back(std::move(work));
  ++stream->issued;
  if (!options.lazy) TryUntil(stream, stream->issued);
  return cudaSuccess;
}

bool Runtime::TryUntil(const std::shared_ptr<CUstream_st>& stream, uint64_t number) {
  while (stream->done < number) {
    Work& work = stream->queue.front();
    for (const Position& position : work.after) {
      if (!TryUntil(position.stream, position.number)) return false;
    }
    // Nothing runs on a device that has failed.
    if (work.run && devices[stream->device].sticky == cudaSuccess && !work.run()) return false;
    stream->queue.pop_front();
    ++stream->done;
  }
  return true;
}

void Runtime::RunUntil(const std::shared_ptr<CUstream_st>& stream, uint64_t number) {
  const auto begin = std::chrono::steady_clock::now();
  while (!TryUntil(stream, number)) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > options.hang_seconds) {
      FailDevice(stream->device, cudaErrorLaunchTimeout, "the host waits for ever: " + waits_for);
    }
    LeaveCpuToOthers();
  }
}

void Runtime::LeaveCpuToOthers() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

void Runtime::RunDevice(int device) {
  for (const auto& stream : StreamsOf(device)) RunUntil(stream, stream->issued);
  std::erase_if(retired, [&](const auto& stream) { return stream->device == device; });
}

cudaError_t Runtime::AfterWait(int device) {
  if (devices[device].sticky != cudaSuccess) return devices[device].sticky;
  const DeviceAccess access(memory);
  const std::string changed = memory.CheckRedZones();
  if (!changed.empty()) FailDevice(device, cudaErrorIllegalAddress, changed);
  return devices[device].sticky;
}

}  // namespace halftone::emulation
