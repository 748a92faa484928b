#include "halftone/core/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace halftone::io {
namespace {

absl::Status SystemError(const std::string& path, const char* what, int error) {
  if (error == ENOENT || error == ENOTDIR) return NotFound(path, ": no such file or directory");
  return FailedPrecondition(path, ": cannot ", what, ": ", std::strerror(error));
}

class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle() {
    if (fd_ >= 0) close(fd_);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int fd() const { return fd_; }
  // Whether closing reports no late write error.
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return close(fd) == 0;
  }

 private:
  int fd_;
};

bool WriteAll(int fd, const std::string& contents) {
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = write(fd, contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

absl::Status WriteAndSync(const std::string& path, const std::string& contents) {
  FileHandle file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.fd() < 0) return SystemError(path, "create", errno);
  if (!WriteAll(file.fd(), contents)) return SystemError(path, "write", errno);
  if (fsync(file.fd()) != 0) return SystemError(path, "sync", errno);
  if (!file.Close()) return SystemError(path, "close", errno);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  // O_NONBLOCK: opening a pipe must not wait for a writer before it is refused below.
  FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) return SystemError(path, "open", errno);
  struct stat info = {};
  if (fstat(file.fd(), &info) != 0) return SystemError(path, "read its size", errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path, ": is not a regular file");
  if (info.st_size > max_bytes) {
    return ResourceExhausted(path, ": has ", info.st_size, " bytes; expected at most ", max_bytes);
  }
  std::string contents(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = read(file.fd(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path, "read", errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  contents.resize(done);  // shorter if the file shrank meanwhile
  return contents;
}

absl::Status WriteFileAtomically(const std::string& path, const std::string& contents) {
  static std::atomic<int64_t> counter{0};
  const std::string temporary = Concat(path, ".tmp", getpid(), "_", counter.fetch_add(1));
  absl::Status status = WriteAndSync(temporary, contents);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "replace", errno);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  // The rename itself lasts only once the directory is on disk; a file system that cannot sync a
  // directory has done all it can.
  FileHandle directory(open(DirectoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd() >= 0) fsync(directory.fd());
  return absl::OkStatus();
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace halftone::io
