#include "halftone/core/io/npz.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "halftone/core/io/file.h"
#include "halftone/core/io/file_handle.h"
#include "halftone/core/io/npy_parts.h"
#include "halftone/core/io/zip_reader.h"
#include "halftone/core/io/zip_writer.h"
#include "halftone/core/printable.h"

namespace halftone::io {
namespace {

constexpr std::string_view kNpyEnding = ".npy";

std::string ArrayCalled(const std::string& name) { return "array \"" + Printable(name) + "\""; }

// The name without ".npy".
absl::StatusOr<std::string> ArrayName(const std::string& member) {
  const size_t end = member.size() - std::min(member.size(), kNpyEnding.size());
  if (member.size() < kNpyEnding.size() || member.substr(end) != kNpyEnding) {
    return InvalidArgument("member \"", Printable(member), "\"; expected .npy files only");
  }
  return member.substr(0, end);
}

absl::StatusOr<Tensor> ReadArray(const ZipReader& zip, const ZipReader::Member& member) {
  HT_ASSIGN_OR_RETURN(ZipReader::Contents contents, zip.ReadMember(member));
  HT_ASSIGN_OR_RETURN(Tensor tensor, ReadNpyFrom(member.size, [&](void* data, size_t bytes) {
                        return contents.Read(data, bytes);
                      }));
  HT_RETURN_IF_ERROR(contents.Finish());
  return tensor;
}

absl::StatusOr<Npz> Read(uint64_t size, ZipReader::ReadAt read, int64_t max_inflated_bytes) {
  HT_ASSIGN_OR_RETURN(const ZipReader zip, ZipReader::Open(size, std::move(read)));
  Npz contents;
  auto left = static_cast<uint64_t>(std::max<int64_t>(0, max_inflated_bytes));
  for (const ZipReader::Member& member : zip.members()) {
    HT_ASSIGN_OR_RETURN(const std::string name, ArrayName(member.name));
    if (member.deflated && member.size > left) {
      return ResourceExhausted(ArrayCalled(name), " inflates to ", member.size,
                               " bytes; expected at most ", left, " more");
    }
    if (member.deflated) left -= member.size;
    absl::StatusOr<Tensor> tensor = ReadArray(zip, member);
    if (!tensor.ok()) return Annotate(tensor.status(), ArrayCalled(name) + ": ");
    contents.emplace(name, *std::move(tensor));
  }
  return contents;
}

absl::Status CheckContents(const Npz& contents) {
  for (const auto& [name, tensor] : contents) {
    if (!tensor.defined()) return InvalidArgument(ArrayCalled(name), " is undefined");
    if (name.size() + kNpyEnding.size() > kMaxZipName || name.find('\0') != std::string::npos) {
      return InvalidArgument(ArrayCalled(name.substr(0, 40)), ": a name of ", name.size(),
                             " bytes; expected at most ", kMaxZipName - kNpyEnding.size(),
                             ", none of them NUL");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Npz> FromNpzBytes(const std::string& bytes, int64_t max_inflated_bytes) {
  const auto read = [&bytes](uint64_t offset, void* data, size_t count) {
    std::memcpy(data, bytes.data() + offset, count);
    return absl::OkStatus();
  };
  return Read(bytes.size(), read, max_inflated_bytes);
}

absl::StatusOr<Npz> ReadNpz(const std::string& path, int64_t max_inflated_bytes) {
  int64_t size = 0;
  HT_ASSIGN_OR_RETURN(FileHandle file, OpenRegularFile(path, &size));
  const auto read = [&file](uint64_t offset, void* data, size_t bytes) -> absl::Status {
    if (lseek(file.fd(), static_cast<off_t>(offset), SEEK_SET) < 0) {
      return FailedPrecondition("cannot read: ", std::strerror(errno));
    }
    HT_ASSIGN_OR_RETURN(const size_t got, file.Read(data, bytes));
    return got == bytes ? absl::OkStatus() : DataLoss("became shorter while it was read");
  };
  absl::StatusOr<Npz> contents = Read(static_cast<uint64_t>(size), read, max_inflated_bytes);
  if (!contents.ok()) return Annotate(contents.status(), path + ": ");
  return contents;
}

absl::Status WriteNpz(const std::string& path, const Npz& contents) {
  if (const absl::Status status = CheckContents(contents); !status.ok()) {
    return Annotate(status, path + ": ");
  }
  return WriteFileAtomically(path, [&](FileHandle& file) -> absl::Status {
    ZipWriter zip(
        [&file](std::string_view bytes) { return file.Write(bytes.data(), bytes.size()); });
    for (const auto& [name, tensor] : contents) {
      const std::string head = NpyHead(tensor);
      const std::string_view elements(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
      HT_RETURN_IF_ERROR(zip.Add(name + std::string(kNpyEnding), {head, elements}));
    }
    return zip.Finish();
  });
}

}  // namespace halftone::io
