// Seconds of attention with its gradients, as one op and composed of matmul and softmax, in turn:
// one JSON line a dtype, the best median of the rounds. benchmarks/peers/torch_attention.py times
// PyTorch's.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/benchmarks/support/timing.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/philox.h"
#include "halftone/core/threads.h"
#include "halftone/halftone.h"

ABSL_FLAG(int, batch, 8, "sequences");
ABSL_FLAG(int, heads, 12, "heads of each");
ABSL_FLAG(int, positions, 1024, "queries and keys of a head");
ABSL_FLAG(int, columns, 64, "of query, key and value");
ABSL_FLAG(bool, causal, false, "a query sees the keys up to its own position");
ABSL_FLAG(int, threads, 2, "CPU threads");
ABSL_FLAG(int, steps, 3, "timed steps in each round");
ABSL_FLAG(int, rounds, 3, "rounds; the best median counts");

namespace halftone::benchmarks {
namespace {

// In: q, k, v and the gradient of the result. Out: sums of the three gradients.
class Attention : public nn::Graph {
 public:
  Attention(bool fused, bool causal) : fused_(fused), causal_(causal) {}
  nn::Values build(const nn::Values& in) override {
    const nn::Value y = fused_ ? Fused(in[0], in[1], in[2]) : Composed(in[0], in[1], in[2]);
    const nn::Values d = nn::gradients(nn::sum(y * in[3]), {in[0], in[1], in[2]});
    return {nn::sum(d[0]), nn::sum(d[1]), nn::sum(d[2])};
  }

 private:
  nn::Value Fused(const nn::Value& q, const nn::Value& k, const nn::Value& v) const {
    return nn::scaled_dot_product_attention(q, k, v, {.is_causal = causal_});
  }
  nn::Value Composed(const nn::Value& q, const nn::Value& k, const nn::Value& v) const {
    const int64_t positions = q.dim(2);
    nn::Value scores =
        nn::matmul(q, nn::transpose(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(q.dim(3))));
    if (causal_) {
      Tensor later = Tensor::Empty(DType::kBool, {positions, positions});
      for (int64_t i = 0; i < positions; ++i) {
        for (int64_t j = 0; j < positions; ++j) later.set(i * positions + j, j > i);
      }
      scores = nn::masked_fill(scores, nn::constant(later), -INFINITY);
    }
    return nn::matmul(nn::softmax(scores, -1), v);
  }
  bool fused_, causal_;
};

int Main() {
  const int steps = absl::GetFlag(FLAGS_steps), rounds = absl::GetFlag(FLAGS_rounds);
  const Shape shape{absl::GetFlag(FLAGS_batch), absl::GetFlag(FLAGS_heads),
                    absl::GetFlag(FLAGS_positions), absl::GetFlag(FLAGS_columns)};
  if (steps < 1 || rounds < 1 || shape.num_elements() < 1) {
    cli::PrintMessage("attention", "expected 1 or more of everything");
    return 2;
  }
  SetNumThreads(absl::GetFlag(FLAGS_threads));
  const bool causal = absl::GetFlag(FLAGS_causal);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::vector<Tensor> in;
    for (uint64_t i = 0; i < 4; ++i) {
      PhiloxStream random(1, i);
      Tensor x = Tensor::Empty(DType::kF32, shape);
      for (int64_t e = 0; e < x.num_elements(); ++e) x.data<float>()[e] = random.Normal();
      in.push_back(x.To(dtype));
    }
    Attention fused(true, causal), composed(false, causal);
    for (nn::Graph* graph : {static_cast<nn::Graph*>(&fused), static_cast<nn::Graph*>(&composed)}) {
      const auto out = (*graph)(in);  // compiles
      if (out.ok()) continue;
      cli::PrintMessage("attention", Message(out.status()));
      return 1;
    }
    bool ok = true;
    double one = INFINITY, several = INFINITY;
    for (int round = 0; round < rounds; ++round) {
      one = std::min(one, MedianSeconds(steps, [&] { ok &= fused(in).ok(); }));
      several = std::min(several, MedianSeconds(steps, [&] { ok &= composed(in).ok(); }));
    }
    if (!ok) {
      cli::PrintMessage("attention", "a timed step failed");
      return 1;
    }
    std::printf(
        "{\"shape\": \"%s\", \"causal\": %s, \"dtype\": \"%s\", \"threads\": %d, "
        "\"attention_ms\": %.2f, \"composed_ms\": %.2f, \"ratio\": %.2f, "
        "\"attention_mib\": %.1f, \"composed_mib\": %.1f}\n",
        shape.ToString().c_str(), causal ? "true" : "false", Name(dtype), NumThreads(), one * 1e3,
        several * 1e3, several / one, static_cast<double>(fused.arena_bytes()) / 0x1p20,
        static_cast<double>(composed.arena_bytes()) / 0x1p20);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times attention with its gradients on the CPU");
  halftone::cli::ParseCommandLine(argc, argv);
  return halftone::cli::FinishOutput("attention", halftone::benchmarks::Main());
}
