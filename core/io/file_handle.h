// FileHandle: an open file, and whole reads and writes with our errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "halftone/core/status.h"

namespace halftone::io {

// "<path>: cannot <what>: <reason>", or NotFound where the file or its folder does not exist.
absl::Status SystemError(const std::string& path, const char* what, int error);

// Errors: InvalidArgument for a path with a NUL byte, which the system would read as its end.
absl::Status CheckPath(const std::string& path);
// The same, and InvalidArgument for a folder, a device or a link, which must not be renamed away.
absl::Status CheckReplaceable(const std::string& path);

// Owns a file descriptor; `path` is for messages.
class FileHandle {
 public:
  FileHandle() = default;
  FileHandle(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  FileHandle(FileHandle&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  int fd() const { return fd_; }
  // Leaves the descriptor to the caller.
  int Release() { return std::exchange(fd_, -1); }
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

  // Reads until `data` is full or the file ends; gives the bytes read.
  absl::StatusOr<size_t> Read(void* data, size_t bytes);
  absl::Status Write(const void* data, size_t bytes);
  // Until its bytes are on the disk.
  absl::Status Sync();
  // Reports a late write error, which the destructor cannot.
  absl::Status Close();

 private:
  int fd_ = -1;
  std::string path_;
};

// Opens for reading. `size`: its size in bytes. Errors: NotFound, InvalidArgument (not a regular
// file), FailedPrecondition (the system refuses), each with the path.
absl::StatusOr<FileHandle> OpenRegularFile(const std::string& path, int64_t* size);

// Makes renames in the folder of `path` last. A file system that cannot sync a folder has done all
// it can.
absl::Status SyncDirectoryOf(const std::string& path);

}  // namespace halftone::io
