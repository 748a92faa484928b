// TensorBoard's event files: records, and the events in them.
#include <algorithm>
#include <cstring>

#include "halftone/core/io/event.h"
#include "halftone/core/io/record_file.h"
#include "halftone/tests/fuzz/fuzz_target.h"

namespace {

using halftone::io::Event;
using halftone::testing::Require;

// An event by itself: few changed bytes of a file have checksums that fit.
void CheckEvent(std::string_view bytes) {
  Event event;
  if (!halftone::io::ParseEvent(bytes, event).ok()) return;
  ++halftone::testing::accepted;
  // What is accepted can be written, and reads back as it was.
  std::string written;
  halftone::io::AppendEvent(event, written);
  Event again;
  const absl::Status read = halftone::io::ParseEvent(written, again);
  Require(read.ok(), halftone::Message(read));
  Require(std::memcmp(&again.wall_time, &event.wall_time, sizeof(double)) == 0, "wall_time");
  Require(again.step == event.step, "step");
  Require(again.file_version == event.file_version, "file_version");
  Require(again.starts_session == event.starts_session, "starts_session");
  Require(again.scalars.size() == event.scalars.size(), "number of scalars");
  for (size_t i = 0; i < event.scalars.size(); ++i) {
    Require(again.scalars[i].tag == event.scalars[i].tag, "tag");
    Require(std::memcmp(&again.scalars[i].value, &event.scalars[i].value, sizeof(float)) == 0,
            "value");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string file = halftone::testing::Bytes(data, size);
  CheckEvent(file);
  size_t at = 0;
  halftone::io::RecordReader records([&](char* to, size_t bytes) -> absl::StatusOr<size_t> {
    const size_t given = std::min(bytes, file.size() - at);
    std::memcpy(to, file.data() + at, given);
    at += given;
    return given;
  });
  std::string written;
  while (true) {
    const auto payload = records.Next();
    if (!payload.ok()) return 0;
    if (!payload->has_value()) break;
    CheckEvent(**payload);
    halftone::io::AppendRecord(**payload, written);
  }
  Require(file.compare(0, written.size(), written) == 0, "the records of a file are its bytes");
  Require(records.truncated() == (written.size() < file.size()), "truncated");
  return 0;
}
