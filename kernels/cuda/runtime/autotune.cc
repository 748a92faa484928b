#include "halftone/kernels/cuda/runtime/autotune.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "halftone/kernels/cuda/runtime/handles.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {
namespace {

constexpr int kSamples = 5;
constexpr int kRunsPerSample = 3;          // an event resolves half a microsecond
constexpr int kSamplesBeforeGivingUp = 2;  // the first replay puts the graph on the device
constexpr float kHopeless = 2;             // times the least

using RunOnce = std::function<absl::Status(cudaStream_t)>;

class Stopwatch {
 public:
  absl::Status Init() {
    cudaStream_t stream = nullptr;
    HT_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
    for (UniqueEvent* made : {&start_, &stop_}) {
      cudaEvent_t event = nullptr;
      HT_CUDA_RETURN_IF_ERROR(cudaEventCreate(&event));
      made->reset(event);
    }
    return absl::OkStatus();
  }
  cudaStream_t stream() const { return stream_.get(); }

  // Loads the code, and shows whether it works.
  absl::Status Try(const RunOnce& run) {
    const absl::Status status = run(stream());
    // Also for what a run that failed had begun: its memory is freed next.
    const cudaError_t waited = cudaStreamSynchronize(stream());
    HT_RETURN_IF_ERROR(status);
    return ToStatus(waited, "cudaStreamSynchronize");
  }

  absl::Status Record(const RunOnce& run, UniqueGraphExec& replay) {
    HT_CUDA_RETURN_IF_ERROR(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    absl::Status status = absl::OkStatus();
    for (int i = 0; i < kRunsPerSample && status.ok(); ++i) status = run(stream());
    cudaGraph_t captured = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream(), &captured);
    const UniqueGraph graph(captured);
    HT_RETURN_IF_ERROR(status);
    HT_RETURN_IF_ERROR(ToStatus(ended, "cudaStreamEndCapture"));
    cudaGraphExec_t executable = nullptr;
    HT_CUDA_RETURN_IF_ERROR(cudaGraphInstantiate(&executable, graph.get(), 0));
    replay.reset(executable);
    return absl::OkStatus();
  }

  // In milliseconds.
  absl::StatusOr<float> Measure(const UniqueGraphExec& replay) {
    // One that does not count keeps the device busy while the host puts the other behind it.
    HT_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(replay.get(), stream()));
    HT_CUDA_RETURN_IF_ERROR(cudaEventRecord(start_.get(), stream()));
    HT_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(replay.get(), stream()));
    HT_CUDA_RETURN_IF_ERROR(cudaEventRecord(stop_.get(), stream()));
    HT_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(stop_.get()));
    float milliseconds = 0;
    HT_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()));
    return milliseconds;
  }

 private:
  UniqueStream stream_;
  UniqueEvent start_, stop_;
};

struct Candidate {
  int index;
  RunOnce run;
  UniqueGraphExec replay;
  float least = std::numeric_limits<float>::infinity();
};

bool Faster(const Candidate& a, const Candidate& b) { return a.least < b.least; }

}  // namespace

bool AutotuneEnabled() {
  const char* value = std::getenv("HALFTONE_AUTOTUNE");
  return value == nullptr || std::string_view(value) != "0";
}

absl::StatusOr<int> FindFastest(int count,
                                const std::function<absl::Status(int, cudaStream_t)>& run) {
  Stopwatch watch;
  HT_RETURN_IF_ERROR(watch.Init());
  std::vector<Candidate> candidates;
  for (int i = 0; i < count; ++i) {
    candidates.push_back({i, [&run, i](cudaStream_t stream) { return run(i, stream); }, {}});
  }
  absl::Status error = absl::OkStatus();
  bool only_memory = true;
  // Does that with every candidate; those that fail are left out from then on.
  const auto each = [&](const std::function<absl::Status(Candidate&)>& what) {
    std::vector<Candidate> left;
    for (Candidate& candidate : candidates) {
      const absl::Status status = what(candidate);
      if (status.ok()) {
        left.push_back(std::move(candidate));
      } else {
        error = status;
        only_memory &= absl::IsResourceExhausted(status);
        cudaGetLastError();  // the next launch would report it as its own
      }
    }
    candidates = std::move(left);
  };
  bool enough = false;
  each([&](Candidate& c) {
    if (enough) return absl::OkStatus();
    const absl::Status status = watch.Try(c.run);
    enough = status.ok() && !AutotuneEnabled();
    return status;
  });
  if (candidates.empty()) {
    if (only_memory) return error;
    return Internal("no candidate runs: ", Message(error));
  }
  const int first = candidates[0].index;
  if (enough || candidates.size() == 1) return first;
  each([&](Candidate& c) { return watch.Record(c.run, c.replay); });
  float least = std::numeric_limits<float>::infinity();
  for (int sample = 0; sample < kSamples; ++sample) {
    each([&](Candidate& c) -> absl::Status {
      if (sample >= kSamplesBeforeGivingUp && c.least > kHopeless * least) {
        return absl::OkStatus();
      }
      HT_ASSIGN_OR_RETURN(const float time, watch.Measure(c.replay));
      c.least = std::min(c.least, time);
      least = std::min(least, time);
      return absl::OkStatus();
    });
  }
  // None was measured, for want of memory perhaps: the first is known to run.
  if (candidates.empty()) return first;
  return std::min_element(candidates.begin(), candidates.end(), Faster)->index;
}

absl::StatusOr<ScratchMemory> ScratchMemory::Allocate(size_t bytes) {
  if (bytes == 0) return ScratchMemory(nullptr);
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error != cudaSuccess) {
    cudaGetLastError();  // the next launch would report it as its own
    return ToStatus(error, "cudaMalloc");
  }
  ScratchMemory memory(data);
  // On a stream of its own: what waits for the whole device, or for the legacy stream, breaks the
  // recording of a step in another thread.
  Stopwatch watch;
  HT_RETURN_IF_ERROR(watch.Init());
  HT_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(data, 0, bytes, watch.stream()));
  HT_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(watch.stream()));
  return memory;
}

ScratchMemory::ScratchMemory(ScratchMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)) {}

ScratchMemory::~ScratchMemory() {
  if (data_ != nullptr) cudaFree(data_);
}

}  // namespace halftone::cuda
