#include "halftone/core/io/file_handle.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "halftone/core/io/file.h"

namespace halftone::io {
namespace {

// Whether `bytes` more exceed the size that this process may give a file. The system would not only
// refuse them, but send SIGXFSZ, which by default ends the process.
bool IsOverSizeLimit(int fd, size_t bytes) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  const off_t at = lseek(fd, 0, SEEK_CUR);  // -1 for what has no size
  return at >= 0 && (bytes > limit.rlim_cur || static_cast<rlim_t>(at) > limit.rlim_cur - bytes);
}

}  // namespace

absl::Status SystemError(const std::string& path, const char* what, int error) {
  if (error == ENOENT || error == ENOTDIR) return NotFound(path, ": no such file or directory");
  return FailedPrecondition(path, ": cannot ", what, ": ", std::strerror(error));
}

absl::Status CheckPath(const std::string& path) {
  const size_t nul = path.find('\0');
  if (nul == std::string::npos) return absl::OkStatus();
  return InvalidArgument("path with a NUL byte behind \"", path.substr(0, nul),
                         "\"; expected none: the system would read it as the end");
}

absl::Status CheckReplaceable(const std::string& path) {
  HT_RETURN_IF_ERROR(CheckPath(path));
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return InvalidArgument(path, ": is not a regular file");
  }
  return absl::OkStatus();
}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<size_t> FileHandle::Read(void* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(fd_, static_cast<char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path_, "read", errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

absl::Status FileHandle::Write(const void* data, size_t bytes) {
  if (IsOverSizeLimit(fd_, bytes)) return SystemError(path_, "write", EFBIG);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = write(fd_, static_cast<const char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path_, "write", errno);
    if (n == 0) return SystemError(path_, "write", ENOSPC);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status FileHandle::Sync() {
  return fsync(fd_) == 0 ? absl::OkStatus() : SystemError(path_, "sync", errno);
}

absl::Status FileHandle::Close() {
  const int fd = std::exchange(fd_, -1);
  return close(fd) == 0 ? absl::OkStatus() : SystemError(path_, "close", errno);
}

absl::StatusOr<FileHandle> OpenRegularFile(const std::string& path, int64_t* size) {
  HT_RETURN_IF_ERROR(CheckPath(path));
  // O_NONBLOCK: opening a pipe must not wait for a writer before it is refused below.
  FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path);
  if (!file.is_open()) return SystemError(path, "open", errno);
  struct stat info = {};
  if (fstat(file.fd(), &info) != 0) return SystemError(path, "read its size", errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path, ": is not a regular file");
  *size = info.st_size;
  return file;
}

absl::Status SyncDirectoryOf(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  FileHandle handle(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), directory);
  if (!handle.is_open()) return absl::OkStatus();
  if (fsync(handle.fd()) != 0 && errno == EIO) return SystemError(directory, "sync", errno);
  return absl::OkStatus();
}

}  // namespace halftone::io
