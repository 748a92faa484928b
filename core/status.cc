#include "halftone/core/status.h"

#include "absl/strings/cord.h"

namespace halftone {

absl::Status Annotate(const absl::Status& status, const std::string& prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), prefix + Message(status));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace halftone
