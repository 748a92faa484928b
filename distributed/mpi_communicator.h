// The communicator of a job that MPI has started, over the module for MPI.
#pragma once

#include <memory>

#include "halftone/core/status.h"
#include "halftone/distributed/communicator.h"

namespace halftone::distributed {

// Loads libhalftone_mpi.so (the file that HALFTONE_MPI_LIBRARY names, if set) and joins the job. From
// then on the process leaves it when it exits: it waits for the others after success, and ends all of
// them after a failure (an exit status other than 0, or an error of a message). Errors:
// Unimplemented: there is no module; FailedPrecondition: it cannot be loaded, or is of another form;
// Unavailable: MPI's.
absl::StatusOr<std::unique_ptr<Communicator>> JoinMpi(double timeout_seconds);

}  // namespace halftone::distributed
