#include "halftone/tools/support/run_history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "halftone/core/io/event.h"
#include "halftone/core/io/event_file.h"
#include "halftone/core/io/file_handle.h"
#include "halftone/core/io/record_file.h"

namespace halftone::tools {
namespace {

void DropFrom(int64_t step, std::vector<RunPoint>& points) {
  while (!points.empty() && points.back().step >= step) points.pop_back();
}

// Adds the events of files to a history.
class HistoryReader {
 public:
  absl::Status ReadFile(const std::string& path) {
    int64_t size = 0;
    HT_ASSIGN_OR_RETURN(io::FileHandle file, io::OpenRegularFile(path, &size));
    io::RecordReader records([&file](char* data, size_t bytes) { return file.Read(data, bytes); });
    RunHistory::File read{path};
    while (true) {
      const auto payload = records.Next();
      if (!payload.ok()) return Annotate(payload.status(), path + ": ");
      if (!payload->has_value()) break;
      absl::Status status = io::ParseEvent(**payload, event_);
      if (status.ok()) status = AddEvent();
      if (!status.ok()) {
        return Annotate(status, Concat(path, ": the record at offset ", records.offset(), ": "));
      }
      ++read.events;
    }
    read.truncated = records.truncated();
    history_.files.push_back(std::move(read));
    return absl::OkStatus();
  }

  // Without curves that lost all their points.
  RunHistory Finish() && {
    auto& curves = history_.curves;
    curves.erase(std::remove_if(curves.begin(), curves.end(),
                                [](const RunCurve& curve) { return curve.points.empty(); }),
                 curves.end());
    return std::move(history_);
  }

 private:
  absl::Status AddEvent() {
    if (event_.starts_session) {
      for (RunCurve& curve : history_.curves) DropFrom(event_.step, curve.points);
    }
    for (const io::Event::Scalar& scalar : event_.scalars) {
      HT_ASSIGN_OR_RETURN(RunCurve * curve, FindCurve(scalar.tag));
      DropFrom(event_.step, curve->points);
      curve->points.push_back({event_.step, event_.wall_time, scalar.value});
      if (++points_ > kMaxRunPoints) {
        return ResourceExhausted("over ", kMaxRunPoints, " numbers in this run");
      }
    }
    history_.other_values += event_.other_values;
    return absl::OkStatus();
  }

  absl::StatusOr<RunCurve*> FindCurve(std::string_view tag) {
    if (const auto found = index_.find(tag); found != index_.end()) {
      return &history_.curves[found->second];
    }
    if (tag.size() > kMaxRunTagBytes) {
      return InvalidArgument("a tag of ", tag.size(), " bytes; expected at most ", kMaxRunTagBytes);
    }
    if (index_.size() == kMaxRunTags) {
      return ResourceExhausted("over ", kMaxRunTags, " tags in this run");
    }
    index_.emplace(tag, history_.curves.size());
    history_.curves.push_back({std::string(tag), {}});
    return &history_.curves.back();
  }

  RunHistory history_;
  std::map<std::string, size_t, std::less<>> index_;
  io::Event event_;
  int64_t points_ = 0;
};

// ": those of first, second have some", of the folders in `folder` with event files.
std::string FoldersBelow(const std::string& folder) {
  std::string names;
  std::error_code error;
  std::vector<std::string> below;
  auto entry = std::filesystem::directory_iterator(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto files = io::ListEventFiles(entry->path().string());
    if (files.ok() && !files->empty()) below.push_back(entry->path().filename().string());
  }
  std::sort(below.begin(), below.end());
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(below.size(), kShown); ++i) {
    names += (i == 0 ? "; expected one of its folders " : ", ") + below[i];
  }
  return names + (below.size() > kShown ? ", ..." : "");
}

}  // namespace

absl::StatusOr<RunHistory> ReadRun(const std::string& folder) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> files, io::ListEventFiles(folder));
  if (files.empty()) {
    return NotFound(folder, ": has no event file (*tfevents*)", FoldersBelow(folder));
  }
  HistoryReader reader;
  for (const std::string& path : files) HT_RETURN_IF_ERROR(reader.ReadFile(path));
  return std::move(reader).Finish();
}

std::vector<SkippedSteps> FindSkippedSteps(const RunHistory& run) {
  constexpr std::string_view kCounter = "/skipped_steps";
  std::map<int64_t, SkippedSteps> by_step;
  for (const RunCurve& curve : run.curves) {
    const std::string_view tag = curve.tag;
    if (tag.size() < kCounter.size() || tag.substr(tag.size() - kCounter.size()) != kCounter) {
      continue;
    }
    RunPoint before = curve.points.front();
    if (before.step == 1) before = {0, 0, 0};
    for (const RunPoint& point : curve.points) {
      const double more = static_cast<double>(point.value) - static_cast<double>(before.value);
      if (more >= 1 && more <= static_cast<double>(point.step)) {
        SkippedSteps& skipped = by_step[point.step];
        skipped = {before.step, point.step, skipped.count + static_cast<int64_t>(more)};
      }
      before = point;
    }
  }
  std::vector<SkippedSteps> skipped;
  for (const auto& [step, steps] : by_step) skipped.push_back(steps);
  return skipped;
}

std::vector<RunPoint> ThinOut(const std::vector<RunPoint>& points, size_t count) {
  if (points.size() <= count || count < 2) return points;
  const size_t parts = count / 2;
  const double first = static_cast<double>(points.front().step);
  const double width = static_cast<double>(points.back().step) - first + 1;
  const auto part_of = [&](size_t i) {
    const double share = (static_cast<double>(points[i].step) - first) / width;
    return std::min(parts - 1, static_cast<size_t>(share * static_cast<double>(parts)));
  };
  std::vector<RunPoint> kept;
  for (size_t begin = 0, end = 0; begin < points.size(); begin = end) {
    std::vector<size_t> chosen;
    std::optional<size_t> low, high, odd;
    for (; end < points.size() && part_of(end) == part_of(begin); ++end) {
      const float value = points[end].value;
      if (!std::isfinite(value)) {
        if (!odd.has_value()) odd = end;
        continue;
      }
      if (!low.has_value() || value < points[*low].value) low = end;
      if (!high.has_value() || value > points[*high].value) high = end;
    }
    if (begin == 0) chosen.push_back(0);
    for (const auto& i : {low, high, odd}) {
      if (i.has_value()) chosen.push_back(*i);
    }
    if (end == points.size()) chosen.push_back(end - 1);
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (const size_t i : chosen) kept.push_back(points[i]);
  }
  return kept;
}

}  // namespace halftone::tools
