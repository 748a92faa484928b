// AllReduce: the sum or mean of every rank's buffer, on all ranks, while something else runs.
//
// Each rank owns an equal chunk of the buffer. First every rank sends each chunk to its owner, who
// adds them in the order of the ranks, in f32 (f64 for f64), and rounds the sum once; then owners
// send their chunks to all. So every rank has the same bits, the same in every run with as many
// ranks, whatever MPI or network; and 16-bit buffers travel in 16 bit and are summed in f32.
// 2 (n - 1) / n of the buffer goes out of each rank, which is the least there is.
// Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004 (reduce-scatter
// and all-gather), by direct messages.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/core/status.h"
#include "halftone/distributed/communicator.h"

namespace halftone::distributed {

class AllReduce {
 public:
  // Of `elements` of `dtype` (a float type). `mean`: divides the sums by the number of ranks.
  AllReduce(Communicator& communicator, DType dtype, int64_t elements, bool mean);
  ~AllReduce();
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  // Of the buffer: `elements`, whether a rank has failed, and room for what comes.
  static int64_t BufferElements(int64_t elements, int ranks);

  // Begins with the elements at the front of `buffer`, which is this object's until Wait.
  // `failed`: this rank has nothing to give but word of its failure. All ranks start the same
  // reductions in the same order. Errors are kept for Wait.
  void Start(void* buffer, bool failed);
  // Does what can be done without waiting.
  void Advance();
  // Waits until the elements at the front of the buffer are the results. `*failed`: whether any rank
  // had failed; results are then of no use. Errors: those of Communicator::Wait.
  absl::Status Wait(bool* failed);

  const void* buffer() const { return buffer_; }

 private:
  enum class Phase : uint8_t { kIdle, kToOwners, kToAll, kDone };

  char* Chunk(int rank) const;     // where a chunk lies
  char* Received(int rank) const;  // where a rank's share of the own chunk comes
  void StartRound(bool to_owners);
  void AddShares();

  Communicator& communicator_;
  const DType dtype_;
  const int64_t elements_, chunk_;
  const bool mean_;
  const std::unique_ptr<Round> round_;
  std::vector<Part> parts_;
  std::vector<const char*> shares_;  // of the own chunk
  char* buffer_ = nullptr;
  Phase phase_ = Phase::kIdle;
  int tags_[2] = {};
};

}  // namespace halftone::distributed
