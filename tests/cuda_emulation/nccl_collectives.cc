// NCCL's reductions and broadcasts, one by one or as a group.
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "halftone/tests/cuda_emulation/library_work.h"
#include "halftone/tests/cuda_emulation/nccl_comms.h"

namespace halftone::emulation {
namespace {

using State = ncclComm::State;

constexpr int kBusyPolls = 2;

ncclResult_t CheckBuffer(const Runtime& r, const char* name, const void* p, size_t bytes,
                         const ncclComm& comm) {
  if (p == nullptr) return Refuse(ncclInvalidArgument, std::string(name) + " is null");
  const DeviceAllocation* const allocation = r.memory.Find(p);
  if (!IsDeviceMemory(p, bytes)) {
    return Refuse(ncclInvalidArgument, std::string(name) + ": " + std::to_string(bytes) +
                                           " bytes from " + DescribePointer(p));
  }
  if (allocation->device == comm.device) return ncclSuccess;
  return Refuse(ncclInvalidArgument, std::string(name) + " is memory of another device");
}

// Between ncclGroupStart and ncclGroupEnd, of a thread: nothing begins before the end.
struct Group {
  struct Call {
    std::shared_ptr<CUstream_st> stream;
    Reduction reduction;
  };
  int depth = 0;
  ncclResult_t first_error = ncclSuccess;
  std::vector<Call> calls;
};

Group& CurrentGroup() {
  static thread_local Group group;
  return group;
}

ncclResult_t Submit(Runtime& r, const std::shared_ptr<CUstream_st>& stream,
                    const Reduction& reduction) {
  ++r.statistics.library_calls;
  if (r.IsToFail(Call::kLibrary)) return Refuse(ncclInternalError, "as FailCall has asked for");
  const cudaError_t error = ApiCall([&](Runtime&) {
    return r.SubmitSteps(stream, cudaGraphNodeTypeKernel, [reduction]() -> Step {
      return [one = std::make_shared<Reduction>(reduction)] { return one->Run(); };
    });
  });
  if (error != cudaSuccess) {
    LastError() = cudaGetErrorString(error);
    return ncclUnhandledCudaError;
  }
  ncclComm& comm = *reduction.comm();
  if (comm.blocking) return ncclSuccess;
  comm.busy_polls = kBusyPolls;
  return ncclInProgress;
}

// Under the runtime's lock: refuses what the library does, and begins the rest, or puts it into the group.
ncclResult_t CheckAndBegin(Runtime& r, const std::shared_ptr<ncclComm>& comm, const void* from,
                           void* to, const ReductionTerms& terms, cudaStream_t stream) {
  if (comm->memory->job().aborted != 0) return StateOf(*comm);
  if (comm->state != State::kReady || comm->busy_polls > 0) {
    return Refuse(ncclInvalidUsage, "a reduction while another call is in progress");
  }
  const auto dtype = static_cast<ncclDataType_t>(terms.dtype);
  const size_t size = SizeOf(dtype);
  if (dtype < 0 || dtype >= ncclNumTypes) return Refuse(ncclInvalidArgument, "an unknown dtype");
  if (terms.op < 0 || terms.op >= ncclNumOps) return Refuse(ncclInvalidArgument, "an unknown op");
  if (size == 0 || (terms.op != ncclSum && terms.op != ncclMax)) {
    return Refuse(ncclInvalidUsage, "a dtype or an op that is not emulated");
  }
  if (terms.root < 0 || terms.root >= comm->size) {
    return Refuse(ncclInvalidArgument, "root " + std::to_string(terms.root) + " of " +
                                           std::to_string(comm->size) + " ranks");
  }
  if (terms.count == 0) return ncclSuccess;
  if (terms.count > kPartBytes / size) return Refuse(ncclInvalidUsage, "more than is emulated");
  const bool gives = Reduction::Gives(terms, comm->rank), gets = Reduction::Gets(terms, comm->rank);
  const size_t bytes = terms.count * size;
  for (const auto& [name, p, is_used] :
       {std::tuple<const char*, const void*, bool>("the source", from, gives),
        std::tuple<const char*, const void*, bool>("the target", to, gets)}) {
    if (!is_used) continue;
    if (const ncclResult_t refused = CheckBuffer(r, name, p, bytes, *comm)) return refused;
  }
  const auto* const a = static_cast<const char*>(from);
  const auto* const b = static_cast<const char*>(to);
  if (gives && gets && a != b && a < b + bytes && b < a + bytes) {
    return Refuse(ncclInvalidUsage, "source and target overlap and are not the same");
  }
  const std::shared_ptr<CUstream_st> found = r.Find(stream);
  if (found == nullptr || found->device != comm->device) {
    return Refuse(ncclInvalidUsage, "a stream that is not of the communicator's device");
  }
  const Reduction reduction(comm, from, to, terms);
  if (CurrentGroup().depth == 0) return Submit(r, found, reduction);
  CurrentGroup().calls.push_back({found, reduction});
  return ncclSuccess;
}

ncclResult_t Begin(const void* from, void* to, const ReductionTerms& terms, ncclComm_t handle,
                   cudaStream_t stream) {
  const ncclResult_t begun =
      WithComm(handle, [&](Runtime& r, const std::shared_ptr<ncclComm>& comm) {
        return CheckAndBegin(r, comm, from, to, terms, stream);
      });
  Group& group = CurrentGroup();
  const bool is_good = begun == ncclSuccess || begun == ncclInProgress;
  if (group.depth > 0 && !is_good && group.first_error == ncclSuccess) group.first_error = begun;
  return begun;
}

}  // namespace
}  // namespace halftone::emulation

using namespace halftone::emulation;  // NOLINT: definitions of C functions

extern "C" {

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t dtype,
                           ncclRedOp_t op, ncclComm_t handle, cudaStream_t stream) {
  return Begin(from, to, {count, dtype, op}, handle, stream);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t dtype,
                        ncclRedOp_t op, int root, ncclComm_t handle, cudaStream_t stream) {
  return Begin(from, to, {count, dtype, op, Collective::kReduce, root}, handle, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t dtype, int root,
                           ncclComm_t handle, cudaStream_t stream) {
  return Begin(from, to, {count, dtype, ncclSum, Collective::kBroadcast, root}, handle, stream);
}

ncclResult_t ncclGroupStart() {
  ++CurrentGroup().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  Group& group = CurrentGroup();
  if (group.depth == 0) return Refuse(ncclInvalidUsage, "the end of a group that has not begun");
  if (--group.depth > 0) return ncclSuccess;
  const Group whole = std::exchange(group, Group());
  if (whole.first_error != ncclSuccess) return whole.first_error;
  bool in_progress = false;
  for (const Group::Call& call : whole.calls) {
    const ncclResult_t submitted = Submit(r, call.stream, call.reduction);
    if (submitted == ncclInProgress) in_progress = true;
    if (submitted != ncclSuccess && submitted != ncclInProgress) return submitted;
  }
  return in_progress ? ncclInProgress : ncclSuccess;
}

}  // extern "C"
