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
  if (stream->capture != nullptr) {
    Capture& capture = *stream->capture;
    if (capture.invalidated) return cudaErrorStreamCaptureInvalidated;
    capture.nodes.push_back({type, std::move(run), stream->capture_tail});
    stream->capture_tail = {capture.nodes.size() - 1};
    return cudaSuccess;
  }
  if (const cudaError_t error = RefuseLegacyStream(*stream)) return error;

  Work work{std::move(run), std::exchange(stream->waits, {})};
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
  if (!options.lazy) RunUntil(stream, stream->issued);
  return cudaSuccess;
}

void Runtime::RunUntil(const std::shared_ptr<CUstream_st>& stream, uint64_t number) {
  while (stream->done < number) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    for (const Position& position : work.after) RunUntil(position.stream, position.number);
    // Nothing runs on a device that has failed.
    if (work.run && devices[stream->device].sticky == cudaSuccess) work.run();
    ++stream->done;
  }
}

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
