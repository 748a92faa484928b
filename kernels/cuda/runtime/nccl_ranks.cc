#include "halftone/kernels/cuda/runtime/nccl_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "halftone/core/alloc_counter.h"
#include "halftone/distributed/communicator.h"
#include "halftone/kernels/cuda/runtime/nccl.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {

#if defined(HALFTONE_HAS_NCCL)
namespace {

using distributed::Communicator;
using distributed::Patience;

constexpr double kQuestionSeconds = 10;  // for the answer of a rank that is there

ncclDataType_t NcclTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return ncclFloat64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    default:
      return ncclFloat32;
  }
}

class NcclRanks : public Ranks {
 public:
  NcclRanks(const Nccl& nccl, Communicator& world)
      : Ranks(world.rank(), world.size()), nccl_(nccl), world_(world) {}

  // Its communicator meets those of the other ranks.
  absl::Status Start(const ncclUniqueId& id) {
    const AllocationPause pause;
    for (UniqueStream* stream : {&stream_, &side_stream_}) {
      cudaStream_t handle = nullptr;
      HT_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
      stream->reset(handle);
    }
    cudaEvent_t event = nullptr;
    HT_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    packed_.reset(event);
    void* broken = nullptr;
    HT_CUDA_RETURN_IF_ERROR(cudaMalloc(&broken, sizeof(int32_t)));
    broken_.reset(broken);
    HT_RETURN_IF_ERROR(SetBroken(0));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const std::scoped_lock lock(mutex_);
    const ncclResult_t begun = nccl_.comm_init_rank_config(&comm_, size(), id, rank(), &config);
    absl::Status started = ToStatus(nccl_, begun, "ncclCommInitRankConfig");
    if (started.ok()) started = Settle("ncclCommInitRankConfig");
    // The others hear of it by a message, which must still be possible.
    if (!started.ok() && comm_ != nullptr) (void)nccl_.comm_abort(std::exchange(comm_, nullptr));
    return started;
  }

  ~NcclRanks() override {
    if (comm_ != nullptr) (void)nccl_.comm_abort(comm_);
  }

  absl::Status status() const override {
    const std::scoped_lock lock(mutex_);
    return status_;
  }
  const int32_t* broken() const override { return static_cast<const int32_t*>(broken_.get()); }

  absl::Status AllReduce(void* buffer, int64_t count, DType dtype, cudaStream_t stream,
                         cudaEvent_t done) override {
    return Exchange("ncclAllReduce", stream, done, [&] {
      return nccl_.all_reduce(buffer, buffer, static_cast<size_t>(count), NcclTypeOf(dtype),
                              ncclSum, comm_, stream_.get());
    });
  }

  // Parts differ in size, so ncclReduceScatter does not fit; a group of reductions is one launch, too.
  absl::Status ReduceScatter(void* buffer, absl::Span<const RankPart> parts, const RankPart& shared,
                             DType dtype, cudaStream_t stream, cudaEvent_t done) override {
    return Exchange("ncclReduce", stream, done, [&] {
      return Grouped([&] {
        ncclResult_t begun = ForEachPart(buffer, parts, dtype, [&](void* part, size_t n, int root) {
          return nccl_.reduce(part, part, n, NcclTypeOf(dtype), ncclSum, root, comm_,
                              stream_.get());
        });
        if (!IsGood(begun)) return begun;
        void* const all = Place(buffer, shared.begin, dtype);
        return nccl_.all_reduce(all, all, static_cast<size_t>(shared.count), NcclTypeOf(dtype),
                                ncclSum, comm_, stream_.get());
      });
    });
  }

  absl::Status AllGather(void* buffer, absl::Span<const RankPart> parts, DType dtype,
                         cudaStream_t stream, cudaEvent_t done) override {
    return Exchange("ncclBroadcast", stream, done, [&] {
      return Grouped([&] {
        return ForEachPart(buffer, parts, dtype, [&](void* part, size_t n, int root) {
          return nccl_.broadcast(part, part, n, NcclTypeOf(dtype), root, comm_, stream_.get());
        });
      });
    });
  }

