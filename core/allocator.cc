#include "halftone/core/allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "halftone/core/align.h"
#include "halftone/core/alloc_counter.h"
#include "halftone/core/mapped_blocks.h"

namespace halftone {
namespace {

std::atomic<int64_t> g_allocations{0};
std::atomic<int64_t> g_live_bytes{0};
std::atomic<int64_t> g_peak_bytes{0};
std::atomic<int64_t> g_limit_bytes{0};

// Adds `bytes` to the live bytes unless that would pass the limit.
bool Reserve(int64_t bytes) {
  int64_t live = g_live_bytes.load(std::memory_order_relaxed);
  const int64_t limit = g_limit_bytes.load(std::memory_order_relaxed);
  do {
    if (limit > 0 && bytes > limit - live) return false;
  } while (!g_live_bytes.compare_exchange_weak(live, live + bytes, std::memory_order_relaxed));
  return true;
}

void Release(int64_t bytes) { g_live_bytes.fetch_sub(bytes, std::memory_order_relaxed); }

void RaisePeak() {
  const int64_t live = g_live_bytes.load(std::memory_order_relaxed);
  int64_t peak = g_peak_bytes.load(std::memory_order_relaxed);
  while (live > peak &&
         !g_peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

MemoryBlock HeapBlock(size_t bytes, bool zeroed) {
  // aligned_alloc wants a multiple of the alignment; an empty buffer still has an address.
  const size_t capacity = AlignUp(std::max<size_t>(1, bytes), kBufferAlignment);
  void* const data = std::aligned_alloc(kBufferAlignment, capacity);
  if (zeroed && data != nullptr) std::memset(data, 0, capacity);
  return {data, capacity};
}

}  // namespace

absl::StatusOr<std::shared_ptr<Buffer>> Buffer::Make(size_t bytes, bool zeroed) {
  // Half of the address space: rounding up and adding to the live bytes cannot overflow.
  constexpr auto kMaxBytes = static_cast<size_t>(std::numeric_limits<int64_t>::max() / 2);
  if (bytes > kMaxBytes) {
    return ResourceExhausted("cannot allocate ", bytes, " bytes; expected at most ", kMaxBytes);
  }
  const auto counted = static_cast<int64_t>(bytes);
  if (!Reserve(counted)) {
    return ResourceExhausted("cannot allocate ", bytes, " bytes: ", BufferStats().live_bytes,
                             " are live and the limit is ",
                             g_limit_bytes.load(std::memory_order_relaxed));
  }
  const MemoryBlock block = IsMapped(bytes) ? MapBlock(bytes, zeroed) : HeapBlock(bytes, zeroed);
  if (block.data == nullptr) {
    Release(counted);
    return ResourceExhausted("cannot allocate ", bytes, " bytes: the system has no more memory");
  }
  NoteAllocation();
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  RaisePeak();
  return std::shared_ptr<Buffer>(new Buffer(block.data, bytes, block.capacity));
}

void Buffer::SetPending(std::shared_ptr<PendingWrite> write) {
  PendingWrite* const earlier = pending_.load(std::memory_order_acquire);
  if (earlier != nullptr && earlier != write.get()) earlier->Forget(*this);
  last_write_ = std::move(write);
  pending_.store(last_write_.get(), std::memory_order_release);
}

Buffer::~Buffer() {
  PendingWrite* const pending = pending_.load(std::memory_order_acquire);
  if (pending != nullptr) pending->Forget(*this);
  if (IsMapped(size_)) {
    UnmapBlock({data_, capacity_});
  } else {
    std::free(data_);
  }
  Release(static_cast<int64_t>(size_));
}

AllocatorStats BufferStats() {
  AllocatorStats stats;
  stats.allocations = g_allocations.load(std::memory_order_relaxed);
  stats.live_bytes = g_live_bytes.load(std::memory_order_relaxed);
  stats.peak_bytes = g_peak_bytes.load(std::memory_order_relaxed);
  return stats;
}

void SetBufferLimit(int64_t bytes) { g_limit_bytes.store(bytes, std::memory_order_relaxed); }

}  // namespace halftone
