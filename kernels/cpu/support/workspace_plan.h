// Where the arrays of f32 of a kernel, or of one of its threads, lie in the workspace.
#pragma once

#include <cstdint>

namespace halftone::kernels {

class WorkspacePlan {
 public:
  int64_t size() const { return size_; }  // of f32

 protected:
  // Each starts at 64 bytes.
  int64_t Take(int64_t floats) {
    const int64_t at = size_;
    size_ += (floats + 15) / 16 * 16;
    return at;
  }

 private:
  int64_t size_ = 0;
};

}  // namespace halftone::kernels
