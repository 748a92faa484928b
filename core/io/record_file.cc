// Layout of a record: the length of the payload (eight bytes, little-endian), the masked CRC-32C of
// these eight bytes (four), the payload, its masked CRC-32C (four).
#include "halftone/core/io/record_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "halftone/core/io/crc32c.h"

namespace halftone::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr size_t kLengthBytes = 8, kCrcBytes = 4;
constexpr size_t kBeforePayload = kLengthBytes + kCrcBytes;
constexpr size_t kReadBytes = size_t{1} << 18;

template <typename T>
void AppendNumber(T number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename T>
T NumberAt(std::string_view bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

}  // namespace

void AppendRecord(std::string_view payload, std::string& file) {
  const size_t begin = file.size();
  AppendNumber(uint64_t{payload.size()}, file);
  AppendNumber(MaskCrc32c(Crc32c(std::string_view(file).substr(begin))), file);
  file += payload;
  AppendNumber(MaskCrc32c(Crc32c(payload)), file);
}

absl::StatusOr<bool> RecordReader::Have(size_t bytes) {
  if (buffer_.size() - at_ >= bytes) return true;
  buffer_.erase(0, at_);
  at_ = 0;
  while (buffer_.size() < bytes) {
    const size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    HT_ASSIGN_OR_RETURN(const size_t got, source_(buffer_.data() + before, kReadBytes));
    buffer_.resize(before + got);
    if (got < kReadBytes) break;
  }
  return buffer_.size() >= bytes;
}

absl::StatusOr<std::optional<std::string_view>> RecordReader::Next() {
  offset_ = next_offset_;
  const auto at_end = [this] {
    truncated_ = buffer_.size() > at_;
    return std::optional<std::string_view>();
  };
  HT_ASSIGN_OR_RETURN(const bool has_length, Have(kBeforePayload));
  if (!has_length) return at_end();
  const std::string_view head = std::string_view(buffer_).substr(at_, kBeforePayload);
  const auto length = NumberAt<uint64_t>(head, 0);
  const auto check = [this](const char* what, std::string_view bytes, uint32_t stored) {
    const uint32_t expected = MaskCrc32c(Crc32c(bytes));
    return stored == expected
               ? absl::OkStatus()
               : DataLoss("the record at offset ", offset_, " is damaged: the checksum of its ",
                          what, " is ", stored, "; expected ", expected);
  };
  HT_RETURN_IF_ERROR(
      check("length", head.substr(0, kLengthBytes), NumberAt<uint32_t>(head, kLengthBytes)));
  if (length > kMaxPayload) {
    return ResourceExhausted("the record at offset ", offset_, " has ", length,
                             " bytes; expected at most ", kMaxPayload);
  }
  HT_ASSIGN_OR_RETURN(const bool has_payload, Have(kBeforePayload + length + kCrcBytes));
  if (!has_payload) return at_end();
  const std::string_view record =
      std::string_view(buffer_).substr(at_, kBeforePayload + length + kCrcBytes);
  const std::string_view payload = record.substr(kBeforePayload, length);
  HT_RETURN_IF_ERROR(
      check("payload", payload, NumberAt<uint32_t>(record, kBeforePayload + length)));
  at_ += record.size();
  next_offset_ += static_cast<int64_t>(record.size());
  return std::optional<std::string_view>(payload);
}

}  // namespace halftone::io
