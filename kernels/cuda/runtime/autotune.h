// Choosing the fastest of several ways to do the same by trying them on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "halftone/core/status.h"

namespace halftone::cuda {

// False if HALFTONE_AUTOTUNE is "0": the first of the libraries' choices that runs is taken
// unmeasured, so that two devices of one kind surely run the same kernels.
bool AutotuneEnabled();

// The index of the fastest of `count` candidates (count >= 1); of the first that runs where
// AutotuneEnabled() is false. `run` puts one execution of a candidate on the stream; a candidate
// that fails is passed over. Each is run once, which of one candidate is all; then each is recorded
// and replayed, as in a step, so that the host's time does not count, and the least of several
// times taken, the candidates in turn, so that the device's clocks favour none. Allocates a stream
// and waits for it: for use when a kernel is made, never in Launch. Errors: if no candidate runs,
// ResourceExhausted where none had memory, else Internal; those of the CUDA runtime.
absl::StatusOr<int> FindFastest(int count,
                                const std::function<absl::Status(int, cudaStream_t)>& run);

// Device memory for FindFastest, cleared to zero, 256-byte aligned, freed with this object.
class ScratchMemory {
 public:
  // Error: ResourceExhausted.
  static absl::StatusOr<ScratchMemory> Allocate(size_t bytes);
  ScratchMemory(ScratchMemory&& other) noexcept;
  ScratchMemory& operator=(ScratchMemory&&) = delete;
  ~ScratchMemory();
  void* data() const { return data_; }  // null if of no bytes

 private:
  explicit ScratchMemory(void* data) : data_(data) {}
  void* data_;
};

}  // namespace halftone::cuda
