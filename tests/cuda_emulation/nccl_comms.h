// What the calls of the emulated NCCL share: the communicators that live, and how a call is refused.
#pragma once

#include <nccl.h>

#include <map>
#include <memory>
#include <string>

#include "halftone/tests/cuda_emulation/nccl_reduction.h"
#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {

std::map<ncclComm_t, std::shared_ptr<ncclComm>>& LiveComms();
// What ncclGetLastError gives, of this thread.
std::string& LastError();
ncclResult_t Refuse(ncclResult_t result, const std::string& why);
// What ncclCommGetAsyncError gives.
ncclResult_t StateOf(ncclComm& comm);

// Under the runtime's lock, with a live communicator.
template <typename Body>
ncclResult_t WithComm(ncclComm_t handle, const Body& body) {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  const auto found = LiveComms().find(handle);
  if (found == LiveComms().end()) {
    return Refuse(ncclInvalidArgument, "a communicator that does not live (any more)");
  }
  return body(r, found->second);
}

}  // namespace halftone::emulation
