#include "halftone/passes/progress.h"

#include <cstdio>

namespace halftone::passes {
namespace {

std::string Text(const char* format, const std::string& what, const std::string& stage,
                 size_t nodes, double seconds) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, format, nodes, seconds);
  return "halftone: compiling " + what + ": " + stage + numbers;
}

}  // namespace

Progress::Progress(std::string what, ProgressOptions options)
    : what_(std::move(what)), options_(std::move(options)) {
  start_ = last_line_ = Now();
}

void Progress::Begin(const std::string& stage, size_t nodes) {
  End();
  stage_ = stage;
  nodes_ = nodes;
  stage_start_ = Now();
  if (options_.every_stage || stage_start_ - last_line_ < options_.quiet_seconds) return;
  last_line_ = stage_start_;
  Write(Text(", %zu nodes, after %.0f s", what_, stage, nodes, stage_start_ - start_));
}

void Progress::End() {
  if (options_.every_stage && !stage_.empty()) {
    Write(Text(", %zu nodes, %.3f s", what_, stage_, nodes_, Now() - stage_start_));
  }
  stage_.clear();
}

double Progress::Now() const {
  if (options_.now) return options_.now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - made_).count();
}

void Progress::Write(const std::string& line) const {
  if (options_.write) return options_.write(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace halftone::passes
