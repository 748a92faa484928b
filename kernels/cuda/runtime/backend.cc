#include "halftone/kernels/cuda/runtime/backend.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <utility>

#include "halftone/distributed/communicator.h"
#include "halftone/kernels/cuda/runtime/multi_copy.h"
#include "halftone/kernels/cuda/runtime/status.h"
#include "halftone/kernels/cuda_target.h"

namespace halftone::cuda {

class CudaBackend::Calls {
 public:
  // Fails only where every later call does too.
  explicit Calls(int index) { (void)cudaSetDevice(index); }

 private:
  AllocationPause pause_;
};

class CudaBackend::Memory : public kernels::DeviceMemory {
 public:
  Memory(CachingAllocator* allocator, void* data, size_t size)
      : DeviceMemory(data, size), allocator_(allocator) {}
  ~Memory() override {
    if (data_ != nullptr) allocator_->Free(data_);
  }

 private:
  CachingAllocator* allocator_;
};

class CudaBackend::PinnedMemory : public kernels::DeviceMemory {
 public:
  PinnedMemory(CudaBackend* backend, void* data, size_t size)
      : DeviceMemory(data, size), backend_(backend) {
    backend_->pinned_bytes_ += static_cast<int64_t>(size_);
  }
  ~PinnedMemory() override {
    backend_->pinned_bytes_ -= static_cast<int64_t>(size_);
    const Calls calls(backend_->index_);
    backend_->WaitForStream().IgnoreError();  // as for cudaFree
    (void)cudaFreeHost(data_);
  }

 private:
  CudaBackend* backend_;
};

class CudaBackend::Event : public kernels::DeviceEvent {
 public:
  Event(const CudaBackend* backend, UniqueEvent event)
      : backend_(backend), event_(std::move(event)) {}
  absl::Status Wait() override {
    const Calls calls(backend_->index_);
    return backend_->WaitForEvent(event_.get());
  }
  cudaEvent_t get() const { return event_.get(); }

 private:
  const CudaBackend* backend_;
  UniqueEvent event_;
};

class CudaBackend::Graph : public kernels::DeviceGraph {
 public:
  explicit Graph(UniqueGraphExec exec) : exec_(std::move(exec)) {}
  cudaGraphExec_t get() const { return exec_.get(); }

 private:
  UniqueGraphExec exec_;
};

absl::Status CheckDriver(cudaError_t answer, int driver_version, int runtime_version) {
  if (answer == cudaSuccess) return absl::OkStatus();
  if (answer != cudaErrorInsufficientDriver) {
    return FailedPrecondition("the NVIDIA driver does not start: ",
                              Message(ToStatus(answer, "cudaGetDeviceCount")));
  }
  if (driver_version == 0) return FailedPrecondition("no NVIDIA driver is installed");
  const auto text = [](int version) { return Concat(version / 1000, ".", version % 1000 / 10); };
  return FailedPrecondition("the NVIDIA driver is too old: it runs CUDA ", text(driver_version),
                            "; expected ", text(runtime_version), " or newer");
}

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Open(int index) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(index));
  HT_RETURN_IF_ERROR(backend->Start());
  return backend;
}

absl::Status CudaBackend::Start() {
  const AllocationPause pause;
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaErrorNoDevice) {
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    HT_RETURN_IF_ERROR(CheckDriver(counted, driver, runtime));
  }
  if (count == 0) return InvalidArgument("no CUDA device is in this machine");
  if (index_ < 0 || index_ >= count) {
    return InvalidArgument("no such device; expected cuda:0",
                           count > 1 ? Concat("..cuda:", count - 1) : "");
  }
  cudaDeviceProp properties;
  HT_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, index_));
  if (properties.major < 8) {
    return FailedPrecondition(properties.name, " has compute capability ", properties.major, ".",
                              properties.minor, "; expected 8.0 or newer");
  }
  capability_ = properties.major * 10 + properties.minor;
  target_name_ = Concat("cuda-sm", properties.major, properties.minor);
  description_ = Concat(properties.name, ", sm_", properties.major, properties.minor, ", ",
                        device().ToString());
  HT_CUDA_RETURN_IF_ERROR(cudaSetDevice(index_));
  for (UniqueStream* stream : {&stream_, &capture_stream_}) {
    cudaStream_t handle = nullptr;
    HT_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
    stream->reset(handle);
  }
  allocator_ = std::make_unique<CachingAllocator>(
      CachingAllocator::Driver{.allocate = [this](size_t bytes) -> absl::StatusOr<void*> {
                                 const Calls calls(index_);
                                 void* data = nullptr;
                                 HT_CUDA_RETURN_IF_ERROR(cudaMalloc(&data, bytes));
                                 return data;
                               },
                               .free =
                                   [this](void* data) {
                                     const Calls calls(index_);
                                     // cudaFree may wait for running work; it does not have to.
                                     WaitForStream().IgnoreError();
                                     (void)cudaFree(data);
                                   },
                               .total_bytes = properties.totalGlobalMem});
  return absl::OkStatus();
}

