// Where the time of a step goes: a trace for Chrome's viewer, and a table.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "halftone/graph/runtime/executable.h"
#include "halftone/tools/support/peak.h"

namespace halftone::tools {

class Profiler {
 public:
  // Sets the hook of `executable`, which must outlive the profiler.
  explicit Profiler(runtime::Executable& executable);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Around each run of the executable.
  void BeginStep();
  void EndStep();

  // Trace Event Format, for chrome://tracing or https://ui.perfetto.dev: an event for each step and
  // each kernel, with node, type, scope, cost and rates as arguments. Source: "Trace Event Format",
  // docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
  std::string TraceJson() const;

  // A line for each kernel, the slowest first: node, kernel, microseconds, share of all kernels,
  // GB/s and GFLOP/s by the cost that the op's record states, and what share of `peak` that is.
  // Times are medians over the steps.
  std::string Table(const Peak& peak) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    const ir::Node* node;  // null: a whole step
    const kernels::Kernel* kernel;
    double start;  // seconds since the profiler was made
    double seconds;
  };
  double Now() const { return std::chrono::duration<double>(Clock::now() - origin_).count(); }

  runtime::Executable& executable_;
  const Clock::time_point origin_ = Clock::now();
  double step_start_ = 0;
  std::vector<Event> events_;
};

}  // namespace halftone::tools
