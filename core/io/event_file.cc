#include "halftone/core/io/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "halftone/core/io/record_file.h"

namespace halftone::io {
namespace {

namespace fs = std::filesystem;

constexpr char kNamePart[] = "tfevents";
constexpr char kNameBegin[] = "events.out.tfevents.";
constexpr size_t kKeptBytes = size_t{1} << 16;
constexpr std::chrono::seconds kKeptTime{1};

constexpr int64_t kMaxSeconds = 9'999'999'999;  // ten digits, so that names sort by time

// The seconds in a name that begins like ours; 0 in any other.
int64_t SecondsOf(const std::string& name) {
  int64_t seconds = 0;
  if (name.rfind(kNameBegin, 0) == 0) {
    std::from_chars(name.data() + sizeof(kNameBegin) - 1, name.data() + name.size(), seconds);
  }
  return seconds > 0 && seconds <= kMaxSeconds ? seconds : 0;
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

absl::Status MakeFolder(const std::string& folder) {
  HT_RETURN_IF_ERROR(CheckPath(folder));
  std::error_code error, ignored;
  fs::create_directories(folder, error);
  if (fs::is_directory(folder, ignored)) return absl::OkStatus();
  return FailedPrecondition(folder, ": cannot make the folder: ", error.message());
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListEventFiles(const std::string& folder) {
  HT_RETURN_IF_ERROR(CheckPath(folder));
  std::error_code error;
  if (!fs::exists(folder, error)) return NotFound(folder, ": no such folder");
  if (!fs::is_directory(folder, error)) return InvalidArgument(folder, ": is not a folder");
  std::vector<std::string> files;
  auto entry = fs::directory_iterator(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    const bool is_named = entry->path().filename().string().find(kNamePart) != std::string::npos;
    if (is_named && entry->is_regular_file(ignored)) files.push_back(entry->path().string());
  }
  if (error) return FailedPrecondition(folder, ": cannot read: ", error.message());
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<EventFile> EventFile::Create(const std::string& folder) {
  HT_RETURN_IF_ERROR(MakeFolder(folder));
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> before, ListEventFiles(folder));
  auto seconds = static_cast<int64_t>(std::time(nullptr));
  for (const std::string& path : before) {
    // A clock that was put back, or another program of this second.
    seconds = std::max(seconds, SecondsOf(fs::path(path).filename().string()) + 1);
  }
  while (true) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%010lld", static_cast<long long>(seconds));
    const std::string path =
        (fs::path(folder) / Concat(kNameBegin, digits, ".", HostName(), ".", getpid())).string();
    FileHandle handle(
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666),
        path);
    if (!handle.is_open() && errno == EEXIST) {
      ++seconds;
      continue;
    }
    if (!handle.is_open()) return SystemError(path, "create", errno);
    EventFile file(std::move(handle));
    // TensorBoard wants the version first, and a full disk is told at once.
    Event first;
    first.wall_time = static_cast<double>(std::time(nullptr));
    first.file_version = kEventFileVersion;
    HT_RETURN_IF_ERROR(file.Append(first));
    HT_RETURN_IF_ERROR(file.Flush());
    return file;
  }
}

EventFile::EventFile(FileHandle file)
    : file_(std::move(file)), owner_(getpid()), written_(std::chrono::steady_clock::now()) {
  kept_.reserve(2 * kKeptBytes);
}

EventFile::~EventFile() {
  if (file_.is_open()) Flush().IgnoreError();
}

absl::Status EventFile::Append(const Event& event) {
  record_.clear();
  AppendEvent(event, record_);
  AppendRecord(record_, kept_);
  const bool is_due =
      kept_.size() >= kKeptBytes || std::chrono::steady_clock::now() - written_ >= kKeptTime;
  return is_due ? Flush() : absl::OkStatus();
}

absl::Status EventFile::Flush() {
  if (getpid() != owner_) kept_.clear();
  if (kept_.empty()) return absl::OkStatus();
  const absl::Status status = file_.Write(kept_.data(), kept_.size());
  kept_.clear();
  written_ = std::chrono::steady_clock::now();
  return status;
}

}  // namespace halftone::io
