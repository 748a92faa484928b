#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "halftone/kernels/cuda/autotune.h"
#include "halftone/kernels/cuda/cuda_status.h"

namespace halftone::cuda {
namespace {

constexpr int kSamples = 5;
constexpr int kRunsPerSample = 3;  // an event resolves half a microsecond

class Stopwatch {
 public:
  Stopwatch() = default;
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    if (start_ != nullptr) cudaEventDestroy(start_);
    if (stop_ != nullptr) cudaEventDestroy(stop_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  absl::Status Init() {
    HT_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    HT_CUDA_RETURN_IF_ERROR(cudaEventCreate(&start_));
    HT_CUDA_RETURN_IF_ERROR(cudaEventCreate(&stop_));
    return absl::OkStatus();
  }
  cudaStream_t stream() const { return stream_; }
  // Milliseconds of `runs` executions.
  absl::StatusOr<float> Measure(int runs, const std::function<absl::Status(cudaStream_t)>& run) {
    HT_CUDA_RETURN_IF_ERROR(cudaEventRecord(start_, stream_));
    for (int i = 0; i < runs; ++i) HT_RETURN_IF_ERROR(run(stream_));
    HT_CUDA_RETURN_IF_ERROR(cudaEventRecord(stop_, stream_));
    HT_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(stop_));
    float milliseconds = 0;
    HT_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace

bool AutotuneEnabled() {
  const char* value = std::getenv("HALFTONE_AUTOTUNE");
  return value == nullptr || std::string_view(value) != "0";
}

absl::StatusOr<int> FindFastest(int count,
                                const std::function<absl::Status(int, cudaStream_t)>& run) {
  Stopwatch watch;
  HT_RETURN_IF_ERROR(watch.Init());
  int fastest = -1;
  float least = std::numeric_limits<float>::infinity();
  absl::Status last_error = absl::OkStatus();
  for (int candidate = 0; candidate < count; ++candidate) {
    const auto once = [&](cudaStream_t stream) { return run(candidate, stream); };
    // The first execution loads the code.
    absl::StatusOr<float> time = watch.Measure(1, once);
    for (int sample = 0; sample < kSamples && time.ok(); ++sample) {
      const absl::StatusOr<float> next = watch.Measure(kRunsPerSample, once);
      if (!next.ok()) {
        time = next.status();
      } else {
        time = sample == 0 ? *next : std::min(*time, *next);
      }
    }
    if (!time.ok()) {
      last_error = time.status();
      cudaGetLastError();  // the next launch would report it as its own
    } else if (*time < least) {
      least = *time;
      fastest = candidate;
    }
  }
  if (fastest < 0) return Internal("no candidate runs: ", Message(last_error));
  return fastest;
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
