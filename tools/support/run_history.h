// What the event files of a training run say, as curves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::tools {

struct RunPoint {
  int64_t step = 0;
  double time = 0;  // seconds since 1970
  float value = 0;
};

struct RunCurve {
  std::string tag;
  std::vector<RunPoint> points;  // steps rise
};

// Skipped steps behind `after`, up to and with `step`.
struct SkippedSteps {
  int64_t after = 0, step = 0, count = 0;
};

struct RunHistory {
  struct File {
    std::string path;
    int64_t events = 0;
    bool truncated = false;  // ends within a record: its program was killed, or is writing
  };
  std::vector<File> files;
  std::vector<RunCurve> curves;  // in the order of their first points
  int64_t other_values = 0;      // images, histograms, ...: not read
};

inline constexpr size_t kMaxRunTags = 1000, kMaxRunTagBytes = 1000;
inline constexpr int64_t kMaxRunPoints = int64_t{1} << 26;

// Of all event files of a folder, as TensorBoard reads them one after the other: a session that
// starts at a step voids what was there of that step and of later ones, and so does, for its own
// curve, a point whose step is not the highest. Untrusted.
// Errors: those of ListEventFiles; NotFound (no event file, with folders below that have some);
// with path and offset DataLoss (damaged), InvalidArgument (no event, a tag over kMaxRunTagBytes),
// ResourceExhausted (over kMaxRunTags or kMaxRunPoints).
absl::StatusOr<RunHistory> ReadRun(const std::string& folder);

// By the curves called ".../skipped_steps", which count. What was skipped before the first point is
// unknown, unless that is of step 1.
std::vector<SkippedSteps> FindSkippedSteps(const RunHistory& run);

// At most about `count` of the points, so that a line through them looks like one through all: of
// each of count / 2 equal parts of the steps, the lowest and the highest value, and the first of
// those that are not finite. The first and the last point are among them.
std::vector<RunPoint> ThinOut(const std::vector<RunPoint>& points, size_t count);

}  // namespace halftone::tools
