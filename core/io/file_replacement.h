// FileReplacement: a new version of a file that takes the old one's place once it is complete.
#pragma once

#include <string>

#include "halftone/core/io/file_handle.h"

namespace halftone::io {

// The version before the newest.
std::string PreviousPath(const std::string& path);

// Written as "<path>.writing", which a killed program leaves behind and the next write reuses.
// Commit syncs it, renames it to `path` and keeps what was there as PreviousPath(path).
//
// Invariant: once a version is complete, a complete one is at `path` or at PreviousPath(path) at
// every moment, whatever ends the program. Two writers of one path never mix: the second gets an
// error.
class FileReplacement {
 public:
  // Errors: InvalidArgument if one of the names is something else than a regular file; NotFound (no
  // such folder); FailedPrecondition (the system refuses, or another writer is at work), each with
  // the path. The same for Write and Commit. After any error nothing has changed, except that
  // Commit can fail when `path` is already new and only the rest is in doubt.
  static absl::StatusOr<FileReplacement> Begin(const std::string& path);

  FileReplacement(FileReplacement&&) = default;
  FileReplacement& operator=(FileReplacement&&) = delete;
  // Drops what is not committed.
  ~FileReplacement();

  absl::Status Write(const void* data, size_t bytes) { return file_.Write(data, bytes); }
  absl::Status Commit();

 private:
  FileReplacement(FileHandle file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  FileHandle file_;  // "<path>.writing", locked
  std::string path_;
};

}  // namespace halftone::io
