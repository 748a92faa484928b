// ReduceScatter, AllGather: exchanges of a buffer of which each rank owns a part, of whatever size.
// Together they are what AllReduce does in one; between the two each rank makes something of its part.
#pragma once

#include <cstdint>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/distributed/collective.h"

namespace halftone::distributed {

// Sizes of all ranks' parts, in elements, one behind the other from the front of a buffer.
class PartSizes {
 public:
  PartSizes(std::vector<int64_t> sizes, DType dtype);
  size_t bytes(int rank) const;
  int64_t begin(int rank) const { return begins_[static_cast<size_t>(rank)]; }  // in bytes
  int64_t elements(int rank) const { return sizes_[static_cast<size_t>(rank)]; }
  int64_t end() const { return begins_.back(); }  // in bytes

 private:
  std::vector<int64_t> sizes_, begins_;
  int64_t element_bytes_;
};

// The sum or mean of every rank's share of a part, for its owner (add_shares.h). (n - 1) / n of the buffer
// goes out of a rank whose part is 1/n of it.
class ReduceScatter : public Collective {
 public:
  // Of parts of `dtype` (a float type). The last element of each is for the word of a failure, so no
  // part is empty.
  ReduceScatter(Communicator& communicator, DType dtype, const std::vector<int64_t>& parts,
                bool mean);

  // Of the buffer: the parts, room for what the others send for that of `rank`, and 32 elements more, so that
  // devices have 32 for each rank there, for the words of their faults.
  static int64_t BufferElements(const std::vector<int64_t>& parts, int rank);

  // Begins with the parts at the front of `buffer`, but for their last elements. `failed`: this rank has
  // nothing to give but word of its failure. After Wait the own part is the sum.
  void Start(void* buffer, bool failed);

 private:
  char* Received(int rank) const;
  char* Word(char* buffer, int rank) const;
  void FillParts(int turn, absl::Span<Part> parts) const override;
  void EndTurn(int turn) override;
  bool HasFailed() const override;

  const DType dtype_;
  const PartSizes sizes_;
  const bool mean_;
  std::vector<const char*> shares_;  // of the own part
};

// Every rank's part, on all.
class AllGather : public Collective {
 public:
  // Of parts of `dtype`, any of which may be empty.
  AllGather(Communicator& communicator, DType dtype, const std::vector<int64_t>& parts);

  // Begins with the own part in its place in `buffer`, which has all parts and no more.
  void Start(void* buffer) { Begin(buffer); }

 private:
  void FillParts(int turn, absl::Span<Part> parts) const override;

  const PartSizes sizes_;
};

}  // namespace halftone::distributed
