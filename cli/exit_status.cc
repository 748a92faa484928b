#include "halftone/cli/exit_status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "absl/strings/cord.h"
#include "halftone/core/printable.h"

namespace halftone::cli {
namespace {

constexpr char kPayload[] = "halftone/option";
constexpr char kNoMemory[] = "the system has no more memory";

std::terminate_handler other_ends = nullptr;

// Ends the program with one line where memory is out, as without it otherwise.
void End() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, kNoMemory);
      std::_Exit(2);
    } catch (...) {  // the handler before says what it was
    }
  }
  other_ends();
}

// Before main there is nobody to catch what an initialiser of a flag or a table throws, of the program
// or of a shared library: what stands in this section of a program runs before all of them.
void InstallHandler() { other_ends = std::set_terminate(End); }
__attribute__((section(".preinit_array"), used)) void (*const install_first)() = InstallHandler;

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
    std::fprintf(stderr, "%s: %s\n", program, kNoMemory);
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
