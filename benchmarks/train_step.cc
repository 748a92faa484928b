// Seconds per training step of a reference workload, as one JSON line: forward, backward and update
// on fixed data, or with --eval forward and loss alone; the median of single steps or, on a CUDA device, where steps overlap, of blocks of
// steps between two waits. With --bare also those of the same step written against oneDNN alone, in
// turn with ours.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/benchmarks/support/bare_onednn.h"
#include "halftone/benchmarks/support/timing.h"
#include "halftone/benchmarks/support/traced_step.h"
#include "halftone/benchmarks/support/workloads.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/threads.h"
#include "halftone/examples/support/device_choice.h"
#include "halftone/examples/support/progress.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/peak.h"

ABSL_FLAG(std::string, workload, "mlp", "a name of benchmarks/support/workloads.h");
ABSL_FLAG(std::string, amp, "off", "off, bf16 or f16");
ABSL_FLAG(std::string, device, "cpu", halftone::example::kDeviceHelp);
ABSL_FLAG(int, threads, 2, "CPU threads");
ABSL_FLAG(int, steps, 0,
          "timed steps in each round, on CUDA in each block; "
          "0: 300 for mlp, 20 for fashion_cnn, 3 to 5 for others");
ABSL_FLAG(int, blocks, 15, "on CUDA: blocks of steps in each round, after one to warm up");
ABSL_FLAG(int, rounds, 1, "rounds; the best median counts");
ABSL_FLAG(bool, bare, false, "also time the bare oneDNN step (f32 and bf16), round by round");
ABSL_FLAG(
    bool, peak, false,
    "also measure what the machine does at best in large products and convolutions, and say what "
    "share of it the step reaches: its arithmetic at that rate over its time");
ABSL_FLAG(bool, recompute, true,
          "compute cheap values again where a step holds much for its backward pass");
ABSL_FLAG(bool, eval, false, "an evaluation instead: forward and loss");
ABSL_FLAG(int, batch, 0, "images or sequences; 0: as many as the workload has");
ABSL_FLAG(bool, packing, true, "hold weights that a step does not write in the kernels' order");
ABSL_FLAG(bool, fusion, true, "run elementwise ops as one node where they may be");
ABSL_FLAG(double, memory_budget, 0,
          "share of the working memory that the step may take, the rest computed again; 0: all");
ABSL_FLAG(std::string, graph, "",
          "file for the graph of the step as build() describes it, .txt or .pb; nothing runs then");
ABSL_FLAG(bool, kernels, false, "print which kernel runs each node, on standard error");

