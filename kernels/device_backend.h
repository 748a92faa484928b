// DeviceBackend: what graph/runtime needs of an accelerator: memory, one stream of work, captured
// steps. kernels/cuda implements it; nothing here names CUDA, so the runtime builds and runs
// without it.
//
// All work of a device goes through its one stream, in order. Memory that the host lets go of while
// work is still under way may therefore be given out again at once: the next user's work is behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "halftone/core/device.h"
#include "halftone/core/fork.h"
#include "halftone/core/status.h"
#include "halftone/graph/ir/target.h"
#include "halftone/kernels/device_run_state.h"

namespace halftone::distributed {
class Communicator;
}

namespace halftone::kernels {

class KernelRegistry;

// Bytes in device memory, or page-locked bytes of the host; given back on destruction. Aligned to
// 256 bytes, contents undefined.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  void* data() const { return data_; }  // null if empty
  size_t size() const { return size_; }

 protected:
  DeviceMemory(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
};

// A point in the stream's work. The host may wait for it.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Until the work before the last Record is done; at once if there was none. Errors: what the
  // device's work came to.
  virtual absl::Status Wait() = 0;
};

// Work recorded once, to be started as a whole.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

struct DeviceCopySegment {
  void* to;
  const void* from;
  size_t bytes;
};

struct DeviceMemoryStats {
  int64_t allocations = 0;         // calls of Allocate since the start
  int64_t device_allocations = 0;  // of these, those that went to the driver
  int64_t live_bytes = 0;          // given out
  int64_t peak_bytes = 0;
  int64_t cached_bytes = 0;  // held, but not given out
  int64_t pinned_bytes = 0;  // page-locked host memory given out
};

// Thread-safe, except where said. No call waits for the device but Wait, Synchronize, and those
// that say so; giving back page-locked memory may.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Errors: FailedPrecondition in a child of fork(): devices stay with the process that opened
  // them. Check before waiting for work or beginning some.
  absl::Status CheckProcess() const {
    if (ForkGeneration() == opened_in_) return absl::OkStatus();
    return FailedPrecondition("device ", device().ToString(),
                              " was used before fork() and belongs to the parent; "
                              "fork before its first use, or start a new program "
                              "(multiprocessing: \"spawn\")");
  }

  // "NVIDIA H200, sm_90, cuda:0"
  virtual const std::string& description() const = 0;
  virtual Device device() const = 0;
  virtual std::unique_ptr<ir::Target> MakeTarget(const KernelRegistry& registry) const = 0;

  // Errors: ResourceExhausted with the bytes asked for, those given out, and the limit or the size
  // of the device.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(size_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> AllocatePinned(size_t bytes) = 0;
  virtual DeviceMemoryStats memory_stats() const = 0;
  // Allocations that would bring live_bytes over `bytes` fail; 0: no limit but the device's.
  virtual void set_memory_limit(int64_t bytes) = 0;
  // Gives cached memory back to the driver. Waits for the device.
  virtual absl::Status ReleaseCached() = 0;

  // The stream, as RunState::stream takes it. A thread that puts kernels on it calls this first:
  // the thread's launches then go to this device.
  virtual void* stream() const = 0;
  // Host to device. `pinned` must stay as it is until the copy is done.
  virtual absl::Status CopyToDevice(void* device, const void* pinned, size_t bytes) = 0;
  virtual absl::Status CopyToHost(void* pinned, const void* device, size_t bytes) = 0;
  // From and to any host memory; the first is done with `host` on return, the second waits for all
  // work before it.
  virtual absl::Status Upload(void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status Download(void* host, const void* device, size_t bytes) = 0;
  // Copies within the device on `stream`, segments in any order. With a gate: none once it has a
  // fault. May be captured.
  virtual absl::Status CopySegments(absl::Span<const DeviceCopySegment> segments,
                                    const DeviceRunState* gate, void* stream) = 0;

  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> NewEvent() = 0;
  virtual absl::Status Record(DeviceEvent& event) = 0;
  virtual absl::Status Synchronize() = 0;

  // Readies the device for steps that it makes together with those of the job's other ranks, before
  // kernels for such steps are made. All ranks call it, once or more. `world` must live as long as the
  // process. From then on nothing here waits for another rank for longer than `world` does; a rank that is
  // not waited for any longer ends the job, as an error of a message does. Errors, on every rank:
  // Unimplemented: built without NCCL; FailedPrecondition: NCCL cannot be loaded; Unavailable,
  // DeadlineExceeded: NCCL's, or those of Communicator::Wait.
  virtual absl::Status Join(distributed::Communicator& world) = 0;

  // Records what `body` puts on the stream it is given instead of doing it. `body` may not
  // allocate, wait or copy from host memory.
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> Capture(
      absl::FunctionRef<absl::Status(void* stream)> body) = 0;
  virtual absl::Status Launch(DeviceGraph& graph) = 0;

  // Names the work that follows, for profilers (NVTX). Cheap when none is attached.
  virtual void BeginRange(const char* name) = 0;
  virtual void EndRange() = 0;

 private:
  const int opened_in_ = ForkGeneration();
};

// The backend of a CUDA device, opened at the first call and kept. Its kernels are then in
// KernelRegistry::Global(). Errors: those of OpenDevice (open_device.h), which programs call.
absl::StatusOr<DeviceBackend*> OpenCuda(int index);

}  // namespace halftone::kernels
