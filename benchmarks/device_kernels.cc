// Single kernels on a CUDA device, each by itself: what moves memory beside a copy within the device, and products in
// their three directions with the engine that the library chose. A JSON line a kernel as it is timed, then two tables
// in Markdown. The work of a case is what its op's record states.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "halftone/benchmarks/support/device_cases.h"
#include "halftone/benchmarks/support/device_timer.h"
#include "halftone/benchmarks/support/kernel_case.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/open_device.h"

ABSL_FLAG(std::string, device, "cuda", "cuda, or cuda:N");
ABSL_FLAG(double, scale, 1,
          "times the 256 MB that a kernel moves, and times every extent of products; above 0, at "
          "most 1");
ABSL_FLAG(double, seconds, 50, "no kernel begins later; what is left out is said");
ABSL_FLAG(int, blocks, 7, "blocks of replays of each kernel, whose median counts");
ABSL_FLAG(std::string, filter, "",
          "only cases that have this in their name, and the copy that they are compared with");

namespace halftone::benchmarks {
namespace {

using kernels::Kernel;
using kernels::KernelCandidate;
using kernels::KernelRegistry;
using Clock = std::chrono::steady_clock;

constexpr double kBytes = 256e6;
constexpr double kWarmUpSeconds = 0.5;
// What another candidate than the first may have to do: our own convolutions take a millisecond for some of this.
constexpr double kMostFlopsOfOthers = 1.6e10;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Measurement {
  DeviceCase what;
  std::string kernel, implementation;
  ir::Cost cost;
  double seconds = 0;
  double make_s = 0;   // to choose an engine and build its plan
  bool chosen = true;  // what a step would run; else another candidate

  double gb_s() const { return cost.bytes / seconds / 1e9; }
  double tflop_s() const { return cost.flops / seconds / 1e12; }
};

class Run {
 public:
  Run(kernels::DeviceBackend& backend, int blocks) : backend_(backend), blocks_(blocks) {}

  // The clocks of an idle card take some time to rise.
  void WarmUp(const DeviceCase& c) {
    const auto start = Clock::now();
    const auto graph = ParseKernelCase(c.inputs, c.nodes, c.dtype);
    if (!graph.ok()) return;
    const ir::Node& node = *(*graph)->nodes().back();
    const auto kernel = KernelRegistry::Global().Select(node, backend_.device().kind);
    while (kernel.ok() && SecondsSince(start) < kWarmUpSeconds) {
      if (!SecondsOnDevice(backend_, node, **kernel, blocks_).ok()) return;
    }
  }

  // The kernel that a step would run, and behind it, if `others`, what else takes the node and is not much slower.
  void Time(const DeviceCase& c, bool others) {
    const absl::Status status = others ? TimeOthers(c) : TimeChosen(c);
    if (status.ok()) return;
    ++failed_;
    cli::PrintMessage("device_kernels", Concat(c.name, " ", Name(c.dtype), ": ", Message(status)));
  }

  // Bytes a second, in GB, of the case "copy"; 0 if it was not timed.
  double copy_gb_s() const {
    for (const Measurement& m : measured_) {
      if (m.what.name == "copy") return m.gb_s();
    }
    return 0;
  }
  const std::vector<Measurement>& measured() const { return measured_; }
  int num_cases() const {
    return static_cast<int>(std::count_if(measured_.begin(), measured_.end(),
                                          [](const Measurement& m) { return m.chosen; }));
  }
  int failed() const { return failed_; }

 private:
  absl::Status TimeChosen(const DeviceCase& c) {
    HT_ASSIGN_OR_RETURN(const auto graph, ParseKernelCase(c.inputs, c.nodes, c.dtype));
    const ir::Node& node = *graph->nodes().back();
    const auto start = Clock::now();
    HT_ASSIGN_OR_RETURN(const auto kernel,
                        KernelRegistry::Global().Select(node, backend_.device().kind));
    return TimeKernel(c, node, *kernel, SecondsSince(start), true);
  }

  absl::Status TimeOthers(const DeviceCase& c) {
    HT_ASSIGN_OR_RETURN(const auto graph, ParseKernelCase(c.inputs, c.nodes, c.dtype));
    const ir::Node& node = *graph->nodes().back();
    if (ir::CostOf(node).flops > kMostFlopsOfOthers) return absl::OkStatus();
    for (const KernelCandidate* candidate :
         KernelRegistry::Global().Candidates(node.op().name, backend_.device().kind)) {
      const bool was_chosen =
          std::any_of(measured_.begin(), measured_.end(), [&](const Measurement& m) {
            return m.what.name == c.name && m.what.dtype == c.dtype && m.kernel == candidate->name;
          });
      if (was_chosen || !candidate->Accepts(node).ok()) continue;
      const auto start = Clock::now();
      const auto kernel = KernelRegistry::Global().CreateNamed(node, candidate->name);
      if (!kernel.ok()) continue;
      HT_RETURN_IF_ERROR(TimeKernel(c, node, **kernel, SecondsSince(start), false));
    }
    return absl::OkStatus();
  }