namespace halftone::benchmarks {
namespace {

// Median over `blocks` of the seconds a call takes when `steps` calls, which return before their
// work is done, follow each other and `wait` is for the last.
template <typename Fn, typename Wait>
double BlockSeconds(int blocks, int steps, const Fn& fn, const Wait& wait) {
  const double block = MedianSeconds(blocks, [&] {
    for (int i = 0; i < steps; ++i) fn();
    wait();
  });
  return block / steps;
}

// Gives `graph` a budget: `share` of what the step takes without one.
absl::Status SetBudget(TrainingStep& graph, double share, Workload& workload,
                       const std::string& precision) {
  if (share == 0) return absl::OkStatus();
  if (!(share > 0 && share <= 1)) return InvalidArgument(share, "; expected 0..1");
  TrainingStep whole(workload);
  HT_RETURN_IF_ERROR(SetPrecision(whole, precision));
  whole.to(graph.device());
  whole.config.recompute_cheap_values = false;
  HT_RETURN_IF_ERROR(whole.compile(workload.data));
  graph.config.memory_budget =
      static_cast<int64_t>(share * static_cast<double>(whole.arena_bytes()));
  return absl::OkStatus();
}

// The seconds that the arithmetic of the step takes at the machine's peak. Elementwise work counts too: under
// 1 % of a network of products or convolutions.
double ArithmeticSeconds(const ir::Graph& step, const tools::Peak& peak) {
  double seconds = 0;
  for (const auto& node : step.nodes()) seconds += peak.ArithmeticSeconds(*node);
  return seconds;
}

// What a step runs, and the bytes that its nodes read and write; aliases are neither.
struct Traffic {
  int64_t nodes = 0;
  double bytes = 0;
};
Traffic TrafficOf(const ir::Graph& step) {
  Traffic traffic;
  for (const auto& node : step.nodes()) {
    if (passes::IsSource(*node) || passes::IsOp(*node, "commit") || passes::IsKeptCast(*node) ||
        passes::IsStorageAlias(*node)) {
      continue;
    }
    ++traffic.nodes;
    traffic.bytes += ir::CostOf(*node).bytes;
  }
  return traffic;
}

int Fail(const std::string& message) {
  cli::PrintMessage("train_step", message);
  return 2;
}

int Main() {
  const std::string name = absl::GetFlag(FLAGS_workload), amp_choice = absl::GetFlag(FLAGS_amp);
  const int batch = absl::GetFlag(FLAGS_batch);
  if (batch < 0) return Fail("--batch: expected 0 or more");
  const auto workload = MakeWorkload(name, batch);
  if (!workload.ok()) return Fail("--workload: " + Message(workload.status()));
  if (const std::string file = absl::GetFlag(FLAGS_graph); !file.empty()) {
    const auto traced = TraceStep(**workload, amp_choice);
    const absl::Status written = traced.ok() ? ir::WriteGraphFile(**traced, file) : traced.status();
    return written.ok() ? 0 : Fail("--graph: " + Message(written));
  }
  const std::vector<Tensor>& data = (*workload)->data;
  TrainingStep graph(**workload);
  const absl::Status precision = SetPrecision(graph, amp_choice);
  if (!precision.ok()) return Fail(Message(precision));
  const int threads = absl::GetFlag(FLAGS_threads), rounds = absl::GetFlag(FLAGS_rounds),
            blocks = absl::GetFlag(FLAGS_blocks);
  if (threads < 1 || rounds < 1 || blocks < 1 || absl::GetFlag(FLAGS_steps) < 0) {
    return Fail("--threads, --rounds, --blocks: expected 1 or more; --steps: 0 or more");
  }
  const auto choice = example::ChooseDevice(absl::GetFlag(FLAGS_device));
  if (!choice.ok()) return Fail("--device: " + Message(choice.status()));
  if (!choice->note.empty()) cli::PrintMessage("note", choice->note);
  const bool on_cpu = choice->device == Device::Cpu(), bare = absl::GetFlag(FLAGS_bare);
  if (bare && !on_cpu) return Fail("--bare: expected --device=cpu");
  if (bare && name != "mlp" && name != "fashion_cnn")
    return Fail("--bare: expected mlp or fashion_cnn");
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  if (on_cpu && policy != nullptr && strcasecmp(policy, "passive") == 0) {
    return Fail("OMP_WAIT_POLICY=passive makes a parallel region 70 times slower; unset it");
  }
  SetNumThreads(threads);
  const int steps =
      absl::GetFlag(FLAGS_steps) > 0 ? absl::GetFlag(FLAGS_steps) : (*workload)->steps;

  graph.to(choice->device);
  graph.config.recompute_cheap_values = absl::GetFlag(FLAGS_recompute);
  graph.config.allow_fusion = absl::GetFlag(FLAGS_fusion);
  graph.config.pack_weights = absl::GetFlag(FLAGS_packing);
  if (absl::GetFlag(FLAGS_eval)) graph.eval();
  const absl::Status budget =
      SetBudget(graph, absl::GetFlag(FLAGS_memory_budget), **workload, amp_choice);
  if (!budget.ok()) return Fail("--memory_budget: " + Message(budget));
  std::vector<Tensor> out = {Tensor::Zeros(DType::kF32, {})};
  absl::Status status;
  const auto step = [&] {
    if (status.ok()) status = graph.Run(data, absl::MakeSpan(out));
  };
  const auto wait = [&] {
    if (status.ok()) status = graph.synchronize();
  };
  const double first = BlockSeconds(1, 1, step, wait);
  if (!status.ok()) return Fail(Message(status));
  if (absl::GetFlag(FLAGS_kernels)) std::fputs(graph.kernel_log().c_str(), stderr);

  const auto bare_f32 = bare ? MakeBareStep(name, false) : nullptr,
             bare_bf16 = bare ? MakeBareStep(name, true) : nullptr;
  tools::Peak peak;
  if (absl::GetFlag(FLAGS_peak)) {
    auto measured = tools::MeasurePeak(choice->device);
    if (!measured.ok()) return Fail("--peak: " + Message(measured.status()));
    peak = *std::move(measured);
  }
  if (!on_cpu) BlockSeconds(1, steps, step, wait);
  double best = INFINITY, best_f32 = INFINITY, best_bf16 = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    best = std::min(best,
                    on_cpu ? MedianSeconds(steps, step) : BlockSeconds(blocks, steps, step, wait));
    if (bare) best_f32 = std::min(best_f32, MedianSeconds(steps, bare_f32));
    if (bare) best_bf16 = std::min(best_bf16, MedianSeconds(steps, bare_bf16));
  }
  if (!status.ok()) return Fail(Message(status));
  const Traffic traffic = TrafficOf(*graph.compiled_graph());
  std::printf(
      "{\"name\": \"%s\", \"framework\": \"halftone\", \"device\": \"%s\", \"amp\": \"%s\", "
      "\"threads\": %d, \"eval\": %s, \"batch\": %lld, "
      "\"step_s\": %.7f, \"first_step_s\": %.4f, \"params\": %lld, \"loss\": %.6f, \"peak_mib\": "
      "%.1f, \"arena_mib\": %.1f, \"nodes\": %lld, \"moved_mib\": %.1f",
      name.c_str(), choice->name.c_str(), amp_choice.c_str(), threads,
      absl::GetFlag(FLAGS_eval) ? "true" : "false", static_cast<long long>(data[0].shape()[0]),
      best, first, static_cast<long long>((*workload)->num_parameters()), out[0].item(),
      example::PeakRssMib(), static_cast<double>(graph.arena_bytes()) / (1 << 20),
      static_cast<long long>(traffic.nodes), traffic.bytes / (1 << 20));
  if (bare) std::printf(", \"bare_f32_s\": %.7f, \"bare_bf16_s\": %.7f", best_f32, best_bf16);
  if (absl::GetFlag(FLAGS_peak)) {
    std::printf(", \"peak_f32_gflops\": %.1f, \"peak_bf16_gflops\": %.1f, \"share_of_peak\": %.4f",
                peak.flops[DType::kF32] / 1e9, peak.flops[DType::kBF16] / 1e9,
                ArithmeticSeconds(*graph.compiled_graph(), peak) / best);
  }
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times training steps of a reference workload");
  halftone::cli::ParseCommandLine(argc, argv);
  return halftone::cli::FinishOutput("train_step", halftone::benchmarks::Main());
}