std::unique_ptr<ir::Target> CudaBackend::MakeTarget(const kernels::KernelRegistry& registry) const {
  kernels::TargetTraits traits = kernels::CudaTraits(capability_);
  traits.is_here = true;
  return std::make_unique<kernels::RegistryTarget>(registry, Device::Kind::kCuda, target_name_,
                                                   std::move(traits));
}

absl::Status CudaBackend::Checked(cudaError_t error, const char* call) const {
  return error == cudaSuccess ? absl::OkStatus() : Annotated(ToStatus(error, call));
}

absl::Status CudaBackend::Annotated(const absl::Status& status) const {
  return status.ok() ? status : Annotate(status, Concat("device ", device().ToString(), ": "));
}

absl::Status CudaBackend::WaitForEvent(cudaEvent_t event) const {
  // Mostly it is done, and nobody has to sleep.
  const cudaError_t state = cudaEventQuery(event);
  if (state != cudaErrorNotReady) return Checked(state, "cudaEventQuery");
  (void)cudaGetLastError();
  Ranks* const ranks = ranks_;
  if (ranks == nullptr) return Checked(cudaEventSynchronize(event), "cudaEventSynchronize");
  return Annotated(ranks->Wait([event] { return cudaEventQuery(event); }, "cudaEventQuery"));
}

