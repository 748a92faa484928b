#include "halftone/tools/support/exit_status.h"

#include "absl/strings/cord.h"

namespace halftone::tools {
namespace {

constexpr char kPayload[] = "halftone/option";

}  // namespace

absl::Status OptionError(absl::Status status) {
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

int ExitStatus(const absl::Status& status) {
  if (status.ok()) return 0;
  return status.GetPayload(kPayload).has_value() ? 2 : 1;
}

}  // namespace halftone::tools
