#include "halftone/core/io/file_replacement.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace halftone::io {
namespace {

// Where the version being replaced waits until its place is taken.
std::string ReplacedPath(const std::string& path) { return path + ".replaced"; }

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return SystemError(to, "replace", errno);
}

// Gives the file at `path` the second name `link_path`. False where the file system has no links.
bool Link(const std::string& path, const std::string& link_path) {
  unlink(link_path.c_str());
  return link(path.c_str(), link_path.c_str()) == 0;
}

}  // namespace

std::string PreviousPath(const std::string& path) { return path + ".previous"; }

absl::StatusOr<FileReplacement> FileReplacement::Begin(const std::string& path) {
  const std::string temporary = path + ".writing";
  for (const std::string& name : {path, temporary, ReplacedPath(path), PreviousPath(path)}) {
    HT_RETURN_IF_ERROR(CheckReplaceable(name));
  }
  while (true) {
    FileHandle file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666),
        temporary);
    if (!file.is_open()) return SystemError(temporary, "create", errno);
    // A file system without locks has no second writer that we could find.
    if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return FailedPrecondition(temporary, ": another writer is at work on it");
    }
    struct stat ours = {};
    struct stat named = {};
    if (fstat(file.fd(), &ours) != 0) return SystemError(temporary, "inspect", errno);
    // Whoever held the lock has given the file its final name meanwhile: it is not ours to empty.
    if (lstat(temporary.c_str(), &named) != 0 || named.st_ino != ours.st_ino) continue;
    if (ftruncate(file.fd(), 0) != 0) return SystemError(temporary, "empty", errno);
    return FileReplacement(std::move(file), path);
  }
}

FileReplacement::~FileReplacement() {
  if (file_.is_open()) unlink(file_.path().c_str());
}

absl::Status FileReplacement::Commit() {
  HT_RETURN_IF_ERROR(file_.Sync());
  const std::string replaced = ReplacedPath(path_);
  const std::string previous = PreviousPath(path_);
  // The old version leaves its name only by the rename that brings the new one, and becomes the
  // previous one only then: it might be damaged, and the one before it the only good one.
  const bool linked = Link(path_, replaced);
  if (!linked && access(path_.c_str(), F_OK) == 0) HT_RETURN_IF_ERROR(Rename(path_, previous));
  if (absl::Status status = Rename(file_.path(), path_); !status.ok()) {
    if (linked) unlink(replaced.c_str());
    return status;
  }
  // From here on the name of the temporary file may be another writer's.
  const absl::Status closed = file_.Close();
  if (linked) {
    // Absent: another writer, right behind us, has tidied up.
    if (std::rename(replaced.c_str(), previous.c_str()) != 0 && errno != ENOENT) {
      return SystemError(previous, "replace", errno);
    }
    // A rename of a file to its own second name does nothing.
    unlink(replaced.c_str());
  }
  HT_RETURN_IF_ERROR(closed);
  return SyncDirectoryOf(path_);
}

}  // namespace halftone::io
