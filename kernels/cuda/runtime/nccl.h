// NCCL, opened at run time: a device that works alone needs none, and a program none at all.
#pragma once

#include "halftone/core/status.h"

#if defined(HALFTONE_HAS_NCCL)
#include <nccl.h>

namespace halftone::cuda {

// The functions of the library that are called here.
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommFinalize) comm_finalize;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduce) reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetLastError) get_last_error;
};

// Of the library that is loaded at the first call: the file that HALFTONE_NCCL_LIBRARY names, else
// libnccl.so.2 where the toolkit was when this was built, or where the system finds libraries.
// Thread-safe. Errors: FailedPrecondition: it is not there, lacks a function, or is older than 2.14,
// the first with ncclCommInitRankConfig.
absl::StatusOr<const Nccl*> LoadNccl();

// OK for success and for ncclInProgress; else Unavailable: the call, the error's text and NCCL's last
// message: "ncclAllReduce: invalid argument (...)".
absl::Status ToStatus(const Nccl& nccl, ncclResult_t result, const char* call);

}  // namespace halftone::cuda
#endif
