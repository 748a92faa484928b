#include "halftone/distributed/shards.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "halftone/distributed/add_shares.h"

namespace halftone::distributed {

PartSizes::PartSizes(std::vector<int64_t> sizes, DType dtype)
    : sizes_(std::move(sizes)), begins_{0}, element_bytes_(static_cast<int64_t>(SizeOf(dtype))) {
  for (const int64_t size : sizes_) begins_.push_back(begins_.back() + size * element_bytes_);
}

size_t PartSizes::bytes(int rank) const {
  return static_cast<size_t>(elements(rank) * element_bytes_);
}

ReduceScatter::ReduceScatter(Communicator& communicator, DType dtype,
                             const std::vector<int64_t>& parts, bool mean)
    : Collective(communicator, "reduce_scatter", 1),
      dtype_(dtype),
      sizes_(parts, dtype),
      mean_(mean),
      shares_(parts.size()) {}

int64_t ReduceScatter::BufferElements(const std::vector<int64_t>& parts, int rank) {
  const auto others = static_cast<int64_t>(parts.size()) - 1;
  return std::accumulate(parts.begin(), parts.end(), int64_t{0}) +
         others * parts[static_cast<size_t>(rank)] + 32;
}

char* ReduceScatter::Received(int rank) const {
  const int own = communicator().rank();
  const int64_t place = rank < own ? rank : rank - 1;
  return bytes() + sizes_.end() + place * static_cast<int64_t>(sizes_.bytes(own));
}

char* ReduceScatter::Word(char* buffer, int rank) const {
  return buffer + sizes_.begin(rank + 1) - SizeOf(dtype_);
}

void ReduceScatter::Start(void* buffer, bool failed) {
  auto* const begin = static_cast<char*>(buffer);
  if (failed) std::memset(begin, 0, static_cast<size_t>(sizes_.end()));
  for (int r = 0; r < communicator().size(); ++r) PutWord(failed, Word(begin, r), dtype_);
  Begin(buffer);
}

void ReduceScatter::FillParts(int /*turn*/, absl::Span<Part> parts) const {
  const int own = communicator().rank();
  for (int r = 0; r < communicator().size(); ++r) {
    if (r == own) continue;
    parts[static_cast<size_t>(r)] = {bytes() + sizes_.begin(r), sizes_.bytes(r), Received(r),
                                     sizes_.bytes(own)};
  }
}

void ReduceScatter::EndTurn(int /*turn*/) {
  const int own = communicator().rank(), ranks = communicator().size();
  char* const sum = bytes() + sizes_.begin(own);
  for (int r = 0; r < ranks; ++r) shares_[static_cast<size_t>(r)] = r == own ? sum : Received(r);
  AddShares(shares_.data(), ranks, dtype_, sizes_.elements(own), mean_, sum);
}

bool ReduceScatter::HasFailed() const {
  return HasWord(Word(bytes(), communicator().rank()), dtype_);
}

AllGather::AllGather(Communicator& communicator, DType dtype, const std::vector<int64_t>& parts)
    : Collective(communicator, "all_gather", 1), sizes_(parts, dtype) {}

void AllGather::FillParts(int /*turn*/, absl::Span<Part> parts) const {
  const int own = communicator().rank();
  for (int r = 0; r < communicator().size(); ++r) {
    parts[static_cast<size_t>(r)] = {bytes() + sizes_.begin(own), sizes_.bytes(own),
                                     bytes() + sizes_.begin(r), sizes_.bytes(r)};
  }
}

}  // namespace halftone::distributed
