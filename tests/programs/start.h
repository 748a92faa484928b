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

// Runs <build>/<program> with `arguments`, a piece of shell, after `before`, another ("ulimit -v
// 100000;", or settings of the environment).
Result Start(const std::string& program, const std::string& arguments,
             const std::string& before = "");

// Whether either stream has `text`.
bool Has(const Result& run, const std::string& text);

// A step that no pass has seen: a linear layer in bf16, its loss and optimizer.
inline constexpr char kTrainingStep[] =
    "graph @step(%x: f32[8,4], %t: i64[8]) {\n"
    "  %w = variable \"fc.weight\" : f32[3,4]\n"
    "  %y = linear(%x, %w)\n"
    "  %l, %s = cross_entropy(%y, %t)\n"
    "  backward(%l)\n"
    "  amp() {dtype=bf16}\n"
    "  %n, %a = optimizer() {params=[\"fc.weight\"], rule=\"sgd\"}\n"
    "  return loss=%l\n"
    "}\n";

}  // namespace halftone::testing
