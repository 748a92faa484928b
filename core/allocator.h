// Host memory for tensors and arenas, with counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "halftone/core/status.h"

namespace halftone {

// Every buffer starts at a multiple of this many bytes (a cache line, and the widest vector).
inline constexpr size_t kBufferAlignment = 64;

// Bytes owned by one allocation; freed on destruction. Contents start uninitialised.
class Buffer {
 public:
  // Error: ResourceExhausted with the number of bytes asked for, if the system or the limit
  // refuses.
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Buffer(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
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
