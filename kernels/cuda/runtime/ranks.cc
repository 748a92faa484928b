#include "halftone/kernels/cuda/runtime/ranks.h"

#include <algorithm>
#include <map>

#include "halftone/kernels/cuda/runtime/nccl_ranks.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {
namespace {

struct Joined {
  std::mutex mutex;
  std::map<int, std::weak_ptr<Ranks>> of_device;
};

Joined& AllJoined() {
  static auto* const joined = new Joined;
  return *joined;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Ranks>> Ranks::Join(distributed::Communicator& world) {
  int device = 0;
  HT_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  HT_ASSIGN_OR_RETURN(std::shared_ptr<Ranks> ranks, JoinByNccl(world));
  Joined& joined = AllJoined();
  const std::scoped_lock lock(joined.mutex);
  joined.of_device[device] = ranks;
  return ranks;
}

std::shared_ptr<Ranks> Ranks::OfCurrentDevice() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  Joined& joined = AllJoined();
  const std::scoped_lock lock(joined.mutex);
  const auto found = joined.of_device.find(device);
  return found == joined.of_device.end() ? nullptr : found->second.lock();
}

ReductionsUnderWay& ReductionsUnderWay::OfProcess() {
  static auto* const reductions = new ReductionsUnderWay;
  return *reductions;
}

void ReductionsUnderWay::Begin(const void* buffer, cudaEvent_t done) {
  const std::scoped_lock lock(mutex_);
  // One that was begun there before and never ended is of a step that failed half-way.
  std::erase_if(reductions_, [&](const Reduction& r) { return r.buffer == buffer; });
  reductions_.push_back({buffer, done});
}

absl::StatusOr<cudaEvent_t> ReductionsUnderWay::End(const void* buffer) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(reductions_.begin(), reductions_.end(),
                                  [&](const Reduction& r) { return r.buffer == buffer; });
  if (found == reductions_.end()) return FailedPrecondition("nothing was started");
  cudaEvent_t const done = found->done;
  reductions_.erase(found);
  return done;
}

void ReductionsUnderWay::Forget(cudaEvent_t done) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(reductions_, [&](const Reduction& r) { return r.done == done; });
}

}  // namespace halftone::cuda
