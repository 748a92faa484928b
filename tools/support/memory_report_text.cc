// A memory report for people and for scripts.
#include <algorithm>
#include <cmath>

#include "halftone/tools/support/json_text.h"
#include "halftone/tools/support/memory_report.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

constexpr double kBarWidth = 24;  // of the text's bars, in characters

Json ReaderJson(const MemoryHolder& holder) {
  return holder.last_reader == nullptr ? Json() : Json(holder.last_reader->path());
}

std::string StepNumber(int i) { return std::to_string(i + 1); }

}  // namespace

std::string ToText(const MemoryReport& report) {
  std::string text = "memory of @" + report.graph + ", ";
  text += report.planned ? "planned: an arena of " + FormatBytes(report.arena_bytes) + "\n"
                         : "by node order: a graph with markers has no plan\n";
  text += "outside the arena: inputs " + FormatBytes(report.input_bytes) + ", constants " +
          FormatBytes(report.constant_bytes) + ", variables " + FormatBytes(report.variable_bytes) +
          (report.kept_bytes == 0 ? "" : ", kept casts " + FormatBytes(report.kept_bytes)) +
          (report.packed_bytes == 0 ? "" : ", packed weights " + FormatBytes(report.packed_bytes)) +
          ", outputs " + FormatBytes(report.output_bytes) + "\n";
  if (report.peak < 0) return text + "nothing runs\n";
  text += "peak: " + FormatBytes(report.peak_bytes()) + " at step " + StepNumber(report.peak) +
          ", " + report.steps[report.peak].node->path() + "\n";
  if (report.repeats > 0) {
    text += Concat(
        report.repeats, report.repeats == 1 ? " node computes" : " nodes compute",
        " a value again for the backward pass; without: ",
        report.planned ? "an arena of " + FormatBytes(report.arena_bytes_without) + ", " : "",
        "peak ", FormatBytes(report.peak_bytes_without), "\n");
  }
  text += "\n";
  if (!report.held_at_peak.empty()) {
    std::vector<std::vector<std::string>> held = {
        {"held at the peak", "type", ">bytes", ">share", "last reader"}};
    for (const MemoryHolder& holder : report.held_at_peak) {
      held.push_back(
          {holder.value.ToString(), holder.value.type().ToString(), FormatBytes(holder.bytes),
           FormatShare(holder.bytes, report.peak_bytes()),
           holder.last_reader == nullptr ? "(end of the step)" : holder.last_reader->path()});
    }
    text += FormatTable(std::move(held)) + "\n";
  }
  std::vector<std::vector<std::string>> steps = {
      {">step", "node", "op", ">adds", ">frees", ">live", ""}};
  for (int i = 0; i < static_cast<int>(report.steps.size()); ++i) {
    const MemoryStep& step = report.steps[i];
    const auto or_dash = [](int64_t bytes) { return bytes == 0 ? "-" : FormatBytes(bytes); };
    const double share = static_cast<double>(step.live) /
                         static_cast<double>(std::max<int64_t>(1, report.peak_bytes()));
    steps.push_back(
        {StepNumber(i), step.node->path(), step.node->op().name, or_dash(step.adds),
         or_dash(step.frees), FormatBytes(step.live),
         std::string(std::lround(kBarWidth * share), '#') + (i == report.peak ? " peak" : "")});
  }
  return text + FormatTable(std::move(steps));
}

std::string ToJson(const MemoryReport& report) {
  Json json = {{"graph", report.graph},
               {"planned", report.planned},
               {"arena_bytes", report.planned ? Json(report.arena_bytes) : Json()},
               {"peak", Json()},
               {"outside",
                {{"inputs", report.input_bytes},
                 {"constants", report.constant_bytes},
                 {"variables", report.variable_bytes},
                 {"outputs", report.output_bytes}}},
               {"steps", Json::array()}};
  if (report.kept_bytes > 0) json["outside"]["kept"] = report.kept_bytes;
  if (report.packed_bytes > 0) json["outside"]["packed"] = report.packed_bytes;
  if (report.repeats > 0) {
    json["recomputed"] = {{"nodes", report.repeats},
                          {"arena_bytes_without", report.arena_bytes_without},
                          {"peak_bytes_without", report.peak_bytes_without}};
  }
  if (report.peak >= 0) {
    json["peak"] = {{"step", report.peak}, {"bytes", report.peak_bytes()}, {"held", Json::array()}};
  }
  for (const MemoryHolder& holder : report.held_at_peak) {
    json["peak"]["held"].push_back({{"value", holder.value.ToString()},
                                    {"type", holder.value.type().ToString()},
                                    {"bytes", holder.bytes},
                                    {"last_reader", ReaderJson(holder)}});
  }
  for (const MemoryStep& step : report.steps) {
    json["steps"].push_back({{"node", step.node->path()},
                             {"op", step.node->op().name},
                             {"adds", step.adds},
                             {"frees", step.frees},
                             {"live", step.live}});
  }
  return Dump(json);
}

}  // namespace halftone::tools
