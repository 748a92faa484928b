// What a program ends with: 0, 1 a file or a step fails, 2 the options are wrong or do not fit, or
// the machine has not the memory or threads that they ask for.
#pragma once

#include <functional>
#include <string>

#include "halftone/core/status.h"

namespace halftone::cli {

// The same error, as one of the options; OK stays OK.
absl::Status OptionError(absl::Status status);
template <typename... Parts>
absl::Status WrongOption(const Parts&... parts) {
  return OptionError(InvalidArgument(parts...));
}

// 0, 2 for what OptionError gave and for ResourceExhausted, else 1.
int ExitStatus(const absl::Status& status);

// body(), or 2 with a message on standard error where memory ran out and nobody could say for what.
int WithinMemory(const char* program, const std::function<int()>& body);

// "<prefix>: <text>" on standard error, the prefix being the program's name or "note". Control
// bytes in the text, from names in files, are escaped.
void PrintMessage(const char* prefix, const std::string& text);

// The end of a program whose result is what it printed: `status`, or 1 with a message on standard
// error where standard output could not be written. A full disk must not look like success.
int FinishOutput(const char* program, int status);

}  // namespace halftone::cli
