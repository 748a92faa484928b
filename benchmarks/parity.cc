// A reference workload from the weights and data of the hash: the losses of its first training steps
// as one JSON line, and on request the gradients of the first as a safetensors file.
// benchmarks/peers/torch_parity.py compares both with PyTorch.
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/benchmarks/support/workloads.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/io/safetensors.h"
#include "halftone/core/threads.h"

ABSL_FLAG(std::string, workload, "mlp", "a name of benchmarks/support/workloads.h");
ABSL_FLAG(std::string, amp, "off", "off, bf16 or f16");
ABSL_FLAG(int, threads, 2, "CPU threads");
ABSL_FLAG(int, steps, 1, "training steps");
ABSL_FLAG(uint32_t, batch, 0, "images or sequences; 0: as many as the workload has");
ABSL_FLAG(std::string, gradients, "", "file for the gradients of the first step by parameter name");

namespace halftone::benchmarks {
namespace {

absl::Status WriteGradients(Workload& workload, const std::string& path) {
  GradientStep graph(workload);
  HT_RETURN_IF_ERROR(SetPrecision(graph, absl::GetFlag(FLAGS_amp)));
  HT_ASSIGN_OR_RETURN(const std::vector<Tensor> out, graph(workload.data));
  io::Safetensors file;
  size_t i = 1;
  for (const auto& p : workload.model->named_parameters()) file.tensors[p.first] = out[i++];
  return io::WriteSafetensors(path, file);
}

absl::Status Run() {
  const auto made = MakeWorkload(absl::GetFlag(FLAGS_workload), absl::GetFlag(FLAGS_batch));
  if (!made.ok()) return Annotate(made.status(), "--workload: ");
  Workload* const workload = made->get();
  if (absl::GetFlag(FLAGS_threads) < 1 || absl::GetFlag(FLAGS_steps) < 1) {
    return InvalidArgument("--threads, --steps: expected 1 or more");
  }
  SetNumThreads(absl::GetFlag(FLAGS_threads));
  HT_RETURN_IF_ERROR(workload->SetHashWeights());
  if (const std::string path = absl::GetFlag(FLAGS_gradients); !path.empty()) {
    HT_RETURN_IF_ERROR(WriteGradients(*workload, path));
  }
  TrainingStep graph(*workload);
  HT_RETURN_IF_ERROR(SetPrecision(graph, absl::GetFlag(FLAGS_amp)));
  std::printf("{\"name\": \"%s\", \"amp\": \"%s\", \"params\": %lld, \"losses\": [",
              workload->name.c_str(), absl::GetFlag(FLAGS_amp).c_str(),
              static_cast<long long>(workload->num_parameters()));
  for (int step = 0; step < absl::GetFlag(FLAGS_steps); ++step) {
    HT_ASSIGN_OR_RETURN(const std::vector<Tensor> out, graph(workload->data));
    std::printf("%s%.9g", step == 0 ? "" : ", ", out[0].item());
  }
  std::printf("]}\n");
  return absl::OkStatus();
}

int Main() {
  const absl::Status status = Run();
  if (status.ok()) return 0;
  cli::PrintMessage("parity", Message(status));
  return 2;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("losses and gradients of a reference workload, to compare");
  halftone::cli::ParseCommandLine(argc, argv);
  return halftone::cli::FinishOutput("parity", halftone::benchmarks::Main());
}
