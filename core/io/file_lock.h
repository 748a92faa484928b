// FileLock: a name that one process at a time may work under.
#pragma once

#include <string>
#include <utility>

#include "halftone/core/io/file_handle.h"

namespace halftone::io {

// Held until destroyed, or until the process ends in whatever way. It is a lock on the file
// "<path>.lock", which is removed at the end; one that a killed process left behind is taken over.
class FileLock {
 public:
  // Holds nothing.
  FileLock() = default;
  // Errors: FailedPrecondition (another holder, with its process number; the system refuses),
  // NotFound (no such folder), InvalidArgument ("<path>.lock" is not a regular file), each with the
  // path. On a file system without locks it holds nothing and succeeds.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);

  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(FileHandle file) : file_(std::move(file)) {}
  FileHandle file_;
};

}  // namespace halftone::io
