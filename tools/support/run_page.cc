#include "halftone/tools/support/run_page.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "halftone/tools/support/page_data.h"
#include "halftone/tools/support/page_template.h"

namespace halftone::tools {
namespace {

constexpr size_t kMaxPointsShown = 2000, kMaxMarks = 2000;

// JSON has no other numbers than finite ones. With as many digits as tell an f32 from others.
Json NumberJson(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32] = {};
  std::to_chars(text, text + sizeof(text) - 1, value);
  return std::strtod(text, nullptr);
}

Json CurveJson(const RunCurve& curve) {
  Json json = {{"tag", curve.tag},   {"count", curve.points.size()}, {"least", Json()},
               {"greatest", Json()}, {"steps", Json::array()},       {"values", Json::array()}};
  const RunPoint* least = nullptr;
  const RunPoint* greatest = nullptr;
  for (const RunPoint& point : curve.points) {
    if (!std::isfinite(point.value)) continue;
    if (least == nullptr || point.value < least->value) least = &point;
    if (greatest == nullptr || point.value > greatest->value) greatest = &point;
  }
  if (least != nullptr) {
    json["least"] = NumberJson(least->value);
    json["greatest"] = NumberJson(greatest->value);
  }
  for (const RunPoint& point : ThinOut(curve.points, kMaxPointsShown)) {
    json["steps"].push_back(point.step);
    json["values"].push_back(NumberJson(point.value));
  }
  return json;
}

// [after, step, count]; of more than can be told apart, neighbours together.
Json SkipsJson(const std::vector<SkippedSteps>& skips) {
  Json json = Json::array();
  const size_t together = skips.size() / kMaxMarks + 1;
  for (size_t i = 0; i < skips.size(); i += together) {
    const size_t last = std::min(skips.size(), i + together) - 1;
    int64_t count = 0;
    for (size_t k = i; k <= last; ++k) count += skips[k].count;
    json.push_back({skips[i].after, skips[last].step, count});
  }
  return json;
}

// What a reader of the page should know of the files.
Json RemarksJson(const RunHistory& run) {
  Json remarks = Json::array();
  for (const RunHistory::File& file : run.files) {
    if (file.truncated) {
      remarks.push_back(
          Concat(file.path, " ends within a record, as that of a killed program does."));
    }
  }
  if (run.other_values > 0) {
    remarks.push_back(
        Concat(run.other_values, " values that are no plain numbers (images, ...) are left out."));
  }
  const bool thinned = std::any_of(run.curves.begin(), run.curves.end(), [](const RunCurve& curve) {
    return curve.points.size() > kMaxPointsShown;
  });
  if (thinned) {
    remarks.push_back("Of long curves, each part shows its least and its greatest value.");
  }
  return remarks;
}

}  // namespace

std::string ToHtml(const RunHistory& run, const std::string& title) {
  const std::vector<SkippedSteps> skips = FindSkippedSteps(run);
  int64_t skipped = 0;
  for (const SkippedSteps& steps : skips) skipped += steps.count;
  Json data = {{"title", title},
               {"remarks", RemarksJson(run)},
               {"skips", SkipsJson(skips)},
               {"skippedCount", skipped},
               {"curves", Json::array()}};
  int64_t first_step = 0, last_step = 0;
  double started = 0, ended = 0;
  for (const RunCurve& curve : run.curves) {
    const RunPoint& first = curve.points.front();
    const RunPoint& last = curve.points.back();
    const bool is_first = data["curves"].empty();
    first_step = is_first ? first.step : std::min(first_step, first.step);
    last_step = is_first ? last.step : std::max(last_step, last.step);
    started = is_first ? first.time : std::min(started, first.time);
    ended = is_first ? last.time : std::max(ended, last.time);
    data["curves"].push_back(CurveJson(curve));
  }
  data["firstStep"] = first_step;
  data["lastStep"] = last_step;
  data["started"] = std::isfinite(started) ? started : 0;
  data["seconds"] = std::isfinite(ended - started) ? ended - started : 0;
  return FillPage(kRunPageTemplate, data);
}

}  // namespace halftone::tools
