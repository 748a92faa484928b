// Ranks: the devices of a job's other processes, as one of its devices sees them: sums over all of them,
// and what each of them has, on a stream of their own, by NCCL.
//
// Invariants:
//  1. All ranks reduce in the same order and sizes: their graphs are compared before the first step.
//  2. The host never waits for work that waits for another rank but by Wait, which gives up after the
//     job's timeout. NCCL's own calls do not block (its communicator is made so), and are polled.
//  3. After the first error the communicator is aborted: what waits in streams ends, with results of no
//     use, and `broken` says so to the kernels behind. Every later call gives that error, and so do
//     messages of the job.
//  4. It lives as long as somebody uses it: a recorded step refers to NCCL's communicator.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "halftone/core/dtype.h"
#include "halftone/core/status.h"
#include "halftone/kernels/cuda/runtime/handles.h"

namespace halftone::distributed {
class Communicator;
}

namespace halftone::cuda {

// Of a buffer: what belongs to one rank, in elements from its front.
struct RankPart {
  int64_t begin, count;
};

class Ranks {
 public:
  // Of the current device. To be called by all ranks of `world`, which must live as long as the process.
  // The bytes by which NCCL's communicators find each other travel as a message of `world`. Errors: as
  // kernels::DeviceBackend::Join.
  static absl::StatusOr<std::shared_ptr<Ranks>> Join(distributed::Communicator& world);
  // What Join gave for the current device; null: it works alone.
  static std::shared_ptr<Ranks> OfCurrentDevice();

  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // The first error; OK while all is well.
  virtual absl::Status status() const = 0;
  // In device memory; not 0 once reductions end without results.
  virtual const int32_t* broken() const = 0;
  // Begins to sum `count` elements (f64, f32, f16 or bf16) of all ranks' buffers in place, behind what
  // `stream` holds now. `done` is recorded behind it. Both may be captured. The order of additions is
  // NCCL's; all ranks get the same bits.
  virtual absl::Status AllReduce(void* buffer, int64_t count, DType dtype, cudaStream_t stream,
                                 cudaEvent_t done) = 0;
  // The same for parts[r] on rank r alone, and for `shared` on all ranks; what other ranks' parts hold
  // afterwards is of no use. Of two ranks the bits are those of AllReduce.
  virtual absl::Status ReduceScatter(void* buffer, absl::Span<const RankPart> parts,
                                     const RankPart& shared, DType dtype, cudaStream_t stream,
                                     cudaEvent_t done) = 0;
  // Begins to copy parts[r] of rank r's buffer to the same place on all ranks.
  virtual absl::Status AllGather(void* buffer, absl::Span<const RankPart> parts, DType dtype,
                                 cudaStream_t stream, cudaEvent_t done) = 0;
  // Waits until `query` gives something else than cudaErrorNotReady, and gives that as a status of
  // `call`. Errors besides: DeadlineExceeded, naming a rank that does not answer; Unavailable: NCCL's.
  virtual absl::Status Wait(absl::FunctionRef<cudaError_t()> query, const char* call) = 0;

 protected:
  Ranks(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_, size_;
};

// A reduction that one kernel begins and another one ends, found by the address of its buffer. Of one
// device; kernels of one step at a time, as its lock has it.
class ReductionsUnderWay {
 public:
  static ReductionsUnderWay& OfProcess();
  void Begin(const void* buffer, cudaEvent_t done);
  // Error: FailedPrecondition, none was begun.
  absl::StatusOr<cudaEvent_t> End(const void* buffer);
  // Of a kernel that goes away.
  void Forget(cudaEvent_t done);

 private:
  struct Reduction {
    const void* buffer;
    cudaEvent_t done;
  };
  std::mutex mutex_;
  std::vector<Reduction> reductions_;
};

}  // namespace halftone::cuda