  absl::Status Wait(absl::FunctionRef<cudaError_t()> query, const char* call) override {
    Patience patience(world_.timeout_seconds());
    for (;;) {
      const cudaError_t state = query();
      if (state != cudaErrorNotReady) {
        // What ended since it was aborted has no results.
        HT_RETURN_IF_ERROR(status());
        return ToStatus(state, call);
      }
      (void)cudaGetLastError();
      HT_RETURN_IF_ERROR(CheckHealth());
      if (!patience.Pause()) return GiveUp();
    }
  }

  // At the end of a process: all ranks or none. One whose communicator a recorded step still refers to
  // leaves it to the end of the process, since NCCL would wait for that step to be destroyed.
  void Leave(bool unused) {
    absl::Status ready = status();
    if (ready.ok() && !unused) ready = FailedPrecondition("a graph is still there");
    if (!world_.status().ok() || !world_.Agree(ready, "leaving NCCL").ok()) return;
    const std::scoped_lock lock(mutex_);
    absl::Status left = ToStatus(nccl_, nccl_.comm_finalize(comm_), "ncclCommFinalize");
    if (left.ok()) left = Settle("ncclCommFinalize");
    ncclComm_t const comm = std::exchange(comm_, nullptr);
    (void)(left.ok() ? nccl_.comm_destroy(comm) : nccl_.comm_abort(comm));
    status_ = FailedPrecondition("the process is ending");
  }

 private:
  static bool IsGood(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
  }
  static void* Place(void* buffer, int64_t element, DType dtype) {
    return static_cast<char*>(buffer) + element * static_cast<int64_t>(SizeOf(dtype));
  }
  // `begin(address, elements, rank)` for each part that is not empty, until one fails.
  template <typename Begin>
  static ncclResult_t ForEachPart(void* buffer, absl::Span<const RankPart> parts, DType dtype,
                                  const Begin& begin) {
    for (size_t r = 0; r < parts.size(); ++r) {
      if (parts[r].count == 0) continue;
      const ncclResult_t begun = begin(Place(buffer, parts[r].begin, dtype),
                                       static_cast<size_t>(parts[r].count), static_cast<int>(r));
      if (!IsGood(begun)) return begun;
    }
    return ncclSuccess;
  }
  // What `begin` calls, as one launch.
  template <typename Begin>
  ncclResult_t Grouped(const Begin& begin) {
    const ncclResult_t opened = nccl_.group_start();
    if (!IsGood(opened)) return opened;
    const ncclResult_t begun = begin();
    const ncclResult_t closed = nccl_.group_end();  // also of one that failed
    return IsGood(begun) ? closed : begun;
  }

