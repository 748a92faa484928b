// Sampler: which samples of a data set a rank takes in each step of an epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/status.h"

namespace halftone::distributed {

// What becomes of the samples at the end of an epoch that do not fill a batch on every rank.
enum class Tail : uint8_t {
  kDrop,     // left out: every step has the same shapes
  kPad,      // completed with the first samples of the epoch's order, which are taken twice
  kShorten,  // one step with fewer, as many on each rank; less than one for each rank are left out
};

struct SamplerOptions {
  int64_t batch = 1;  // samples of one rank in a step
  bool shuffle = true;
  uint64_t seed = 0;  // of the orders; the same on all ranks
  Tail tail = Tail::kDrop;
  int rank = -1;   // -1: of this process
  int ranks = -1;  // -1: of this job
};

// A step takes the next batch * ranks samples of the epoch's order, one rank's part behind the
// other's. So n ranks of batch B take in step k what one rank of batch n B takes, and a run goes on
// where it was with another number of ranks, if n B stays. The order of an epoch follows from seed and
// epoch alone: it is core/philox.h's PhiloxStream(seed, epoch) through a Fisher-Yates shuffle.
class Sampler {
 public:
  // Of `count` samples. Errors: InvalidArgument: negative count, batch under 1, rank not below ranks.
  static absl::StatusOr<Sampler> Make(int64_t count, const SamplerOptions& options);

  // Takes the order of another epoch; the first is 0.
  void SetEpoch(uint64_t epoch);
  // Of an epoch; the same on all ranks.
  int64_t steps() const;
  // Indices of this rank's samples, valid until SetEpoch or the next call. Requires: 0 <= step < steps().
  absl::Span<const int64_t> Batch(int64_t step);

 private:
  Sampler(int64_t count, const SamplerOptions& options);

  SamplerOptions options_;
  std::vector<int64_t> order_, batch_;
};

}  // namespace halftone::distributed
