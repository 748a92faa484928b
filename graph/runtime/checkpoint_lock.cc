#include <utility>

#include "halftone/core/io/file_lock.h"
#include "halftone/core/io/file_replacement.h"
#include "halftone/graph/runtime/checkpoint.h"

namespace halftone::runtime {

CheckpointLock::CheckpointLock() = default;
CheckpointLock::CheckpointLock(CheckpointLock&&) noexcept = default;
CheckpointLock& CheckpointLock::operator=(CheckpointLock&&) noexcept = default;
CheckpointLock::~CheckpointLock() = default;

absl::StatusOr<CheckpointLock> CheckpointLock::Acquire(const std::string& path) {
  CheckpointLock held;
  HT_ASSIGN_OR_RETURN(io::FileLock lock, io::FileLock::Acquire(path));
  held.lock_ = std::make_unique<io::FileLock>(std::move(lock));
  HT_RETURN_IF_ERROR(io::FileReplacement::Begin(path).status());
  return held;
}

}  // namespace halftone::runtime
