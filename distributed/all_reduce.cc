#include "halftone/distributed/all_reduce.h"

#include <cstring>

#include "halftone/distributed/add_shares.h"

namespace halftone::distributed {
namespace {

// Chunks are multiples of it, so that they start where cache lines do.
constexpr int64_t kChunkMultiple = 32;

int64_t ChunkOf(int64_t elements, int ranks) {
  // One more, for the word of a failure.
  const int64_t chunk = (elements + 1 + ranks - 1) / ranks;
  return (chunk + kChunkMultiple - 1) / kChunkMultiple * kChunkMultiple;
}

constexpr int kToOwners = 0;

}  // namespace

int64_t AllReduce::BufferElements(int64_t elements, int ranks) {
  return ranks == 1 ? elements : 2 * ranks * ChunkOf(elements, ranks);
}

AllReduce::AllReduce(Communicator& communicator, DType dtype, int64_t elements, bool mean)
    : Collective(communicator, "all_reduce", 2),
      dtype_(dtype),
      elements_(elements),
      chunk_(ChunkOf(elements, communicator.size())),
      mean_(mean),
      shares_(static_cast<size_t>(communicator.size())) {}

char* AllReduce::Chunk(int rank) const {
  return bytes() + rank * chunk_ * static_cast<int64_t>(SizeOf(dtype_));
}

char* AllReduce::Received(int rank) const { return Chunk(communicator().size() + rank); }

void AllReduce::Start(void* buffer, bool failed) {
  auto* const begin = static_cast<char*>(buffer);
  const auto bytes = static_cast<int64_t>(SizeOf(dtype_));
  const int64_t all = communicator().size() * chunk_;
  if (failed) std::memset(begin, 0, static_cast<size_t>(elements_ * bytes));
  std::memset(begin + elements_ * bytes, 0, static_cast<size_t>((all - elements_) * bytes));
  PutWord(failed, begin + elements_ * bytes, dtype_);
  Begin(buffer);
}

void AllReduce::FillParts(int turn, absl::Span<Part> parts) const {
  const auto bytes = static_cast<size_t>(chunk_) * SizeOf(dtype_);
  const int own = communicator().rank();
  for (int r = 0; r < communicator().size(); ++r) {
    parts[static_cast<size_t>(r)] = {turn == kToOwners ? Chunk(r) : Chunk(own), bytes,
                                     turn == kToOwners ? Received(r) : Chunk(r), bytes};
  }
}

void AllReduce::EndTurn(int turn) {
  if (turn != kToOwners) return;
  const int own = communicator().rank(), ranks = communicator().size();
  for (int r = 0; r < ranks; ++r) {
    shares_[static_cast<size_t>(r)] = r == own ? Chunk(own) : Received(r);
  }
  AddShares(shares_.data(), ranks, dtype_, chunk_, mean_, Chunk(own));
}

bool AllReduce::HasFailed() const {
  return HasWord(bytes() + elements_ * static_cast<int64_t>(SizeOf(dtype_)), dtype_);
}

}  // namespace halftone::distributed
