// Seconds of a recurrent network, forward with the gradients of its input and all weights: one JSON
// line a layer type and dtype, the best median of the rounds. benchmarks/peers/torch_recurrent.py
// times PyTorch's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/benchmarks/support/timing.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/philox.h"
#include "halftone/core/threads.h"
#include "halftone/halftone.h"

ABSL_FLAG(int, batch, 32, "sequences");
ABSL_FLAG(int, sequence, 128, "steps of each");
ABSL_FLAG(int, size, 256, "of input and state");
ABSL_FLAG(int, layers, 2, "layers");
ABSL_FLAG(int, threads, 2, "CPU threads");
ABSL_FLAG(int, steps, 5, "timed steps in each round");
ABSL_FLAG(int, rounds, 5, "rounds; the best median counts");

namespace halftone::benchmarks {
namespace {

// In: x and the gradient of the result. Out: sums of all gradients.
class Recurrent : public nn::Graph {
 public:
  Recurrent(std::unique_ptr<nn::Module> layer, DType amp) : layer_(std::move(layer)) {
    add_module("layer", *layer_);
    if (amp != DType::kF32) config.enable_amp(true, {.dtype = amp});
  }
  nn::Values build(const nn::Values& in) override {
    std::vector<nn::Value> wrt = {in[0]};
    for (const auto& [name, parameter] : layer_->named_parameters()) wrt.push_back(parameter);
    nn::Values sums;
    for (const nn::Value& d : nn::gradients(nn::sum((*layer_)(in[0]) * in[1]), wrt)) {
      sums.push_back(nn::sum(d));
    }
    return sums;
  }

 private:
  std::unique_ptr<nn::Module> layer_;
};

std::unique_ptr<nn::Module> LayerOf(bool lstm) {
  const int64_t size = absl::GetFlag(FLAGS_size), layers = absl::GetFlag(FLAGS_layers);
  if (lstm) return std::make_unique<nn::LSTM>(size, size, nn::LSTMOptions{.num_layers = layers});
  return std::make_unique<nn::GRU>(size, size, nn::GRUOptions{.num_layers = layers});
}

int Main() {
  const int steps = absl::GetFlag(FLAGS_steps), rounds = absl::GetFlag(FLAGS_rounds);
  const Shape shape{absl::GetFlag(FLAGS_sequence), absl::GetFlag(FLAGS_batch),
                    absl::GetFlag(FLAGS_size)};
  if (steps < 1 || rounds < 1 || shape.num_elements() < 1) {
    cli::PrintMessage("recurrent", "expected 1 or more of everything");
    return 2;
  }
  SetNumThreads(absl::GetFlag(FLAGS_threads));
  std::vector<Tensor> in;
  for (uint64_t i = 0; i < 2; ++i) {
    PhiloxStream random(1, i);
    Tensor x = Tensor::Empty(DType::kF32, shape);
    for (int64_t e = 0; e < x.num_elements(); ++e) x.data<float>()[e] = random.Normal();
    in.push_back(x);
  }
  for (const bool lstm : {true, false}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      Recurrent graph(LayerOf(lstm), dtype);
      const auto out = graph(in);  // compiles
      if (!out.ok()) {
        cli::PrintMessage("recurrent", Message(out.status()));
        return 1;
      }
      bool ok = true;
      double best = INFINITY;
      for (int round = 0; round < rounds; ++round) {
        best = std::min(best, MedianSeconds(steps, [&] { ok &= graph(in).ok(); }));
      }
      if (!ok) {
        cli::PrintMessage("recurrent", "a timed step failed");
        return 1;
      }
      std::printf(
          "{\"layer\": \"%s\", \"shape\": \"%s\", \"layers\": %d, \"dtype\": \"%s\", "
          "\"threads\": %d, \"ms\": %.2f, \"mib\": %.1f}\n",
          lstm ? "lstm" : "gru", shape.ToString().c_str(), absl::GetFlag(FLAGS_layers), Name(dtype),
          NumThreads(), best * 1e3, static_cast<double>(graph.arena_bytes()) / 0x1p20);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times recurrent networks with their gradients on the CPU");
  halftone::cli::ParseCommandLine(argc, argv);
  return halftone::cli::FinishOutput("recurrent", halftone::benchmarks::Main());
}
