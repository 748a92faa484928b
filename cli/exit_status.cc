#include "halftone/cli/exit_status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "absl/strings/cord.h"
#include "halftone/core/printable.h"

namespace halftone::cli {
namespace {

constexpr char kPayload[] = "halftone/option";

}  // namespace

absl::Status OptionError(absl::Status status) {
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

int ExitStatus(const absl::Status& status) {
  if (status.ok()) return 0;
  return status.GetPayload(kPayload).has_value() || absl::IsResourceExhausted(status) ? 2 : 1;
}

int WithinMemory(const char* program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: the system has no more memory\n", program);
    return 2;
  }
}

void PrintMessage(const char* prefix, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", prefix, Printable(text, true).c_str());
}

int FinishOutput(const char* program, int status) {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return status;
  std::fprintf(stderr, "%s: cannot write standard output: %s\n", program, std::strerror(errno));
  return status == 0 ? 1 : status;
}

}  // namespace halftone::cli
