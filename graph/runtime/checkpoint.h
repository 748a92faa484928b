// Checkpoint: the state of a graph, and what the program adds to it, in one file
// (proto/checkpoint.proto is its form).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "halftone/graph/runtime/load_options.h"

namespace halftone::io {
class FileLock;
}

namespace halftone::runtime {

struct Checkpoint {
  StateDict tensors;  // names that share a tensor are stored once and share one again
  std::map<std::string, std::string> metadata;  // any bytes, keys not empty
};

// Replaces the file at `path`, of which the last version stays as "<path>.previous". Whatever ends
// the program, a complete file is at one of the two names. Equal checkpoints give equal bytes.
// Errors: InvalidArgument (an undefined tensor, an empty or oversized name, something at `path`
// that is not a regular file), NotFound (no such folder), FailedPrecondition (the system refuses,
// with its reason; another writer is at work). The file at `path` is then as before.
absl::Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint);

// Untrusted input. Memory is bounded by the size of the file.
// Errors: NotFound; InvalidArgument (not a checkpoint, a newer version, a header that breaks the
// rules); DataLoss (truncated, extended or changed); ResourceExhausted; FailedPrecondition (the
// system refuses), each with the path.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);

// The same, but reads "<path>.previous" where `path` is missing or cannot be read. `note` then says
// so and why, for the user to see; it is empty otherwise. Errors: what is wrong with either;
// NotFound only where there is no file at all.
absl::StatusOr<Checkpoint> ReadLatestCheckpoint(const std::string& path, std::string* note);

// The right to save a run at a path, which one process at a time has: until this is destroyed, or
// the process ends in whatever way. Saving does not ask for it; runs that do keep from overwriting
// each other.
class CheckpointLock {
 public:
  CheckpointLock();  // holds nothing
  CheckpointLock(CheckpointLock&&) noexcept;
  CheckpointLock& operator=(CheckpointLock&&) noexcept;
  ~CheckpointLock();

  // Also sees that a checkpoint can be written at `path`, so that it is an error before the first
  // step and not after hours. Errors: FailedPrecondition (another holder, with its process number;
  // the system refuses), NotFound (no such folder), InvalidArgument (something at `path` or
  // "<path>.lock" that is not a regular file), each with the path. On a file system without locks
  // it holds nothing and succeeds.
  static absl::StatusOr<CheckpointLock> Acquire(const std::string& path);

 private:
  std::unique_ptr<io::FileLock> lock_;
};

}  // namespace halftone::runtime
