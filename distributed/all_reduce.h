// AllReduce: the sum or mean of every rank's buffer, on all ranks, while something else runs.
//
// Each rank owns an equal chunk of the buffer. First every rank sends each chunk to its owner, who
// adds them (add_shares.h); then owners send their chunks to all. So every rank has the same bits, the
// same in every run with as many ranks, whatever MPI or network; and 16-bit buffers travel in 16 bit
// and are summed in f32. 2 (n - 1) / n of the buffer goes out of each rank, which is the least there is.
// Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004 (reduce-scatter
// and all-gather), by direct messages.
#pragma once

#include <cstdint>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/distributed/collective.h"

namespace halftone::distributed {

class AllReduce : public Collective {
 public:
  // Of `elements` of `dtype` (a float type). `mean`: divides the sums by the number of ranks.
  AllReduce(Communicator& communicator, DType dtype, int64_t elements, bool mean);

  // Of the buffer: `elements`, whether a rank has failed, and room for what comes.
  static int64_t BufferElements(int64_t elements, int ranks);

  // Begins with the elements at the front of `buffer`, which is this object's until Wait.
  // `failed`: this rank has nothing to give but word of its failure. All ranks start the same
  // reductions in the same order. Errors are kept for Wait.
  void Start(void* buffer, bool failed);

 private:
  char* Chunk(int rank) const;     // where a chunk lies
  char* Received(int rank) const;  // where a rank's share of the own chunk comes
  void FillParts(int turn, absl::Span<Part> parts) const override;
  void EndTurn(int turn) override;
  bool HasFailed() const override;

  const DType dtype_;
  const int64_t elements_, chunk_;
  const bool mean_;
  std::vector<const char*> shares_;  // of the own chunk
};

}  // namespace halftone::distributed
