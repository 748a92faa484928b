// What a long compilation is doing, on standard error.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace halftone::passes {

struct ProgressOptions {
  // A line for each stage when it ends, with its time.
  bool every_stage = false;
  // A line at the beginning of a stage once the compilation has taken this long, then no more than
  // one in each such time.
  double quiet_seconds = 3;
  // Where lines go; empty: standard error. For tests, as is the clock (seconds).
  std::function<void(const std::string&)> write;
  std::function<double()> now;
};

// Not thread-safe.
class Progress {
 public:
  // `what` is compiled: "@model".
  explicit Progress(std::string what, ProgressOptions options = {});

  // A stage begins ("pass autodiff") and the one before it ends; `nodes` is the size of the graph.
  void Begin(const std::string& stage, size_t nodes);
  // The last stage ends.
  void End();

 private:
  double Now() const;
  void Write(const std::string& line) const;

  const std::string what_;
  const ProgressOptions options_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  double start_ = 0;
  double last_line_ = 0;  // when quiet_seconds began
  std::string stage_;     // empty: none
  size_t nodes_ = 0;
  double stage_start_ = 0;
};

}  // namespace halftone::passes