absl::Status CudaBackend::WaitForStream() const {
  const cudaStream_t stream = stream_.get();
  Ranks* const ranks = ranks_;
  if (ranks == nullptr) return Checked(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return Annotated(ranks->Wait([stream] { return cudaStreamQuery(stream); }, "cudaStreamQuery"));
}

absl::Status CudaBackend::WaitForRanks() const {
  return ranks_ == nullptr ? absl::OkStatus() : WaitForStream();
}

absl::Status CudaBackend::Join(distributed::Communicator& world) {
  if (ranks_ != nullptr || world.size() == 1) return absl::OkStatus();
  const Calls calls(index_);
  absl::StatusOr<std::shared_ptr<Ranks>> joined = Ranks::Join(world);
  if (!joined.ok()) return Annotated(joined.status());
  ranks_owner_ = *std::move(joined);
  ranks_ = ranks_owner_.get();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<kernels::DeviceMemory>> CudaBackend::Allocate(size_t bytes) {
  void* data = nullptr;
  if (bytes > 0) {
    absl::StatusOr<void*> allocated = allocator_->Allocate(bytes);
    if (!allocated.ok()) {
      return Annotate(allocated.status(), Concat("device ", device().ToString(), ": "));
    }
    data = *allocated;
  }
  return std::make_unique<Memory>(allocator_.get(), data, bytes);
}

absl::StatusOr<std::unique_ptr<kernels::DeviceMemory>> CudaBackend::AllocatePinned(size_t bytes) {
  void* data = nullptr;
  if (bytes > 0) {
    const Calls calls(index_);
    const cudaError_t error = cudaMallocHost(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return ResourceExhausted("device ", device().ToString(),
                               ": out of page-locked host memory: ", bytes, " bytes asked for, ",
                               pinned_bytes_.load(), " given out");
    }
    HT_RETURN_IF_ERROR(Checked(error, "cudaMallocHost"));
  }
  return std::make_unique<PinnedMemory>(this, data, bytes);
}

kernels::DeviceMemoryStats CudaBackend::memory_stats() const {
  kernels::DeviceMemoryStats stats = allocator_->stats();
  stats.pinned_bytes = pinned_bytes_;
  return stats;
}

absl::Status CudaBackend::ReleaseCached() {
  HT_RETURN_IF_ERROR(Synchronize());
  allocator_->ReleaseCached();
  return absl::OkStatus();
}

void* CudaBackend::stream() const {
  const Calls calls(index_);
  return stream_.get();
}

absl::Status CudaBackend::Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return absl::OkStatus();
  return Checked(cudaMemcpyAsync(to, from, bytes, kind, stream_.get()), "cudaMemcpyAsync");
}

absl::Status CudaBackend::CopyToDevice(void* device, const void* pinned, size_t bytes) {
  const Calls calls(index_);
  return Copy(device, pinned, bytes, cudaMemcpyHostToDevice);
}

absl::Status CudaBackend::CopyToHost(void* pinned, const void* device, size_t bytes) {
  const Calls calls(index_);
  return Copy(pinned, device, bytes, cudaMemcpyDeviceToHost);
}

absl::Status CudaBackend::Upload(void* device, const void* host, size_t bytes) {
  const Calls calls(index_);
  HT_RETURN_IF_ERROR(WaitForRanks());
  HT_RETURN_IF_ERROR(Copy(device, host, bytes, cudaMemcpyHostToDevice));
  // Whether the host's memory has been read when a copy returns depends on whether it is
  // page-locked and on what the device can address.
  return WaitForStream();
}

absl::Status CudaBackend::Download(void* host, const void* device, size_t bytes) {
  const Calls calls(index_);
  HT_RETURN_IF_ERROR(WaitForRanks());
  HT_RETURN_IF_ERROR(Copy(host, device, bytes, cudaMemcpyDeviceToHost));
  return WaitForStream();
}

absl::Status CudaBackend::CopySegments(absl::Span<const kernels::DeviceCopySegment> segments,
                                       const kernels::DeviceRunState* gate, void* stream) {
  const Calls calls(index_);
  constexpr size_t kBatch = 144;  // as many as a launch takes
  std::array<CopySegment, kBatch> batch;
  while (!segments.empty()) {
    const size_t count = std::min(segments.size(), kBatch);
    for (size_t i = 0; i < count; ++i) {
      batch[i] = {segments[i].to, segments[i].from, segments[i].bytes};
    }
    HT_RETURN_IF_ERROR(
        Checked(LaunchMultiCopy(batch.data(), count, gate, static_cast<cudaStream_t>(stream)),
                "LaunchMultiCopy"));
    segments.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<kernels::DeviceEvent>> CudaBackend::NewEvent() {
  const Calls calls(index_);
  cudaEvent_t event = nullptr;
  HT_RETURN_IF_ERROR(
      Checked(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate"));
  return std::make_unique<Event>(this, UniqueEvent(event));
}

absl::Status CudaBackend::Record(kernels::DeviceEvent& event) {
  const Calls calls(index_);
  return Checked(cudaEventRecord(static_cast<Event&>(event).get(), stream_.get()),
                 "cudaEventRecord");
}

absl::Status CudaBackend::Synchronize() {
  const Calls calls(index_);
  return WaitForStream();
}

absl::StatusOr<std::unique_ptr<kernels::DeviceGraph>> CudaBackend::Capture(
    absl::FunctionRef<absl::Status(void* stream)> body) {
  const std::scoped_lock lock(capture_mutex_);
  {
    const Calls calls(index_);
    // Thread-local: other threads may allocate meanwhile.
    HT_RETURN_IF_ERROR(
        Checked(cudaStreamBeginCapture(capture_stream_.get(), cudaStreamCaptureModeThreadLocal),
                "cudaStreamBeginCapture"));
  }
  const absl::Status recorded = body(capture_stream_.get());
  const Calls calls(index_);
  cudaGraph_t handle = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(capture_stream_.get(), &handle);
  const UniqueGraph graph(handle);
  if (ended != cudaSuccess) (void)cudaGetLastError();
  HT_RETURN_IF_ERROR(recorded);
  HT_RETURN_IF_ERROR(Checked(ended, "cudaStreamEndCapture"));
  cudaGraphExec_t exec_handle = nullptr;
  HT_RETURN_IF_ERROR(
      Checked(cudaGraphInstantiate(&exec_handle, graph.get(), 0), "cudaGraphInstantiate"));
  UniqueGraphExec exec(exec_handle);
  // Else the first launch would do it.
  HT_RETURN_IF_ERROR(Checked(cudaGraphUpload(exec.get(), stream_.get()), "cudaGraphUpload"));
  return std::make_unique<Graph>(std::move(exec));
}

absl::Status CudaBackend::Launch(kernels::DeviceGraph& graph) {
  const Calls calls(index_);
  // What was recorded may refer to a communicator that is no more.
  if (const Ranks* const ranks = ranks_; ranks != nullptr) {
    HT_RETURN_IF_ERROR(Annotated(ranks->status()));
  }
  return Checked(cudaGraphLaunch(static_cast<Graph&>(graph).get(), stream_.get()),
                 "cudaGraphLaunch");
}

void CudaBackend::BeginRange(const char* name) { nvtxRangePushA(name); }

void CudaBackend::EndRange() { nvtxRangePop(); }

}  // namespace halftone::cuda
