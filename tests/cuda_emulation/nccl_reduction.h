// A communicator of the emulated NCCL, and a reduction (a broadcast is one of them) as work of a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <memory>
#include <string>
#include <utility>

#include "halftone/tests/cuda_emulation/nccl_job.h"

// What nccl.h leaves incomplete: the handle is the emulated device's.
struct ncclComm {
  int rank = 0, size = 1, device = 0;
  bool blocking = true;
  std::unique_ptr<halftone::emulation::JobMemory> memory;
  uint64_t reductions = 0;  // that its device has come to
  enum class State : uint8_t { kJoining, kReady, kFinalizing, kFinalized, kAborted };
  State state = State::kJoining;
  int busy_polls = 0;  // how often ncclCommGetAsyncError says ncclInProgress yet
};

namespace halftone::emulation {

class Reduction {
 public:
  Reduction(std::shared_ptr<ncclComm> comm, const void* from, void* to, ReductionTerms terms)
      : comm_(std::move(comm)), from_(from), to_(to), terms_(terms) {}
  const std::shared_ptr<ncclComm>& comm() const { return comm_; }
  // Whether `rank` gives its part, and whether it gets a result.
  static bool Gives(const ReductionTerms& terms, int rank) {
    return terms.collective != Collective::kBroadcast || rank == terms.root;
  }
  static bool Gets(const ReductionTerms& terms, int rank) {
    return terms.collective != Collective::kReduce || rank == terms.root;
  }
  // Does what can be done. False: another rank has its part to do.
  bool Run();

 private:
  size_t bytes() const;
  bool WaitsFor(int rank, const char* what) const;
  std::string Describe(int rank) const;
  void Combine();

  const std::shared_ptr<ncclComm> comm_;
  const void* const from_;
  void* const to_;
  const ReductionTerms terms_;
  uint64_t number_ = 0;  // 0: the device has not come to it
  bool written_ = false;
};

// 0: no dtype that is emulated.
size_t SizeOf(ncclDataType_t dtype);

}  // namespace halftone::emulation
