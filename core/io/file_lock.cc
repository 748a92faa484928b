#include "halftone/core/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace halftone::io {
namespace {

// What the holder wrote; the file is whatever somebody put there.
std::string Holder(FileHandle& file) {
  std::string text(16, '\0');
  const absl::StatusOr<size_t> read = file.Read(text.data(), text.size());
  text.resize(read.ok() ? *read : 0);
  text.resize(std::min(text.find_first_not_of("0123456789"), text.size()));
  return text.empty() ? "another process" : "process " + text;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  const std::string name = path + ".lock";
  HT_RETURN_IF_ERROR(CheckReplaceable(name));
  while (true) {
    FileHandle file(
        open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666), name);
    if (!file.is_open()) return SystemError(name, "create", errno);
    if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return FileLock();
      return FailedPrecondition(path, ": ", Holder(file),
                                " works on it; expected another name, or ", "that process to end");
    }
    struct stat ours = {};
    struct stat named = {};
    if (fstat(file.fd(), &ours) != 0) return SystemError(name, "inspect", errno);
    // The holder before has removed the name between our open and our lock.
    if (lstat(name.c_str(), &named) != 0 || named.st_ino != ours.st_ino) continue;
    if (ftruncate(file.fd(), 0) != 0) return SystemError(name, "empty", errno);
    const std::string number = std::to_string(getpid());
    HT_RETURN_IF_ERROR(file.Write(number.data(), number.size()));
    return FileLock(std::move(file));
  }
}

FileLock::~FileLock() {
  if (file_.is_open()) unlink(file_.path().c_str());
}

}  // namespace halftone::io
