#include "halftone/distributed/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "halftone/core/check.h"
#include "halftone/core/philox.h"
#include "halftone/distributed/distributed.h"

namespace halftone::distributed {

absl::StatusOr<Sampler> Sampler::Make(int64_t count, const SamplerOptions& options) {
  SamplerOptions own = options;
  if (own.rank == -1) own.rank = Rank();
  if (own.ranks == -1) own.ranks = Size();
  if (count < 0) return InvalidArgument("Sampler: count is ", count, "; expected 0 or more");
  if (own.batch < 1)
    return InvalidArgument("Sampler: batch is ", own.batch, "; expected 1 or more");
  if (own.ranks < 1 || own.rank < 0 || own.rank >= own.ranks) {
    return InvalidArgument("Sampler: rank is ", own.rank, " of ", own.ranks,
                           "; expected one of 0..ranks-1");
  }
  return Sampler(count, own);
}

Sampler::Sampler(int64_t count, const SamplerOptions& options) : options_(options) {
  order_.resize(static_cast<size_t>(count));
  SetEpoch(0);
}

void Sampler::SetEpoch(uint64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  if (!options_.shuffle) return;
  PhiloxStream random(options_.seed, epoch);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
}

int64_t Sampler::steps() const {
  const auto count = static_cast<int64_t>(order_.size());
  const int64_t together = options_.batch * options_.ranks;
  const int64_t left = count % together;
  switch (options_.tail) {
    case Tail::kDrop:
      return count / together;
    case Tail::kPad:
      return count / together + (left > 0 ? 1 : 0);
    case Tail::kShorten:
      return count / together + (left >= options_.ranks ? 1 : 0);
  }
  return 0;
}

absl::Span<const int64_t> Sampler::Batch(int64_t step) {
  HT_CHECK(step >= 0 && step < steps(), "a step that the epoch does not have");
  const auto count = static_cast<int64_t>(order_.size());
  const int64_t first = step * options_.batch * options_.ranks;
  int64_t batch = options_.batch;
  if (options_.tail != Tail::kPad) batch = std::min(batch, (count - first) / options_.ranks);
  batch_.resize(static_cast<size_t>(batch));
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t position = first + options_.rank * batch + i;
    batch_[static_cast<size_t>(i)] = order_[static_cast<size_t>(position % count)];
  }
  return batch_;
}

}  // namespace halftone::distributed
