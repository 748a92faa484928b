// The ranges that code names for profilers.
#pragma once

#include <string>

namespace halftone::testing {

// Listens to NVTX, as a profiler does, from its construction to its end. One at a time, on one
// thread.
class RangeLog {
 public:
  RangeLog();
  ~RangeLog();
  RangeLog(const RangeLog&) = delete;
  RangeLog& operator=(const RangeLog&) = delete;

  // "step( forward( ) ) " for a range within another one.
  const std::string& text() const { return text_; }

  void Add(const std::string& event) { text_ += event + " "; }

 private:
  std::string text_;
};

}  // namespace halftone::testing
