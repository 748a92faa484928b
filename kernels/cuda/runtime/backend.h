// CudaBackend: a CUDA device as graph/runtime sees it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "halftone/core/alloc_counter.h"
#include "halftone/kernels/cuda/runtime/caching_allocator.h"
#include "halftone/kernels/cuda/runtime/handles.h"
#include "halftone/kernels/cuda/runtime/ranks.h"
#include "halftone/kernels/device_backend.h"

namespace halftone::cuda {

// What the answer of cudaGetDeviceCount means; versions as cudaDriverGetVersion (0: no driver) and
// cudaRuntimeGetVersion give them. Errors: FailedPrecondition.
absl::Status CheckDriver(cudaError_t answer, int driver_version, int runtime_version);

// Everything that it gives out must be gone before it.
class CudaBackend : public kernels::DeviceBackend {
 public:
  // Errors: as kernels::OpenCuda, without the name of the device before them.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Open(int index);

  const std::string& description() const override { return description_; }
  Device device() const override { return Device::Cuda(index_); }
  std::unique_ptr<ir::Target> MakeTarget(const kernels::KernelRegistry& registry) const override;

  absl::StatusOr<std::unique_ptr<kernels::DeviceMemory>> Allocate(size_t bytes) override;
  absl::StatusOr<std::unique_ptr<kernels::DeviceMemory>> AllocatePinned(size_t bytes) override;
  kernels::DeviceMemoryStats memory_stats() const override;
  void set_memory_limit(int64_t bytes) override { allocator_->set_limit(bytes); }
  absl::Status ReleaseCached() override;

  void* stream() const override;
  absl::Status CopyToDevice(void* device, const void* pinned, size_t bytes) override;
  absl::Status CopyToHost(void* pinned, const void* device, size_t bytes) override;
  absl::Status Upload(void* device, const void* host, size_t bytes) override;
  absl::Status Download(void* host, const void* device, size_t bytes) override;
  absl::Status CopySegments(absl::Span<const kernels::DeviceCopySegment> segments,
                            const kernels::DeviceRunState* gate, void* stream) override;

  absl::StatusOr<std::unique_ptr<kernels::DeviceEvent>> NewEvent() override;
  absl::Status Record(kernels::DeviceEvent& event) override;
  absl::Status Synchronize() override;
  absl::Status Join(distributed::Communicator& world) override;

  absl::StatusOr<std::unique_ptr<kernels::DeviceGraph>> Capture(
      absl::FunctionRef<absl::Status(void* stream)> body) override;
  absl::Status Launch(kernels::DeviceGraph& graph) override;

  void BeginRange(const char* name) override;
  void EndRange() override;

 private:
  class Memory;
  class PinnedMemory;
  class Event;
  class Graph;
  // Lives while calls of the runtime are made: they go to this device, and what they allocate on
  // the host is not the step's.
  class Calls;

  explicit CudaBackend(int index) : index_(index) {}
  absl::Status Start();
  // The runtime's error with the device before it.
  absl::Status Checked(cudaError_t error, const char* call) const;
  absl::Status Annotated(const absl::Status& status) const;
  // Where work may wait for another rank, the host's wait has an end.
  absl::Status WaitForEvent(cudaEvent_t event) const;
  absl::Status WaitForStream() const;
  // Before a call that waits for the stream itself, as copies to and from pageable memory do.
  absl::Status WaitForRanks() const;
  absl::Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);

  int index_;
  std::string description_, target_name_;
  int capability_ = 0;  // 10 times the major version and the minor one
  UniqueStream stream_, capture_stream_;
  std::mutex capture_mutex_;
  std::unique_ptr<CachingAllocator> allocator_;
  std::atomic<int64_t> pinned_bytes_{0};
  std::shared_ptr<Ranks> ranks_owner_;
  std::atomic<Ranks*> ranks_{nullptr};  // null: alone
};

}  // namespace halftone::cuda
