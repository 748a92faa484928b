#include "halftone/core/io/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <bit>

#include "halftone/core/io/zip_format.h"

namespace halftone::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr uint16_t kVersion = 20, kZip64Version = 45;  // of the format, needed to read it
constexpr uint16_t kMadeOnUnix = 3 << 8;               // what the attributes mean
constexpr uint32_t kRegularFile = (0100000U | 0644U) << 16;
constexpr uint16_t kNoTime = 0, kFirstDay = 1 << 5 | 1;  // 1980-01-01, the first that there is

// Numbers of a record one behind the other.
class Fields {
 public:
  template <typename T>
  Fields& Add(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
    return *this;
  }
  // A number of 32 bits, or the mark that zip64 has it.
  Fields& AddShort(uint64_t number) {
    return Add(static_cast<uint32_t>(std::min(number, kFull32)));
  }
  Fields& AddText(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

uint32_t Checksum(std::initializer_list<std::string_view> parts) {
  uLong crc = 0;
  for (const std::string_view part : parts) {
    for (size_t at = 0; at < part.size();) {
      const size_t bytes = std::min(part.size() - at, size_t{1} << 30);
      crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data() + at), static_cast<uInt>(bytes));
      at += bytes;
    }
  }
  return static_cast<uint32_t>(crc);
}

// Names beyond ASCII are told to be UTF-8, which is what they are here.
uint16_t FlagsOf(std::string_view name) {
  const bool is_ascii = std::all_of(name.begin(), name.end(),
                                    [](char c) { return static_cast<signed char>(c) >= 0; });
  return is_ascii ? 0 : kUtf8Flag;
}

}  // namespace

absl::Status ZipWriter::Put(std::string_view bytes) {
  offset_ += bytes.size();
  return write_(bytes);
}

absl::Status ZipWriter::Add(const std::string& name,
                            std::initializer_list<std::string_view> parts) {
  uint64_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  const uint32_t crc = Checksum(parts);
  const uint64_t offset = offset_;
  const auto name_bytes = static_cast<uint16_t>(name.size());

  // Both sizes or none in a local header; in an entry, those numbers that do not fit.
  Fields local_extra, entry_extra;
  if (size >= kFull32) {
    local_extra.Add(kZip64Extra).Add(uint16_t{16}).Add(size).Add(size);
    entry_extra.Add(size).Add(size);
  }
  if (offset >= kFull32) entry_extra.Add(offset);
  const bool is_zip64 = !entry_extra.bytes().empty();
  const uint16_t version = is_zip64 ? kZip64Version : kVersion;
  Fields extra;
  if (is_zip64) {
    extra.Add(kZip64Extra).Add(static_cast<uint16_t>(entry_extra.bytes().size()));
    extra.AddText(entry_extra.bytes());
  }

  const auto common = [&](Fields& fields, uint64_t extra_bytes) -> Fields& {
    return fields.Add(version)
        .Add(FlagsOf(name))
        .Add(kStoredMethod)
        .Add(kNoTime)
        .Add(kFirstDay)
        .Add(crc)
        .AddShort(size)
        .AddShort(size)
        .Add(name_bytes)
        .Add(static_cast<uint16_t>(extra_bytes));
  };
  Fields local;
  local.Add(kLocalMark);
  common(local, local_extra.bytes().size()).AddText(name).AddText(local_extra.bytes());
  Fields entry;
  entry.Add(kEntryMark).Add(static_cast<uint16_t>(kMadeOnUnix | version));
  common(entry, extra.bytes().size())
      .Add(uint16_t{0})  // comment
      .Add(uint16_t{0})  // disk
      .Add(uint16_t{0})  // internal attributes
      .Add(kRegularFile)
      .AddShort(offset)
      .AddText(name)
      .AddText(extra.bytes());
  directory_ += entry.bytes();
  ++entries_;

  HT_RETURN_IF_ERROR(Put(local.bytes()));
  for (const std::string_view part : parts) HT_RETURN_IF_ERROR(Put(part));
  return absl::OkStatus();
}

absl::Status ZipWriter::Finish() {
  const uint64_t begin = offset_, bytes = directory_.size();
  HT_RETURN_IF_ERROR(Put(directory_));
  Fields end;
  if (entries_ >= kFull16 || bytes >= kFull32 || begin >= kFull32) {
    const uint64_t zip64_end = offset_;
    end.Add(kZip64EndMark)
        .Add(uint64_t{kZip64EndBytes - 12})  // behind this number
        .Add(static_cast<uint16_t>(kMadeOnUnix | kZip64Version))
        .Add(kZip64Version)
        .Add(uint32_t{0})  // this disk, and that of the directory
        .Add(uint32_t{0})
        .Add(entries_)
        .Add(entries_)
        .Add(bytes)
        .Add(begin);
    end.Add(kZip64LocatorMark).Add(uint32_t{0}).Add(zip64_end).Add(uint32_t{1});
  }
  const auto entries = static_cast<uint16_t>(std::min(entries_, kFull16));
  end.Add(kEndMark).Add(uint16_t{0}).Add(uint16_t{0}).Add(entries).Add(entries);
  end.AddShort(bytes).AddShort(begin).Add(uint16_t{0});  // no comment
  return Put(end.bytes());
}

}  // namespace halftone::io
