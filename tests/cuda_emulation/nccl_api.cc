// NCCL: one device a process, joined through memory that the processes of this machine share. A call that
// the real library refuses is refused with its error; one that would hang it, or go wrong in silence, fails
// the device and says why.
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "halftone/tests/cuda_emulation/library_work.h"
#include "halftone/tests/cuda_emulation/nccl_comms.h"
#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {
namespace {

using State = ncclComm::State;

constexpr uint32_t kIdMagic = 0x4E43434C;

struct Id {
  uint32_t magic;
  char name[64];
};
static_assert(sizeof(Id) <= sizeof(ncclUniqueId));

bool is_going_on = false;  // whether GoOnWhileHostRests runs; under the runtime's lock

// A device goes on while its host waits for other processes and makes no call: else two ranks could wait for each
// other, one by a message and one by a reduction. Beside a host that makes calls it does nothing.
void GoOnWhileHostRests() {
  Runtime& r = GetRuntime();
  for (uint64_t seen = 0;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::scoped_lock lock(r.mutex);
    if (LiveComms().empty()) {
      is_going_on = false;
      return;
    }
    if (std::exchange(seen, r.calls) != r.calls) continue;
    for (int device = 0; device < kMaxDevices; ++device) {
      for (const auto& stream : r.StreamsOf(device)) r.TryUntil(stream, stream->issued);
    }
  }
}

// What has become of the joining: success, ncclInProgress or an error.
ncclResult_t Joined(ncclComm& comm) {
  const SharedRank* const ranks = comm.memory->job().ranks;
  for (int q = 0; q < comm.size; ++q) {
    if (ranks[q].joined == 0) return ncclInProgress;
  }
  for (int q = 0; q < comm.size; ++q) {
    if (ranks[q].ranks != comm.size) {
      return Refuse(ncclInvalidUsage, "ranks that were told different numbers of ranks");
    }
    if (q != comm.rank && ranks[q].joined == ranks[comm.rank].joined) {
      return Refuse(ncclInvalidUsage, "two ranks on one device");
    }
  }
  comm.memory->RemoveName();
  comm.state = State::kReady;
  return ncclSuccess;
}

ncclResult_t Finalized(ncclComm& comm) {
  for (int q = 0; q < comm.size; ++q) {
    if (comm.memory->job().ranks[q].finalized == 0) return ncclInProgress;
  }
  comm.state = State::kFinalized;
  return ncclSuccess;
}

}  // namespace

std::map<ncclComm_t, std::shared_ptr<ncclComm>>& LiveComms() {
  static auto* const live = new std::map<ncclComm_t, std::shared_ptr<ncclComm>>;
  return *live;
}

std::string& LastError() {
  static thread_local std::string error;
  return error;
}

ncclResult_t Refuse(ncclResult_t result, const std::string& why) {
  LastError() = why;
  GetRuntime().Report("NCCL: " + why);
  return result;
}

ncclResult_t StateOf(ncclComm& comm) {
  if (comm.memory->job().aborted != 0) {
    LastError() = "another rank has aborted the communicator";
    return ncclRemoteError;
  }
  if (comm.state == State::kJoining) return Joined(comm);
  if (comm.state == State::kFinalizing) return Finalized(comm);
  return comm.busy_polls > 0 && comm.busy_polls-- > 0 ? ncclInProgress : ncclSuccess;
}

namespace {

// A blocking communicator waits in the call; another one is asked by ncclCommGetAsyncError.
ncclResult_t Settled(const std::shared_ptr<ncclComm>& comm) {
  if (!comm->blocking) return ncclInProgress;
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const ncclResult_t state = StateOf(*comm);
    if (state != ncclInProgress) return state;
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > GetRuntime().options.hang_seconds) {
      return Refuse(ncclSystemError, "a call waits for ever for another rank");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// A captured reduction, or one in a stream.
bool IsInUse(const std::shared_ptr<ncclComm>& comm) {
  constexpr int kOwners = 1;  // LiveComms
  return comm.use_count() > kOwners;
}

}  // namespace
}  // namespace halftone::emulation

using namespace halftone::emulation;  // NOLINT: definitions of C functions

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return LastError().c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* out) {
  std::string name;
  if (!JobMemory::Create(&name)) return Refuse(ncclSystemError, "no shared memory");
  Id id{};
  id.magic = kIdMagic;
  std::strncpy(id.name, name.c_str(), sizeof(id.name) - 1);
  std::memcpy(out, &id, sizeof(id));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId bytes, int rank,
                                    ncclConfig_t* config) {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  *out = nullptr;
  Id id;
  std::memcpy(&id, &bytes, sizeof(id));
  if (id.magic != kIdMagic)
    return Refuse(ncclInvalidArgument, "an id that ncclGetUniqueId did not give");
  if (ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) {
    return Refuse(ncclInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  if (r.RefuseUnsafeCall() != cudaSuccess) return ncclUnhandledCudaError;
  auto comm = std::make_shared<ncclComm>();
  comm->memory = JobMemory::Map(id.name);
  if (comm->memory == nullptr) return Refuse(ncclSystemError, "nobody is at the id's address");
  comm->rank = rank;
  comm->size = ranks;
  comm->device = Runtime::current();
  comm->blocking = config == nullptr || config->blocking != 0;
  SharedRank& own = comm->memory->job().ranks[rank];
  own.ranks = ranks;
  int32_t nobody = 0;
  if (!own.joined.compare_exchange_strong(nobody, 1 + comm->device)) {
    return Refuse(ncclInvalidUsage, "rank " + std::to_string(rank) + " has joined already");
  }
  *out = comm.get();
  LiveComms()[comm.get()] = comm;
  if (!std::exchange(is_going_on, true)) std::thread(&GoOnWhileHostRests).detach();
  return Settled(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  return WithComm(handle, [&](Runtime&, const std::shared_ptr<ncclComm>& comm) {
    *state = StateOf(*comm);
    return ncclSuccess;
  });
}

// Behind all work of its device.
ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return WithComm(handle, [](Runtime& r, const std::shared_ptr<ncclComm>& comm) -> ncclResult_t {
    if (comm->state != State::kReady)
      return Refuse(ncclInvalidUsage, "finalized twice, or too early");
    r.RunDevice(comm->device);
    if (IsInUse(comm)) {
      return Refuse(ncclInvalidUsage,
                    "a captured graph refers to it: NCCL waits until that is no more");
    }
    comm->memory->job().ranks[comm->rank].finalized = 1;
    comm->state = State::kFinalizing;
    return Settled(comm);
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return WithComm(handle, [&](Runtime& r, const std::shared_ptr<ncclComm>& comm) -> ncclResult_t {
    if (comm->state == State::kFinalizing) {
      return Refuse(ncclInvalidUsage, "destroyed while it is being finalized");
    }
    r.RunDevice(comm->device);
    if (IsInUse(comm)) {
      return Refuse(ncclInvalidUsage,
                    "a captured graph refers to it: NCCL waits until that is no more");
    }
    LiveComms().erase(handle);
    return ncclSuccess;
  });
}

// What waits in streams ends; other ranks hear of it when they ask.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return WithComm(handle, [&](Runtime&, const std::shared_ptr<ncclComm>& comm) {
    comm->memory->job().aborted = 1;
    comm->state = State::kAborted;
    LiveComms().erase(handle);
    return ncclSuccess;
  });
}

}  // extern "C"
