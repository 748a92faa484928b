// TFRecord files: records of bytes, each with checksums, one behind the other. Source:
// https://www.tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details".
//
// Such a file grows by appending only, so that whatever ends its writer, all records but the last
// are complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "halftone/core/status.h"

namespace halftone::io {

// Adds a record to the bytes of a file.
void AppendRecord(std::string_view payload, std::string& file);

class RecordReader {
 public:
  // Gives the next bytes of the file; fewer than asked for only at its end.
  using Source = std::function<absl::StatusOr<size_t>(char* data, size_t bytes)>;
  // A record that claims to have more is an error.
  static constexpr uint64_t kMaxPayload = uint64_t{64} << 20;

  explicit RecordReader(Source source) : source_(std::move(source)) {}

  // The next payload, valid until the next call; nullopt where the file ends, be it within a record
  // (see truncated). Untrusted: nothing is allocated that the file does not hold.
  // Errors: DataLoss (a checksum that does not fit), ResourceExhausted (over kMaxPayload), each
  // with the offset of the record; those of the source.
  absl::StatusOr<std::optional<std::string_view>> Next();
  // Whether the file ended within a record, as that of a killed program does, and as that of a
  // running one may.
  bool truncated() const { return truncated_; }
  // Where the record begins that Next gave last.
  int64_t offset() const { return offset_; }

 private:
  // Whether `bytes` bytes are there from at_ on, once they are read.
  absl::StatusOr<bool> Have(size_t bytes);

  Source source_;
  std::string buffer_;
  size_t at_ = 0;  // in the buffer, of what is not given yet
  int64_t offset_ = 0, next_offset_ = 0;
  bool truncated_ = false;
};

}  // namespace halftone::io
