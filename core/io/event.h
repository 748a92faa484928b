// Events, the records of TensorBoard's files. Source: the messages Event and SessionLog of
// tensorboard/compat/proto/event.proto, Summary of summary.proto beside it, and
// https://protobuf.dev/programming-guides/encoding for their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::io {

// Texts are somebody else's: of an event that was read, they lie in its bytes.
struct Event {
  struct Scalar {
    std::string_view tag;
    float value = 0;
  };

  double wall_time = 0;           // seconds since 1970
  int64_t step = 0;               // what the numbers belong to
  std::string_view file_version;  // in the first event of a file: kEventFileVersion
  // A program begins or goes on at `step`: what earlier files have of this step and of later ones
  // is void.
  bool starts_session = false;
  std::vector<Scalar> scalars;
  int64_t other_values = 0;  // images, histograms, tensors, ...; only counted, and not written
};

inline constexpr char kEventFileVersion[] = "brain.Event:2";

void AppendEvent(const Event& event, std::string& bytes);
// Fills `event`; what it does not know of the message is skipped. Untrusted. Errors:
// InvalidArgument saying where and what was expected.
absl::Status ParseEvent(std::string_view bytes, Event& event);

}  // namespace halftone::io
