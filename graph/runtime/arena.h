// Arena: the working memory that all executables of one graph share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "halftone/core/allocator.h"

namespace halftone::runtime {

// Grows to the largest executable and never shrinks. Executables run one at a time and keep nothing
// in it between runs.
class Arena {
 public:
  // Makes room; may move the memory, which changes the generation. Errors: ResourceExhausted.
  absl::Status Reserve(size_t bytes) {
    if (buffer_ != nullptr && bytes <= buffer_->size()) return absl::OkStatus();
    HT_ASSIGN_OR_RETURN(buffer_, Buffer::Allocate(bytes));
    ++generation_;
    return absl::OkStatus();
  }
  void* data() const { return buffer_ == nullptr ? nullptr : buffer_->data(); }
  size_t size() const { return buffer_ == nullptr ? 0 : buffer_->size(); }
  // Addresses taken under another generation are stale.
  uint64_t generation() const { return generation_; }

 private:
  std::shared_ptr<Buffer> buffer_;
  uint64_t generation_ = 0;
};

}  // namespace halftone::runtime
