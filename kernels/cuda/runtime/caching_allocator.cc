#include "halftone/kernels/cuda/runtime/caching_allocator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "halftone/core/align.h"
#include "halftone/core/check.h"

namespace halftone::cuda {
namespace {

// Past it rounding up would overflow; no device has as much.
constexpr size_t kMaxBytes = size_t{1} << 60;

}  // namespace

CachingAllocator::CachingAllocator(Driver driver) : driver_(std::move(driver)) {}

CachingAllocator::~CachingAllocator() { ReleaseCachedLocked(); }

absl::StatusOr<void*> CachingAllocator::Allocate(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  ++stats_.allocations;
  if (bytes > kMaxBytes) return OutOfMemory(bytes, Concat("the device has ", driver_.total_bytes));
  const size_t requested = AlignUp(bytes, kAlignment);
  const auto signed_bytes = static_cast<int64_t>(requested);
  if (limit_ > 0 && stats_.live_bytes + signed_bytes > limit_) {
    return OutOfMemory(bytes, Concat("the limit is ", limit_));
  }
  const bool small = requested <= kMaxSmallBytes;
  const size_t wanted = small ? requested : AlignUp(requested, kSegmentBytes);
  Piece* piece = TakeCached(wanted, small);
  if (piece == nullptr) {
    const size_t segment = small ? kSegmentBytes : wanted;
    absl::StatusOr<Piece*> fresh = NewSegment(segment, small);
    if (!fresh.ok() && absl::IsResourceExhausted(fresh.status())) {
      ReleaseCachedLocked();
      fresh = NewSegment(segment, small);
    }
    if (!fresh.ok()) {
      return absl::IsResourceExhausted(fresh.status())
                 ? OutOfMemory(bytes, Concat("the device has ", driver_.total_bytes))
                 : fresh.status();
    }
    piece = *fresh;
  }
  piece->requested = requested;
  Split(piece, wanted);
  stats_.live_bytes += signed_bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  return piece->data;
}

void CachingAllocator::Free(void* data) {
  const std::scoped_lock lock(mutex_);
  const auto found = pieces_.find(data);
  HT_CHECK(found != pieces_.end() && !found->second->is_free(),
           "device memory given back that was not given out");
  Piece* piece = found->second.get();
  stats_.live_bytes -= static_cast<int64_t>(piece->requested);
  piece->requested = 0;
  FreePieces& free = free_pieces(piece->small);
  if (piece->behind != nullptr && piece->behind->is_free()) {
    free.erase(piece->behind);
    Absorb(piece, piece->behind);
  }
  if (piece->before != nullptr && piece->before->is_free()) {
    piece = piece->before;
    free.erase(piece);
    Absorb(piece, piece->behind);
  }
  free.insert(piece);
}

void CachingAllocator::ReleaseCached() {
  const std::scoped_lock lock(mutex_);
  ReleaseCachedLocked();
}

kernels::DeviceMemoryStats CachingAllocator::stats() const {
  const std::scoped_lock lock(mutex_);
  kernels::DeviceMemoryStats stats = stats_;
  stats.cached_bytes = held_bytes_ - stats.live_bytes;
  return stats;
}

void CachingAllocator::set_limit(int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  limit_ = bytes;
}

CachingAllocator::Piece* CachingAllocator::TakeCached(size_t bytes, bool small) {
  FreePieces& free = free_pieces(small);
  Piece key{.data = nullptr,
            .bytes = bytes,
            .requested = 0,
            .small = small,
            .before = nullptr,
            .behind = nullptr};
  const auto found = free.lower_bound(&key);
  if (found == free.end()) return nullptr;
  Piece* const piece = *found;
  free.erase(found);
  return piece;
}

absl::StatusOr<CachingAllocator::Piece*> CachingAllocator::NewSegment(size_t bytes, bool small) {
  HT_ASSIGN_OR_RETURN(void* const data, driver_.allocate(bytes));
  ++stats_.device_allocations;
  held_bytes_ += static_cast<int64_t>(bytes);
  auto piece = std::make_unique<Piece>(Piece{.data = static_cast<char*>(data),
                                             .bytes = bytes,
                                             .requested = 0,
                                             .small = small,
                                             .before = nullptr,
                                             .behind = nullptr});
  return (pieces_[data] = std::move(piece)).get();
}

void CachingAllocator::ReleaseCachedLocked() {
  for (FreePieces* free : {&free_small_, &free_large_}) {
    for (auto it = free->begin(); it != free->end();) {
      Piece* const piece = *it;
      if (piece->before != nullptr || piece->behind != nullptr) {
        ++it;
        continue;
      }
      it = free->erase(it);
      held_bytes_ -= static_cast<int64_t>(piece->bytes);
      void* const data = piece->data;
      pieces_.erase(data);
      driver_.free(data);
    }
  }
}

void CachingAllocator::Split(Piece* piece, size_t bytes) {
  if (piece->bytes == bytes) return;
  auto rest = std::make_unique<Piece>(Piece{.data = piece->data + bytes,
                                            .bytes = piece->bytes - bytes,
                                            .requested = 0,
                                            .small = piece->small,
                                            .before = piece,
                                            .behind = piece->behind});
  if (rest->behind != nullptr) rest->behind->before = rest.get();
  piece->behind = rest.get();
  piece->bytes = bytes;
  free_pieces(piece->small).insert(rest.get());
  void* const data = rest->data;
  pieces_[data] = std::move(rest);
}

void CachingAllocator::Absorb(Piece* piece, Piece* behind) {
  piece->bytes += behind->bytes;
  piece->behind = behind->behind;
  if (piece->behind != nullptr) piece->behind->before = piece;
  pieces_.erase(behind->data);
}

absl::Status CachingAllocator::OutOfMemory(size_t bytes, const std::string& bound) const {
  return ResourceExhausted("out of memory: ", bytes, " bytes asked for, ", stats_.live_bytes,
                           " given out; ", bound);
}

}  // namespace halftone::cuda
