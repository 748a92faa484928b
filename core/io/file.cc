#include "halftone/core/io/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "halftone/core/io/file_handle.h"

namespace halftone::io {
namespace {

absl::Status WriteAndSync(const std::string& path,
                          const std::function<absl::Status(FileHandle&)>& write) {
  FileHandle file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), path);
  if (!file.is_open()) return SystemError(path, "create", errno);
  HT_RETURN_IF_ERROR(write(file));
  HT_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  int64_t size = 0;
  HT_ASSIGN_OR_RETURN(FileHandle file, OpenRegularFile(path, &size));
  if (size > max_bytes) {
    return ResourceExhausted(path, ": has ", size, " bytes; expected at most ", max_bytes);
  }
  std::string contents(static_cast<size_t>(size), '\0');
  HT_ASSIGN_OR_RETURN(const size_t read, file.Read(contents.data(), contents.size()));
  contents.resize(read);  // shorter if the file shrank meanwhile
  return contents;
}

absl::Status WriteFileAtomically(const std::string& path, const std::string& contents) {
  return WriteFileAtomically(
      path, [&](FileHandle& file) { return file.Write(contents.data(), contents.size()); });
}

absl::Status WriteFileAtomically(const std::string& path,
                                 const std::function<absl::Status(FileHandle&)>& write) {
  HT_RETURN_IF_ERROR(CheckReplaceable(path));
  static std::atomic<int64_t> counter{0};
  const std::string temporary = Concat(path, ".tmp", getpid(), "_", counter.fetch_add(1));
  absl::Status status = WriteAndSync(temporary, write);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "replace", errno);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectoryOf(path);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace halftone::io
