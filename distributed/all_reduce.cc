#include "halftone/distributed/all_reduce.h"

#include <algorithm>
#include <cstring>

#include "halftone/core/check.h"
#include "halftone/core/convert.h"
#include "halftone/core/threads.h"

namespace halftone::distributed {
namespace {

// Chunks are multiples of it, so that they start where cache lines do.
constexpr int64_t kChunkMultiple = 32;
// Elements that are added at a time: their sums stay in the first cache.
constexpr int64_t kBlock = 1024;

int64_t ChunkOf(int64_t elements, int ranks) {
  // One more, for the word of a failure.
  const int64_t chunk = (elements + 1 + ranks - 1) / ranks;
  return (chunk + kChunkMultiple - 1) / kChunkMultiple * kChunkMultiple;
}

// Adds `count` elements of each share, in order; the sums, in T, lie in `sums`.
template <typename T>
void AddBlock(const char* const* shares, int ranks, DType dtype, int64_t first, int64_t count,
              T* sums) {
  const DType wide = sizeof(T) == 8 ? DType::kF64 : DType::kF32;
  const auto bytes = static_cast<int64_t>(SizeOf(dtype));
  T term[kBlock];
  ConvertElements(shares[0] + first * bytes, dtype, sums, wide, count);
  for (int r = 1; r < ranks; ++r) {
    const T* from = term;
    if (dtype == wide) {
      from = reinterpret_cast<const T*>(shares[r]) + first;
    } else {
      ConvertElements(shares[r] + first * bytes, dtype, term, wide, count);
    }
    for (int64_t i = 0; i < count; ++i) sums[i] += from[i];
  }
}

template <typename T>
void AddAll(const char* const* shares, int ranks, DType dtype, int64_t count, bool mean, char* to) {
  const auto bytes = static_cast<int64_t>(SizeOf(dtype));
  ParallelFor(0, count, 16 * kBlock, [&](int64_t begin, int64_t end) {
    T sums[kBlock];
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t n = std::min(kBlock, end - first);
      AddBlock<T>(shares, ranks, dtype, first, n, sums);
      if (mean) {
        for (int64_t i = 0; i < n; ++i) sums[i] /= static_cast<T>(ranks);
      }
      ConvertElements(sums, sizeof(T) == 8 ? DType::kF64 : DType::kF32, to + first * bytes, dtype,
                      n);
    }
  });
}

}  // namespace

int64_t AllReduce::BufferElements(int64_t elements, int ranks) {
  return ranks == 1 ? elements : 2 * ranks * ChunkOf(elements, ranks);
}

AllReduce::AllReduce(Communicator& communicator, DType dtype, int64_t elements, bool mean)
    : communicator_(communicator),
      dtype_(dtype),
      elements_(elements),
      chunk_(ChunkOf(elements, communicator.size())),
      mean_(mean),
      round_(communicator.NewRound()),
      parts_(static_cast<size_t>(communicator.size())),
      shares_(static_cast<size_t>(communicator.size())) {}

AllReduce::~AllReduce() { std::erase(communicator_.under_way_, this); }

char* AllReduce::Chunk(int rank) const {
  return buffer_ + rank * chunk_ * static_cast<int64_t>(SizeOf(dtype_));
}

char* AllReduce::Received(int rank) const { return Chunk(communicator_.size() + rank); }

void AllReduce::Start(void* buffer, bool failed) {
  HT_CHECK(phase_ == Phase::kIdle, "a reduction is started again before it was waited for");
  buffer_ = static_cast<char*>(buffer);
  const auto bytes = static_cast<int64_t>(SizeOf(dtype_));
  const int64_t all = communicator_.size() * chunk_;
  if (failed) std::memset(buffer_, 0, static_cast<size_t>(elements_ * bytes));
  std::memset(buffer_ + elements_ * bytes, 0, static_cast<size_t>((all - elements_) * bytes));
  if (failed) FillElements(1, buffer_ + elements_ * bytes, dtype_, 1);
  communicator_.under_way_.push_back(this);
  for (int& tag : tags_) tag = communicator_.NextTag();
  phase_ = Phase::kToOwners;
  StartRound(/*to_owners=*/true);
}

void AllReduce::StartRound(bool to_owners) {
  const auto bytes = static_cast<size_t>(chunk_) * SizeOf(dtype_);
  const int own = communicator_.rank();
  for (int r = 0; r < communicator_.size(); ++r) {
    parts_[static_cast<size_t>(r)] = {to_owners ? Chunk(r) : Chunk(own), bytes,
                                      to_owners ? Received(r) : Chunk(r), bytes};
  }
  if (!communicator_.status().ok()) return;
  const absl::Status started = round_->Start(parts_, tags_[to_owners ? 0 : 1]);
  if (!started.ok()) communicator_.Fail(Annotate(started, "all_reduce: ")).IgnoreError();
}

void AllReduce::Advance() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kDone || !communicator_.status().ok()) return;
  const absl::StatusOr<bool> done = round_->Test();
  if (!done.ok()) {
    communicator_.Fail(Annotate(done.status(), "all_reduce: ")).IgnoreError();
    return;
  }
  if (!*done) return;
  if (phase_ == Phase::kToOwners) {
    AddShares();
    phase_ = Phase::kToAll;
    StartRound(/*to_owners=*/false);
  } else {
    phase_ = Phase::kDone;
  }
}

void AllReduce::AddShares() {
  const int own = communicator_.rank(), ranks = communicator_.size();
  for (int r = 0; r < ranks; ++r) {
    shares_[static_cast<size_t>(r)] = r == own ? Chunk(own) : Received(r);
  }
  if (dtype_ == DType::kF64) {
    AddAll<double>(shares_.data(), ranks, dtype_, chunk_, mean_, Chunk(own));
  } else {
    AddAll<float>(shares_.data(), ranks, dtype_, chunk_, mean_, Chunk(own));
  }
}

absl::Status AllReduce::Wait(bool* failed) {
  absl::Status status;
  while (phase_ == Phase::kToOwners || phase_ == Phase::kToAll) {
    const Phase before = phase_;
    status = communicator_.Wait(*round_, "all_reduce");
    if (!status.ok()) break;
    // Progress, which the wait calls, may have gone on already.
    if (phase_ == before) Advance();
  }
  std::erase(communicator_.under_way_, this);
  phase_ = Phase::kIdle;
  HT_RETURN_IF_ERROR(status);
  const auto bytes = static_cast<int64_t>(SizeOf(dtype_));
  double word = 0;
  ConvertElements(buffer_ + elements_ * bytes, dtype_, &word, DType::kF64, 1);
  *failed = word != 0;
  return absl::OkStatus();
}

}  // namespace halftone::distributed
