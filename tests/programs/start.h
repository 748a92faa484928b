// Starts the programs of the build as a user does.
#pragma once

#include <string>

namespace halftone::testing {

struct Result {
  int status = -1;     // exit status; -1: did not start, or ended by a signal
  std::string out;     // standard output
  std::string err;     // standard error
  std::string output;  // both, one after the other
};

// Runs <build>/<program> with `arguments`, a piece of shell.
Result Start(const std::string& program, const std::string& arguments);

// Whether either stream has `text`.
bool Has(const Result& run, const std::string& text);

}  // namespace halftone::testing
