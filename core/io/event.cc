// A message is a row of fields: a key, field number << 3 | wire type, then the value. Wire types: 0
// a number in groups of seven bits, lowest first (a varint), 1 eight bytes, 2 a varint and so many
// bytes (a text or another message), 5 four bytes.
#include "halftone/core/io/event.h"

#include <bit>
#include <cstring>

namespace halftone::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The fields that are read and written, by message.
enum EventField : uint32_t {
  kWallTime = 1,     // double
  kStep = 2,         // int64
  kFileVersion = 3,  // string
  kSummary = 5,      // Summary
  kSessionLog = 7,   // SessionLog
};
enum SessionLogField : uint32_t { kStatus = 1 };
enum SummaryField : uint32_t { kValue = 1 };
enum ValueField : uint32_t { kTag = 1, kSimpleValue = 2 };
constexpr uint64_t kSessionStart = 1;  // SessionLog.SessionStatus

size_t VarintSize(uint64_t number) {
  size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

void AppendVarint(uint64_t number, std::string& bytes) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(0x80 | (number & 0x7F));
  bytes += static_cast<char>(number);
}

// All keys here have one byte.
void AppendKey(uint32_t field, WireType type, std::string& bytes) {
  AppendVarint(field << 3 | type, bytes);
}

template <typename T>
void AppendFixed(T number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendText(uint32_t field, std::string_view text, std::string& bytes) {
  AppendKey(field, kBytes, bytes);
  AppendVarint(text.size(), bytes);
  bytes += text;
}

// Of a Summary.Value, without key and length.
size_t ValueSize(const Event::Scalar& scalar) {
  return 1 + VarintSize(scalar.tag.size()) + scalar.tag.size() + 1 + sizeof(float);
}

void AppendSummary(const std::vector<Event::Scalar>& scalars, std::string& bytes) {
  size_t size = 0;
  for (const Event::Scalar& scalar : scalars) {
    size += 1 + VarintSize(ValueSize(scalar)) + ValueSize(scalar);
  }
  AppendKey(kSummary, kBytes, bytes);
  AppendVarint(size, bytes);
  for (const Event::Scalar& scalar : scalars) {
    AppendKey(kValue, kBytes, bytes);
    AppendVarint(ValueSize(scalar), bytes);
    AppendText(kTag, scalar.tag, bytes);
    AppendKey(kSimpleValue, kFixed32, bytes);
    AppendFixed(scalar.value, bytes);
  }
}

// The fields of a message, one after the other.
class MessageReader {
 public:
  // `name`: of the message, for errors.
  MessageReader(const char* name, std::string_view bytes) : name_(name), bytes_(bytes) {}

  // Reads a field; false at the end. Errors: InvalidArgument.
  absl::StatusOr<bool> Next() {
    if (at_ == bytes_.size()) return false;
    HT_ASSIGN_OR_RETURN(const uint64_t key, ReadVarint());
    field_ = key >> 3;
    type_ = static_cast<uint32_t>(key & 7);
    size_t size = 0;
    if (type_ == kVarint) {
      HT_ASSIGN_OR_RETURN(number_, ReadVarint());
    } else if (type_ == kBytes) {
      HT_ASSIGN_OR_RETURN(const uint64_t length, ReadVarint());
      if (length > bytes_.size() - at_) return Wrong("a field that ends with its message");
      size = length;
    } else if (type_ == kFixed64 || type_ == kFixed32) {
      size = type_ == kFixed64 ? sizeof(uint64_t) : sizeof(uint32_t);
      if (size > bytes_.size() - at_) return Wrong("a number that ends with its message");
    } else {
      return Wrong("a field of wire type 0, 1, 2 or 5");
    }
    text_ = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }

  bool Is(uint32_t field, WireType type) const { return field_ == field && type_ == type; }
  uint64_t field() const { return field_; }
  uint64_t number() const { return number_; }      // of a varint
  std::string_view text() const { return text_; }  // the bytes of any other
  template <typename T>
  T fixed() const {
    T number;
    std::memcpy(&number, text_.data(), sizeof(number));
    return number;
  }

 private:
  absl::Status Wrong(const char* expected) const {
    return InvalidArgument(name_, ", byte ", at_, " of ", bytes_.size(), ": expected ", expected);
  }

  absl::StatusOr<uint64_t> ReadVarint() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      number |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return number;
    }
    return Wrong("a varint of at most ten bytes");
  }

  const char* name_;
  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t field_ = 0, number_ = 0;
  uint32_t type_ = 0;
  std::string_view text_;
};

absl::Status ParseValue(std::string_view bytes, Event& event) {
  MessageReader reader("summary value", bytes);
  Event::Scalar scalar;
  bool is_scalar = false;
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    if (reader.Is(kTag, kBytes)) scalar.tag = reader.text();
    if (reader.Is(kSimpleValue, kFixed32)) {
      scalar.value = reader.fixed<float>();
      is_scalar = true;
    }
  }
  if (is_scalar) {
    event.scalars.push_back(scalar);
  } else {
    ++event.other_values;
  }
  return absl::OkStatus();
}

absl::Status ParseSummary(std::string_view bytes, Event& event) {
  MessageReader reader("summary", bytes);
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) return absl::OkStatus();
    if (reader.Is(kValue, kBytes)) HT_RETURN_IF_ERROR(ParseValue(reader.text(), event));
  }
}

absl::Status ParseSessionLog(std::string_view bytes, Event& event) {
  MessageReader reader("session log", bytes);
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) return absl::OkStatus();
    if (reader.Is(kStatus, kVarint)) event.starts_session = reader.number() == kSessionStart;
  }
}

}  // namespace

void AppendEvent(const Event& event, std::string& bytes) {
  AppendKey(kWallTime, kFixed64, bytes);
  AppendFixed(event.wall_time, bytes);
  if (event.step != 0) {
    AppendKey(kStep, kVarint, bytes);
    AppendVarint(static_cast<uint64_t>(event.step), bytes);
  }
  if (!event.file_version.empty()) AppendText(kFileVersion, event.file_version, bytes);
  if (!event.scalars.empty()) AppendSummary(event.scalars, bytes);
  if (event.starts_session) {
    std::string log;
    AppendKey(kStatus, kVarint, log);
    AppendVarint(kSessionStart, log);
    AppendText(kSessionLog, log, bytes);
  }
}

absl::Status ParseEvent(std::string_view bytes, Event& event) {
  event.wall_time = 0;
  event.step = 0;
  event.file_version = {};
  event.starts_session = false;
  event.scalars.clear();
  event.other_values = 0;
  MessageReader reader("event", bytes);
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) return absl::OkStatus();
    if (reader.Is(kWallTime, kFixed64)) {
      event.wall_time = reader.fixed<double>();
    } else if (reader.Is(kStep, kVarint)) {
      event.step = static_cast<int64_t>(reader.number());
    } else if (reader.Is(kFileVersion, kBytes)) {
      event.file_version = reader.text();
    } else if (reader.Is(kSummary, kBytes)) {
      HT_RETURN_IF_ERROR(ParseSummary(reader.text(), event));
    } else if (reader.Is(kSessionLog, kBytes)) {
      HT_RETURN_IF_ERROR(ParseSessionLog(reader.text(), event));
    }
  }
}

}  // namespace halftone::io
