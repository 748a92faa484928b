// Host memory for tensors and arenas, with counters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "halftone/core/status.h"

namespace halftone {

// Every buffer starts at a multiple of this many bytes (a cache line, and the widest vector).
inline constexpr size_t kBufferAlignment = 64;

class Buffer;

// A write of another device into buffers that is still under way. Thread-safe.
class PendingWrite {
 public:
  virtual ~PendingWrite() = default;
  // Until the write is done; the buffers' contents are undefined if it failed, and whoever started
  // it says why. Calls ClearPending on each.
  virtual void Wait() = 0;
  // The buffer goes away, or another write replaces this one: leave it alone. Does not wait for the
  // device.
  virtual void Forget(Buffer& buffer) = 0;
};

// Bytes owned by one allocation; freed on destruction. Contents start uninitialised.
class Buffer {
 public:
  // Error: ResourceExhausted with the number of bytes asked for, if the system or the limit
  // refuses.
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) {
    return Make(bytes, /*zeroed=*/false);
  }
  // The same with all bytes 0. The pages of a large buffer come when they are first touched, so
  // this costs nothing before.
  static absl::StatusOr<std::shared_ptr<Buffer>> AllocateZeroed(size_t bytes) {
    return Make(bytes, /*zeroed=*/true);
  }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Waits for a pending write, if there is one.
  void* data() const {
    PendingWrite* const pending = pending_.load(std::memory_order_acquire);
    if (pending != nullptr) [[unlikely]] {
      pending->Wait();
    }
    return data_;
  }
  // Does not wait: to compare, or for the writer itself.
  void* address() const { return data_; }
  size_t size() const { return size_; }

  // `write` has undertaken to fill the buffer (null: nobody has); an earlier write is forgotten.
  void SetPending(std::shared_ptr<PendingWrite> write);
  // Called by the write when it is done.
  void ClearPending() { pending_.store(nullptr, std::memory_order_release); }

 private:
  static absl::StatusOr<std::shared_ptr<Buffer>> Make(size_t bytes, bool zeroed);
  Buffer(void* data, size_t size, size_t capacity)
      : data_(data), size_(size), capacity_(capacity) {}
  void* data_;
  size_t size_;
  size_t capacity_;  // bytes taken from the system
  std::atomic<PendingWrite*> pending_{nullptr};
  std::shared_ptr<PendingWrite> last_write_;  // keeps what `pending_` names
};

struct AllocatorStats {
  int64_t allocations = 0;  // calls since program start
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
};
// Thread-safe snapshot over all buffers of the process.
AllocatorStats BufferStats();
// Allocations that would bring live_bytes over `bytes` fail; 0 removes the limit. For tests and
// embedders.
void SetBufferLimit(int64_t bytes);

}  // namespace halftone
