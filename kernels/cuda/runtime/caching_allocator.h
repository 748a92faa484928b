// CachingAllocator: memory of a device in pieces of the driver's allocations, which cost hundreds
// of microseconds each and wait for the device when they are given back.
//
// Requests of up to 1 MiB are carved from segments of 2 MiB, larger ones from segments of their
// own, in multiples of 2 MiB. The smallest free piece that fits serves; what is left of it stays
// free, and free neighbours become one again. The two kinds never mix, so small pieces do not break
// up large ones.
//
// Invariants: the pieces of a segment follow each other without gaps; no two free ones are
// neighbours; a piece is in the set of free ones exactly while it is free.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "halftone/core/status.h"
#include "halftone/kernels/device_backend.h"

namespace halftone::cuda {

// Thread-safe.
class CachingAllocator {
 public:
  static constexpr size_t kAlignment = 256;
  static constexpr size_t kSegmentBytes = size_t{2} << 20;
  static constexpr size_t kMaxSmallBytes = size_t{1} << 20;

  struct Driver {
    // Memory aligned to kAlignment; ResourceExhausted when there is none.
    std::function<absl::StatusOr<void*>(size_t bytes)> allocate;
    // Called while work that uses the memory may be under way: has to wait for it.
    std::function<void(void* data)> free;
    // Of the device, for messages.
    size_t total_bytes = 0;
  };

  explicit CachingAllocator(Driver driver);
  // Everything must have been given back.
  ~CachingAllocator();

  // Bytes > 0. Errors: ResourceExhausted; when the driver has no memory, after a second try with
  // the cached segments given back.
  absl::StatusOr<void*> Allocate(size_t bytes);
  // What Allocate returned, once.
  void Free(void* data);
  // Gives segments without a used piece back to the driver.
  void ReleaseCached();

  // pinned_bytes stays 0. live_bytes counts multiples of kAlignment.
  kernels::DeviceMemoryStats stats() const;
  // 0: none.
  void set_limit(int64_t bytes);

 private:
  struct Piece {
    char* data;
    size_t bytes;
    size_t requested;  // a multiple of kAlignment; 0 while free
    bool small;
    Piece* before;  // neighbours in the segment
    Piece* behind;
    bool is_free() const { return requested == 0; }
  };
  struct Smaller {
    bool operator()(const Piece* a, const Piece* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : std::less<>()(a->data, b->data);
    }
  };
  using FreePieces = std::set<Piece*, Smaller>;

  FreePieces& free_pieces(bool small) { return small ? free_small_ : free_large_; }
  // Null if none fits.
  Piece* TakeCached(size_t bytes, bool small);
  absl::StatusOr<Piece*> NewSegment(size_t bytes, bool small);
  void ReleaseCachedLocked();
  // Cuts `piece` to `bytes`; the rest is free.
  void Split(Piece* piece, size_t bytes);
  void Absorb(Piece* piece, Piece* behind);
  absl::Status OutOfMemory(size_t bytes, const std::string& bound) const;

  const Driver driver_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::unique_ptr<Piece>> pieces_;  // by their data, all
  FreePieces free_small_, free_large_;
  kernels::DeviceMemoryStats stats_;
  int64_t held_bytes_ = 0;  // in segments
  int64_t limit_ = 0;
};

}  // namespace halftone::cuda