  absl::Status TimeKernel(const DeviceCase& c, const ir::Node& node, Kernel& kernel, double make_s,
                          bool chosen) {
    Measurement m{c, kernel.name(), kernel.implementation(), ir::CostOf(node), 0, make_s, chosen};
    HT_ASSIGN_OR_RETURN(m.seconds, SecondsOnDevice(backend_, node, kernel, blocks_));
    // The next one has other sizes, which a small card has no room for as well.
    HT_RETURN_IF_ERROR(backend_.ReleaseCached());
    measured_.push_back(m);
    std::printf(
        "{\"name\": \"%s\", \"framework\": \"halftone\", \"dtype\": \"%s\", \"kernel\": \"%s\", "
        "\"implementation\": %s, \"chosen\": %s, \"seconds\": %.9f, \"make_s\": %.4f, \"bytes\": "
        "%.0f, \"flops\": %.0f, \"gb_s\": %.2f, \"tflop_s\": %.4f, \"share_of_copy\": %.4f}\n",
        c.name.c_str(), std::string(Name(c.dtype)).c_str(), m.kernel.c_str(),
        ir::Quote(m.implementation).c_str(), chosen ? "true" : "false", m.seconds, make_s,
        m.cost.bytes, m.cost.flops, m.gb_s(), m.tflop_s(),
        copy_gb_s() > 0 ? m.gb_s() / copy_gb_s() : 0);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  kernels::DeviceBackend& backend_;
  int blocks_;
  std::vector<Measurement> measured_;
  int failed_ = 0;
};

void PrintTables(const Run& run, const std::string& device) {
  std::printf("\n%s. A copy within the device: %.1f GB/s, read and written.\n\n", device.c_str(),
              run.copy_gb_s());
  std::printf(
      "| kernel | dtype | MB | us | GB/s | of a copy | by |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | --- |\n");
  for (const Measurement& m : run.measured()) {
    if (m.what.is_product) continue;
    std::printf("| %s | %s | %.1f | %.2f | %.1f | %.0f%% | %s |\n", m.what.name.c_str(),
                std::string(Name(m.what.dtype)).c_str(), m.cost.bytes / 1e6, m.seconds * 1e6,
                m.gb_s(), run.copy_gb_s() > 0 ? 100 * m.gb_s() / run.copy_gb_s() : 0,
                m.kernel.c_str());
  }
  std::printf(
      "\n| product | dtype | GFLOP | us | TFLOP/s | by | engine | s to choose |\n"
      "| --- | --- | ---: | ---: | ---: | --- | --- | ---: |\n");
  for (const Measurement& m : run.measured()) {
    if (!m.what.is_product) continue;
    std::printf("| %s | %s | %.3f | %.2f | %.3f | %s%s | %s | %.2f |\n", m.what.name.c_str(),
                std::string(Name(m.what.dtype)).c_str(), m.cost.flops / 1e9, m.seconds * 1e6,
                m.tflop_s(), m.kernel.c_str(), m.chosen ? "" : " (not chosen)",
                m.implementation.c_str(), m.make_s);
  }
}

int Fail(const std::string& message) {
  cli::PrintMessage("device_kernels", message);
  return 2;
}

int Main() {
  const auto start = Clock::now();
  const double scale = absl::GetFlag(FLAGS_scale), seconds = absl::GetFlag(FLAGS_seconds);
  if (!(scale > 0 && scale <= 1)) return Fail("--scale: expected above 0, at most 1");
  if (!(seconds > 0)) return Fail("--seconds: expected above 0");
  const int blocks = absl::GetFlag(FLAGS_blocks);
  if (blocks < 1) return Fail("--blocks: expected 1 or more");
  const auto device = ParseDevice(absl::GetFlag(FLAGS_device));
  if (!device.ok()) return Fail("--device: " + Message(device.status()));
  if (device->kind != Device::Kind::kCuda) return Fail("--device: expected cuda or cuda:N");
  auto cases = TrafficCases(scale * kBytes);
  if (!cases.ok()) return Fail(Message(cases.status()));
  for (DeviceCase& c : ProductCases(scale)) cases->push_back(std::move(c));
  const std::string filter = absl::GetFlag(FLAGS_filter);
  const DeviceCase copy = cases->front();
  std::erase_if(*cases, [&](const DeviceCase& c) { return !absl::StrContains(c.name, filter); });
  if (cases->empty()) return Fail("--filter: no case has \"" + filter + "\" in its name");
  if (cases->front().name != copy.name) cases->insert(cases->begin(), copy);
  const auto description = kernels::OpenDevice(*device);
  if (!description.ok()) return Fail("--device: " + Message(description.status()));
  const auto backend = kernels::OpenCuda(device->index);
  if (!backend.ok()) return Fail("--device: " + Message(backend.status()));

  Run run(**backend, blocks);
  run.WarmUp(copy);
  std::string left_out;
  int num_left_out = 0;
  for (const bool others : {false, true}) {
    for (const DeviceCase& c : *cases) {
      if (others && !c.is_product) continue;
      if (SecondsSince(start) > seconds) {
        if (others) continue;
        ++num_left_out;
        left_out += Concat(left_out.empty() ? "" : ", ", c.name, " ", Name(c.dtype));
        continue;
      }
      run.Time(c, others);
    }
  }
  PrintTables(run, *description);
  if (num_left_out > 0) std::printf("\nLeft out after %g s: %s\n", seconds, left_out.c_str());
  std::printf("\n%d cases: %d timed, %d failed, %d left out; %.1f s\n",
              static_cast<int>(cases->size()), run.num_cases(), run.failed(), num_left_out,
              SecondsSince(start));
  return run.failed() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times single kernels on a CUDA device");
  halftone::cli::ParseCommandLine(argc, argv);
  return halftone::cli::FinishOutput("device_kernels", halftone::benchmarks::Main());
}
