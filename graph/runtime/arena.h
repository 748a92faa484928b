// Arena: the working memory that all executables of one graph share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "halftone/core/allocator.h"
#include "halftone/kernels/device_backend.h"

namespace halftone::runtime {

// Grows to the largest executable and never shrinks, unless the graph moves to another device.
// Executables run one at a time and keep nothing in it between runs.
class Arena {
 public:
  // Makes room in the memory of `backend`'s device, or of the host if null; may move the memory,
  // which changes the generation. Errors: ResourceExhausted.
  absl::Status Reserve(size_t bytes, kernels::DeviceBackend* backend = nullptr) {
    if (data_ != nullptr && backend == backend_ && bytes <= size_) return absl::OkStatus();
    if (backend == nullptr) {
      HT_ASSIGN_OR_RETURN(on_host_, Buffer::Allocate(bytes));
      on_device_ = nullptr;
      data_ = on_host_->data();
    } else {
      ++generation_;  // also if this fails
      // The old memory first: there may be no room for both.
      on_device_ = nullptr;
      data_ = nullptr;
      HT_ASSIGN_OR_RETURN(on_device_, backend->Allocate(bytes == 0 ? 1 : bytes));
      on_host_ = nullptr;
      data_ = on_device_->data();
    }
    size_ = bytes;
    backend_ = backend;
    ++generation_;
    return absl::OkStatus();
  }
  void* data() const { return data_; }
  size_t size() const { return size_; }
  // Addresses taken under another generation are stale.
  uint64_t generation() const { return generation_; }

 private:
  kernels::DeviceBackend* backend_ = nullptr;
  std::shared_ptr<Buffer> on_host_;
  std::unique_ptr<kernels::DeviceMemory> on_device_;
  void* data_ = nullptr;
  size_t size_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace halftone::runtime
