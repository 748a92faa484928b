// Events.
#include <algorithm>

#include "halftone/tests/cuda_emulation/runtime.h"

using halftone::emulation::AfterFailure;
using halftone::emulation::ApiCall;
using halftone::emulation::Capture;
using halftone::emulation::EventRecord;
using halftone::emulation::Runtime;

namespace {

CUevent_st* Find(Runtime& r, cudaEvent_t handle) {
  const auto it = r.events.find(handle);
  return it == r.events.end() ? nullptr : it->second.get();
}

bool IsDone(const EventRecord& record) {
  return record.position.stream->done >= record.position.number;
}

// What a stream waits for that captures, or that begins to by this wait.
cudaError_t WaitInCapture(Runtime& r, CUstream_st& stream, const EventRecord& record) {
  if (record.capture == nullptr) {
    stream.capture->invalidated = true;
    r.Report("a stream that captures waits for an event recorded outside of the capture");
    return cudaErrorStreamCaptureIsolation;
  }
  Capture& capture = *record.capture;
  if (std::find(r.captures.begin(), r.captures.end(), record.capture) == r.captures.end()) {
    return cudaErrorCapturedEvent;
  }
  if (capture.invalidated) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture != nullptr && stream.capture != record.capture) {
    stream.capture->invalidated = capture.invalidated = true;
    r.Report("a wait would merge two captures");
    return cudaErrorStreamCaptureMerge;
  }
  if (stream.capture == nullptr) {
    if (&stream == r.devices[stream.device].legacy.get()) {
      capture.invalidated = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    stream.capture = record.capture;
    capture.streams.push_back(&stream);
  }
  for (const size_t node : record.nodes) {
    auto& tail = stream.capture_tail;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return cudaSuccess;
}

// The event, recorded outside of captures, for a call of the host.
template <typename Body>
cudaError_t WithEvent(cudaEvent_t handle, Body&& body) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    CUevent_st* event = Find(r, handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->record != nullptr && event->record->capture != nullptr) {
      event->record->capture->invalidated = true;
      return cudaErrorCapturedEvent;
    }
    if (const cudaError_t error = r.RefuseUnsafeCall()) return error;
    return body(r, *event);
  });
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return ApiCall([&](Runtime& r) {
    constexpr unsigned kKnown =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if ((flags & ~kKnown) != 0) return cudaErrorInvalidValue;
    auto created = std::make_unique<CUevent_st>();
    created->device = Runtime::current();
    created->flags = flags;
    *event = created.get();
    r.events[*event] = std::move(created);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return ApiCall(
      [&](Runtime& r) {
        return r.events.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
      },
      AfterFailure::kRelease);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    CUevent_st* event = Find(r, handle);
    const std::shared_ptr<CUstream_st> stream = r.Find(stream_handle);
    if (event == nullptr || stream == nullptr || event->device != stream->device) {
      return cudaErrorInvalidResourceHandle;
    }
    auto record = std::make_shared<EventRecord>();
    if (stream->capture != nullptr) {
      if (stream->capture->invalidated) return cudaErrorStreamCaptureInvalidated;
      record->capture = stream->capture;
      record->nodes = stream->capture_tail;
    } else {
      const cudaError_t error = r.Submit(stream, cudaGraphNodeTypeEventRecord, [record] {
        record->when = std::chrono::steady_clock::now();
      });
      if (error != cudaSuccess) return error;
      record->position = {stream, stream->issued};
    }
    event->record = std::move(record);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    const CUevent_st* event = Find(r, handle);
    const std::shared_ptr<CUstream_st> stream = r.Find(stream_handle);
    if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    if (event->record == nullptr) return cudaSuccess;
    if (stream->capture != nullptr || event->record->capture != nullptr) {
      return WaitInCapture(r, *stream, *event->record);
    }
    stream->waits.push_back(event->record->position);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return WithEvent(handle, [](Runtime& r, CUevent_st& event) -> cudaError_t {
    ++r.statistics.host_synchronisations;
    if (event.record == nullptr) return cudaSuccess;
    r.RunUntil(event.record->position.stream, event.record->position.number);
    return r.AfterWait(event.device);
  });
}

// As cudaStreamQuery, it lets one piece of work happen.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return WithEvent(handle, [](Runtime& r, CUevent_st& event) -> cudaError_t {
    if (event.record == nullptr) return cudaSuccess;
    if (!IsDone(*event.record)) {
      const std::shared_ptr<CUstream_st>& stream = event.record->position.stream;
      if (!r.TryUntil(stream, stream->done + 1)) r.LeaveCpuToOthers();
      return cudaErrorNotReady;
    }
    return r.AfterWait(event.device);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    for (const cudaEvent_t handle : {from, to}) {
      const CUevent_st* event = Find(r, handle);
      if (event == nullptr || event->record == nullptr) return cudaErrorInvalidResourceHandle;
      if ((event->flags & cudaEventDisableTiming) != 0) return cudaErrorInvalidResourceHandle;
      if (event->record->capture != nullptr) return cudaErrorCapturedEvent;
      if (!IsDone(*event->record)) return cudaErrorNotReady;
    }
    const auto elapsed = Find(r, to)->record->when - Find(r, from)->record->when;
    *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
    return cudaSuccess;
  });
}

}  // extern "C"
