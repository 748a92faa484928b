// Data parallel training: the same program on several processes of a job that `mpirun` or Slurm has
// started, each with its part of every batch (docs/guide/distributed.md).
//
// Example:
//   HT_RETURN_IF_ERROR(distributed::Init());
//   Classifier model;                        // its constructor says config.data_parallel({})
//   HT_ASSIGN_OR_RETURN(auto order, distributed::Sampler::Make(count, {.batch = 32}));
#pragma once

#include "halftone/core/device.h"
#include "halftone/core/status.h"

namespace halftone::distributed {

class Communicator;

struct InitOptions {
  // How long a rank waits for another one before its call is an error and the job ends. The
  // environment variable HALFTONE_DISTRIBUTED_TIMEOUT, if set, is used instead. Longer than the
  // slowest that one rank does alone (compiling, reading data, writing a checkpoint) while others wait.
  double timeout_seconds = 300;
};

// Joins the job that this process was started in, once, before the first graph is called. A process
// that nobody has started as one of several is a job of one. Ranks that may use the same CPUs (mpirun
// --bind-to none) share them: each sets its part as its number of threads. When the process exits with a status
// other than 0, or after an error of a message, it ends all the others. Errors: Unimplemented: started as one
// of several, by a Halftone without MPI; InvalidArgument: a timeout that is no positive number;
// FailedPrecondition: called before; Unavailable: MPI's.
absl::Status Init(const InitOptions& options = {});
bool IsInitialized();

// Before Init: 0 and 1.
int Rank();
int Size();
// The same among the processes on this machine.
int LocalRank();
// The device for this rank: of several on one machine each gets its own, in order. Of CPUs there is
// one. Whether a device is there is not asked.
Device DeviceOfRank(Device::Kind kind = Device::Kind::kCpu);

// For what each rank does by itself and all must have done: OK if `own` is on every rank, else on
// every rank the error of the first that has one, as "rank 2: ...". To be called by all ranks.
// Errors besides: DeadlineExceeded, Unavailable. In a job of one it gives `own`.
// Example: HT_RETURN_IF_ERROR(distributed::Agree(data.status()));
absl::Status Agree(const absl::Status& own);
// The sum of a number over the ranks, in their order, the same on all: of losses, of right answers. Errors:
// DeadlineExceeded, Unavailable.
absl::StatusOr<double> Sum(double own);
// Waits until all ranks are here. Errors: DeadlineExceeded, Unavailable.
absl::Status Barrier();

// Whether this process was started as one of several and has not called Init: it would train alone.
bool IsForgotten();

// The communicator of the job; of a job of one before Init. Not for programs.
Communicator& World();

}  // namespace halftone::distributed
