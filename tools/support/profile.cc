#include "halftone/tools/support/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "halftone/tools/support/json_text.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string KernelText(const kernels::Kernel& kernel) {
  return kernel.implementation().empty() ? kernel.name()
                                         : kernel.name() + " (" + kernel.implementation() + ")";
}

// "12.3", in units of 1e9 a second; "-" where the op states no such cost.
std::string Rate(double amount, double seconds) {
  if (amount == 0 || seconds == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", amount / seconds * 1e-9);
  return text;
}

std::string Microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", seconds * 1e6);
  return text;
}

std::string ShareText(double share) { return share == 0 ? "-" : FormatShare(share, 1); }

}  // namespace

Profiler::Profiler(runtime::Executable& executable) : executable_(executable) {
  executable_.set_profile(
      [this](const ir::Node& node, const kernels::Kernel& kernel, double seconds) {
        events_.push_back({&node, &kernel, Now() - seconds, seconds});
      });
}

Profiler::~Profiler() { executable_.set_profile(nullptr); }

void Profiler::BeginStep() { step_start_ = Now(); }

void Profiler::EndStep() {
  events_.push_back({nullptr, nullptr, step_start_, Now() - step_start_});
}

std::string Profiler::TraceJson() const {
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", {{"name", "graph @" + executable_.graph().name()}}}});
  int steps = 0;
  for (const Event& event : events_) {
    Json json = {{"name", event.node == nullptr ? Concat("step ", steps++)
                                                : Concat("%", event.node->name())},
                 {"cat", event.node == nullptr ? "step" : event.node->op().name},
                 {"ph", "X"},
                 {"pid", 1},
                 {"tid", 1},
                 {"ts", event.start * 1e6},
                 {"dur", event.seconds * 1e6}};
    if (event.node != nullptr) {
      const ir::Cost cost = ir::CostOf(*event.node);
      Json& args = json["args"] = {{"kernel", KernelText(*event.kernel)}};
      if (event.node->num_outputs() > 0) args["type"] = event.node->output_type().ToString();
      if (!event.node->scope().empty()) args["scope"] = event.node->scope();
      args["bytes"] = cost.bytes;
      args["flops"] = cost.flops;
      if (event.seconds > 0) {
        args["GB/s"] = cost.bytes / event.seconds * 1e-9;
        args["GFLOP/s"] = cost.flops / event.seconds * 1e-9;
      }
    }
    events.push_back(std::move(json));
  }
  const Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return Dump(trace);
}

std::string Profiler::Table(const Peak& peak) const {
  std::map<int64_t, std::vector<double>> seconds;  // by node
  std::vector<double> steps;
  for (const Event& event : events_) {
    (event.node == nullptr ? steps : seconds[event.node->id()]).push_back(event.seconds);
  }
  std::vector<std::pair<double, runtime::Executable::Step>> order;
  double total = 0;
  for (const runtime::Executable::Step& step : executable_.steps()) {
    order.emplace_back(Median(seconds[step.node->id()]), step);
    total += order.back().first;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<std::string>> rows = {
      {"node", "kernel", ">us", ">share", ">GB/s", ">GFLOP/s", ">of peak"}};
  for (const auto& [median, step] : order) {
    const ir::Cost cost = ir::CostOf(*step.node);
    rows.push_back({"%" + step.node->name(), KernelText(*step.kernel), Microseconds(median),
                    FormatShare(median, total), Rate(cost.bytes, median), Rate(cost.flops, median),
                    ShareText(peak.Share(*step.node, median))});
  }
  rows.push_back({"all", Concat(order.size(), " kernels"), Microseconds(total),
                  FormatShare(total, total), "", "", ""});
  rows.push_back(
      {"step", Concat("median of ", steps.size()), Microseconds(Median(steps)), "", "", "", ""});
  return FormatTable(std::move(rows));
}

}  // namespace halftone::tools
