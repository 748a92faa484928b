// A ZIP file is its members, each behind a local header, then the directory, an entry for each
// member, and the end record, which says where the directory is. What does not fit 32 or 16 bits
// stands in the zip64 end record and in extra fields, and the short number has all its bits set.
// What the directory says holds; of a local header only its length is needed.
#include "halftone/core/io/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string_view>

#include "halftone/core/io/zip_format.h"
#include "halftone/core/printable.h"

namespace halftone::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// No deflate stream expands to more than 1,032 times its size.
constexpr uint64_t kMaxDeflateExpansion = 1032;
constexpr size_t kInputBytes = size_t{1} << 16;

template <typename T>
T FieldAt(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

absl::Status Damaged(const std::string& what) { return DataLoss("damaged ZIP file: ", what); }

std::string MemberCalled(const std::string& name) { return "member \"" + Printable(name) + "\""; }

struct Directory {
  uint64_t entries = 0, bytes = 0, offset = 0;
};

// The numbers of the zip64 end record, whose place the locator before the end record has.
absl::StatusOr<Directory> ReadZip64End(const ZipReader::ReadAt& read, uint64_t end_offset) {
  if (end_offset < kZip64LocatorBytes) return Damaged("no place for the zip64 locator");
  char locator[kZip64LocatorBytes];
  const uint64_t locator_offset = end_offset - kZip64LocatorBytes;
  HT_RETURN_IF_ERROR(read(locator_offset, locator, sizeof(locator)));
  const std::string_view at_end(locator, sizeof(locator));
  if (FieldAt<uint32_t>(at_end, 0) != kZip64LocatorMark) return Damaged("no zip64 locator");
  const auto offset = FieldAt<uint64_t>(at_end, 8);
  if (locator_offset < kZip64EndBytes || offset > locator_offset - kZip64EndBytes) {
    return Damaged("its zip64 end record lies outside");
  }
  char record[kZip64EndBytes];
  HT_RETURN_IF_ERROR(read(offset, record, sizeof(record)));
  const std::string_view end(record, sizeof(record));
  if (FieldAt<uint32_t>(end, 0) != kZip64EndMark) return Damaged("no zip64 end record");
  if (FieldAt<uint32_t>(end, 16) != 0 || FieldAt<uint32_t>(end, 20) != 0) {
    return InvalidArgument("a ZIP file of several disks; expected one");
  }
  return Directory{FieldAt<uint64_t>(end, 32), FieldAt<uint64_t>(end, 40),
                   FieldAt<uint64_t>(end, 48)};
}

// Looks for the end record, behind which only a comment may be.
absl::StatusOr<Directory> FindDirectory(uint64_t size, const ZipReader::ReadAt& read) {
  const size_t searched = static_cast<size_t>(std::min<uint64_t>(size, kEndBytes + 0xFFFF));
  std::string tail(searched, '\0');
  HT_RETURN_IF_ERROR(read(size - searched, tail.data(), searched));
  for (size_t at = searched - std::min(searched, kEndBytes - 1); at-- > 0;) {
    const std::string_view end = std::string_view(tail).substr(at);
    if (FieldAt<uint32_t>(end, 0) != kEndMark) continue;
    if (FieldAt<uint16_t>(end, 20) != end.size() - kEndBytes) continue;  // of the comment
    const uint64_t end_offset = size - searched + at;
    Directory found{FieldAt<uint16_t>(end, 10), FieldAt<uint32_t>(end, 12),
                    FieldAt<uint32_t>(end, 16)};
    if (found.entries == kFull16 || found.bytes == kFull32 || found.offset == kFull32) {
      HT_ASSIGN_OR_RETURN(found, ReadZip64End(read, end_offset));
    } else if (FieldAt<uint16_t>(end, 4) != 0 || FieldAt<uint16_t>(end, 6) != 0) {
      return InvalidArgument("a ZIP file of several disks; expected one");
    }
    if (found.offset > end_offset || found.bytes > end_offset - found.offset) {
      return Damaged("its directory lies outside");
    }
    if (found.entries > found.bytes / kEntryBytes) {
      return Damaged(Concat(found.entries, " members in a directory of ", found.bytes, " bytes"));
    }
    return found;
  }
  return InvalidArgument("not a ZIP file: no end record");
}

// Puts what an extra field of zip64 has into the numbers that did not fit.
absl::Status ReadZip64Extra(std::string_view extra, ZipReader::Member& member) {
  while (extra.size() >= 4) {
    const auto kind = FieldAt<uint16_t>(extra, 0);
    const size_t bytes = FieldAt<uint16_t>(extra, 2);
    if (bytes > extra.size() - 4) break;
    std::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(4 + bytes);
    if (kind != kZip64Extra) continue;
    for (uint64_t* number : {&member.size, &member.stored, &member.offset}) {
      if (*number != kFull32) continue;
      if (field.size() < sizeof(uint64_t)) return Damaged("a zip64 field is too short");
      *number = FieldAt<uint64_t>(field, 0);
      field.remove_prefix(sizeof(uint64_t));
    }
  }
  return absl::OkStatus();
}

// Reads an entry off the front of `directory`.
absl::StatusOr<ZipReader::Member> ReadEntry(std::string_view& directory) {
  if (directory.size() < kEntryBytes || FieldAt<uint32_t>(directory, 0) != kEntryMark) {
    return Damaged("no entry where the directory should have one");
  }
  const auto flags = FieldAt<uint16_t>(directory, 8), method = FieldAt<uint16_t>(directory, 10);
  ZipReader::Member member;
  member.crc = FieldAt<uint32_t>(directory, 16);
  member.stored = FieldAt<uint32_t>(directory, 20);
  member.size = FieldAt<uint32_t>(directory, 24);
  member.offset = FieldAt<uint32_t>(directory, 42);
  const size_t name = FieldAt<uint16_t>(directory, 28), extra = FieldAt<uint16_t>(directory, 30),
               comment = FieldAt<uint16_t>(directory, 32);
  if (name + extra + comment > directory.size() - kEntryBytes) {
    return Damaged("an entry of its directory is cut off");
  }
  member.name = directory.substr(kEntryBytes, name);
  HT_RETURN_IF_ERROR(ReadZip64Extra(directory.substr(kEntryBytes + name, extra), member));
  directory.remove_prefix(kEntryBytes + name + extra + comment);
  if ((flags & kEncryptedFlag) != 0) {
    return InvalidArgument(MemberCalled(member.name), " is encrypted; expected it plain");
  }
  if (method != kStoredMethod && method != kDeflatedMethod) {
    return InvalidArgument(MemberCalled(member.name), " is compressed by method ", method,
                           "; expected 0 (stored) or 8 (deflated)");
  }
  member.deflated = method == kDeflatedMethod;
  const bool fits = member.deflated ? member.size / kMaxDeflateExpansion <= member.stored
                                    : member.size == member.stored;
  if (!fits) {
    return InvalidArgument(MemberCalled(member.name), " claims ", member.size, " bytes; the ",
                           member.stored, " that it has cannot give them");
  }
  return member;
}

// That members lie one behind the other, before the directory: a few bytes that many members share
// would give any amount of contents.
absl::Status CheckApart(std::vector<ZipReader::Member>& members, uint64_t directory) {
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  for (size_t i = 0; i < members.size(); ++i) {
    const uint64_t end = i + 1 < members.size() ? members[i + 1].offset : directory;
    const uint64_t begin = members[i].offset;
    if (begin > end || end - begin < kLocalBytes || end - begin - kLocalBytes < members[i].stored) {
      return Damaged(MemberCalled(members[i].name) + " runs into what is behind it");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(uint64_t size, ReadAt read) {
  ZipReader reader(std::move(read));
  HT_ASSIGN_OR_RETURN(const Directory found, FindDirectory(size, reader.read_));
  std::string bytes(found.bytes, '\0');
  HT_RETURN_IF_ERROR(reader.read_(found.offset, bytes.data(), bytes.size()));
  std::string_view directory = bytes;
  std::set<std::string> names;
  for (uint64_t i = 0; i < found.entries; ++i) {
    HT_ASSIGN_OR_RETURN(Member member, ReadEntry(directory));
    if (!names.insert(member.name).second) {
      return InvalidArgument(MemberCalled(member.name), " occurs twice");
    }
    reader.members_.push_back(std::move(member));
  }
  reader.directory_ = found.offset;
  HT_RETURN_IF_ERROR(CheckApart(reader.members_, found.offset));
  return reader;
}

struct ZipReader::Contents::State {
  const ReadAt* read = nullptr;
  Member member;
  uint64_t at = 0, input_left = 0;  // of what the file has
  uint64_t output_left = 0;         // of the contents
  uint32_t crc = 0;
  bool ended = false;  // the deflate stream
  z_stream stream = {};
  std::string input;

  ~State() {
    if (member.deflated) inflateEnd(&stream);
  }

  absl::Status ReadInput(void* data, size_t bytes) {
    HT_RETURN_IF_ERROR((*read)(at, data, bytes));
    at += bytes;
    input_left -= bytes;
    return absl::OkStatus();
  }

  absl::Status Inflate(char* data, size_t bytes) {
    while (bytes > 0) {
      if (stream.avail_in == 0 && input_left > 0) {
        input.resize(static_cast<size_t>(std::min<uint64_t>(input_left, kInputBytes)));
        HT_RETURN_IF_ERROR(ReadInput(input.data(), input.size()));
        stream.next_in = reinterpret_cast<Bytef*>(input.data());
        stream.avail_in = static_cast<uInt>(input.size());
      }
      const auto wanted = static_cast<uInt>(std::min(bytes, size_t{1} << 30));
      stream.next_out = reinterpret_cast<Bytef*>(data);
      stream.avail_out = wanted;
      const int code = inflate(&stream, Z_NO_FLUSH);
      const size_t given = wanted - stream.avail_out;
      data += given;
      bytes -= given;
      ended = code == Z_STREAM_END;
      if (code != Z_OK && code != Z_STREAM_END) {
        return Damaged(MemberCalled(member.name) + " is no deflate stream");
      }
      if (bytes > 0 && (ended || (given == 0 && stream.avail_in == 0 && input_left == 0))) {
        return Damaged(MemberCalled(member.name) + " ends too early");
      }
    }
    return absl::OkStatus();
  }

  // That the deflate stream ends where its bytes and the contents do.
  absl::Status CheckEnd() {
    char more = 0;
    while (!ended) {
      if (stream.avail_in == 0 && input_left > 0) {
        input.resize(static_cast<size_t>(std::min<uint64_t>(input_left, kInputBytes)));
        HT_RETURN_IF_ERROR(ReadInput(input.data(), input.size()));
        stream.next_in = reinterpret_cast<Bytef*>(input.data());
        stream.avail_in = static_cast<uInt>(input.size());
      }
      stream.next_out = reinterpret_cast<Bytef*>(&more);
      stream.avail_out = 1;
      const int code = inflate(&stream, Z_NO_FLUSH);
      if (stream.avail_out == 0 || (code != Z_OK && code != Z_STREAM_END)) break;
      ended = code == Z_STREAM_END;
    }
    if (ended && stream.avail_in == 0 && input_left == 0) return absl::OkStatus();
    return Damaged(MemberCalled(member.name) + " does not end where the directory says");
  }
};

ZipReader::Contents::Contents() : state_(std::make_unique<State>()) {}
ZipReader::Contents::Contents(Contents&&) noexcept = default;
ZipReader::Contents::~Contents() = default;

absl::StatusOr<ZipReader::Contents> ZipReader::ReadMember(const Member& member) const {
  char header[kLocalBytes];
  HT_RETURN_IF_ERROR(read_(member.offset, header, sizeof(header)));
  const std::string_view local(header, sizeof(header));
  if (FieldAt<uint32_t>(local, 0) != kLocalMark) {
    return Damaged(MemberCalled(member.name) + " is not where the directory says");
  }
  Contents contents;
  Contents::State& state = *contents.state_;
  state.read = &read_;
  state.at =
      member.offset + kLocalBytes + FieldAt<uint16_t>(local, 26) + FieldAt<uint16_t>(local, 28);
  state.input_left = member.stored;
  state.output_left = member.size;
  if (state.at > directory_ || directory_ - state.at < member.stored) {
    return Damaged(MemberCalled(member.name) + " runs into what is behind it");
  }
  if (member.deflated && inflateInit2(&state.stream, -MAX_WBITS) != Z_OK) {
    return ResourceExhausted("zlib has no memory to read ", MemberCalled(member.name));
  }
  state.member = member;
  return contents;
}

absl::Status ZipReader::Contents::Read(void* data, size_t bytes) {
  State& state = *state_;
  if (bytes > state.output_left) {
    return Damaged(MemberCalled(state.member.name) + " ends too early");
  }
  if (bytes == 0) return absl::OkStatus();
  HT_RETURN_IF_ERROR(state.member.deflated ? state.Inflate(static_cast<char*>(data), bytes)
                                           : state.ReadInput(data, bytes));
  state.output_left -= bytes;
  const auto* rest = static_cast<const Bytef*>(data);
  for (size_t left = bytes; left > 0;) {
    const auto part = static_cast<uInt>(std::min(left, size_t{1} << 30));
    state.crc = static_cast<uint32_t>(crc32(state.crc, rest, part));
    rest += part;
    left -= part;
  }
  return absl::OkStatus();
}

absl::Status ZipReader::Contents::Finish() {
  State& state = *state_;
  if (state.output_left != 0) {
    return Damaged(Concat(MemberCalled(state.member.name), " has ", state.output_left,
                          " bytes more than expected"));
  }
  if (state.member.deflated) HT_RETURN_IF_ERROR(state.CheckEnd());
  if (state.crc != state.member.crc) {
    return Damaged(Concat("the checksum of ", MemberCalled(state.member.name), " is ", state.crc,
                          "; expected ", state.member.crc));
  }
  return absl::OkStatus();
}

}  // namespace halftone::io