  // What `begin` starts on the own stream goes on behind what `stream` holds, and `done` is recorded behind it.
  template <typename Begin>
  absl::Status Exchange(const char* call, cudaStream_t stream, cudaEvent_t done,
                        const Begin& begin) {
    const AllocationPause pause;
    const std::scoped_lock lock(mutex_);
    HT_RETURN_IF_ERROR(status_);
    HT_CUDA_RETURN_IF_ERROR(cudaEventRecord(packed_.get(), stream));
    HT_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream_.get(), packed_.get(), 0));
    absl::Status started = ToStatus(nccl_, begin(), call);
    // The event must come behind what another thread of NCCL may still be putting there.
    if (started.ok()) started = Settle(call);
    if (!started.ok()) return Break(started);
    HT_CUDA_RETURN_IF_ERROR(cudaEventRecord(done, stream_.get()));
    return absl::OkStatus();
  }

  // Until NCCL's threads have done what a call began.
  absl::Status Settle(const char* call) {
    Patience patience(world_.timeout_seconds());
    for (;;) {
      ncclResult_t state = ncclSuccess;
      HT_RETURN_IF_ERROR(
          ToStatus(nccl_, nccl_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError"));
      if (state != ncclInProgress) return ToStatus(nccl_, state, call);
      if (!patience.Pause()) {
        return absl::DeadlineExceededError(Concat(
            call, ": rank ", rank(), " has waited ", world_.timeout_seconds(),
            " s for the devices of other ranks; expected NCCL's network between all machines "
            "(NCCL_DEBUG=INFO tells more)"));
      }
    }
  }

  absl::Status CheckHealth() {
    const std::scoped_lock lock(mutex_);
    HT_RETURN_IF_ERROR(status_);
    ncclResult_t state = ncclSuccess;
    absl::Status health =
        ToStatus(nccl_, nccl_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
    if (health.ok()) health = ToStatus(nccl_, state, "a reduction over the ranks");
    return health.ok() ? health : Break(health);
  }

  absl::Status GiveUp() {
    const double seconds = world_.timeout_seconds();
    const int silent = world_.FindSilent(std::min(kQuestionSeconds, seconds));
    const std::string waited =
        Concat("all_reduce: rank ", rank(), " has waited ", seconds, " s for ");
    const std::scoped_lock lock(mutex_);
    HT_RETURN_IF_ERROR(status_);
    return Break(absl::DeadlineExceededError(
        silent < 0
            ? Concat(waited,
                     "reductions on the devices, though all ranks answer; expected "
                     "the same steps on all, and NCCL's network between all machines "
                     "(NCCL_DEBUG=INFO tells more)")
            : Concat(waited, "the device of rank ", silent,
                     "; expected every rank at the same step: that process hangs, or has left "
                     "the job (HALFTONE_DISTRIBUTED_TIMEOUT)")));
  }

  // Under the lock, once: the end of all exchanges.
  absl::Status Break(absl::Status error) {
    status_ = std::move(error);
    // First, so that no kernel behind a reduction takes its buffer for a result.
    SetBroken(1).IgnoreError();
    if (comm_ != nullptr) (void)nccl_.comm_abort(std::exchange(comm_, nullptr));
    (void)world_.Fail(status_);
    return status_;
  }

  // Beside the streams that may wait.
  absl::Status SetBroken(int value) {
    HT_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(broken_.get(), value, sizeof(int32_t), side_stream_.get()));
    HT_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(side_stream_.get()));
    return absl::OkStatus();
  }

  const Nccl& nccl_;
  Communicator& world_;
  mutable std::mutex mutex_;
  absl::Status status_;
  ncclComm_t comm_ = nullptr;
  UniqueStream stream_, side_stream_;
  UniqueEvent packed_;
  UniqueHandle<void*, cudaFree> broken_;
};

// Registered when CUDA has been used, so it runs before CUDA's own end.
struct Leaver {
  std::weak_ptr<NcclRanks> ranks;
  pid_t process;
};

void AtExit(int exit_status, void* argument) {
  const std::unique_ptr<const Leaver> leaver(static_cast<const Leaver*>(argument));
  const std::shared_ptr<NcclRanks> ranks = leaver->ranks.lock();
  if (exit_status != 0 || ranks == nullptr || leaver->process != getpid()) return;
  ranks->Leave(/*unused=*/ranks.use_count() == 2);  // the backend and this function
}

}  // namespace

absl::StatusOr<std::shared_ptr<Ranks>> JoinByNccl(Communicator& world) {
  const absl::StatusOr<const Nccl*> loaded = LoadNccl();
  ncclUniqueId id{};
  absl::Status ready = loaded.status();
  if (ready.ok() && world.rank() == 0) {
    const AllocationPause pause;
    ready = ToStatus(**loaded, (*loaded)->get_unique_id(&id), "ncclGetUniqueId");
  }
  HT_RETURN_IF_ERROR(world.Agree(ready, "loading NCCL"));
  HT_RETURN_IF_ERROR(world.Broadcast(&id, sizeof(id), /*root=*/0));
  const auto ranks = std::make_shared<NcclRanks>(**loaded, world);
  HT_RETURN_IF_ERROR(world.Agree(ranks->Start(id), "joining by NCCL"));
  on_exit(&AtExit, new Leaver{ranks, getpid()});
  return std::shared_ptr<Ranks>(ranks);
}

#else

absl::StatusOr<std::shared_ptr<Ranks>> JoinByNccl(distributed::Communicator&) {
  return Unimplemented(
      "steps of several ranks: built without NCCL; expected a Halftone that was built where nccl.h is");
}

#endif

}  // namespace halftone::cuda
