// Seconds of a training step whose parameters are one embedding table, sparse and dense, on a large
// table and on a small one, in turn: one JSON line an optimizer, the best median of the rounds.
// benchmarks/peers/torch_embedding.py times PyTorch's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/benchmarks/support/timing.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/philox.h"
#include "halftone/core/threads.h"
#include "halftone/halftone.h"

ABSL_FLAG(int64_t, rows, 200'000, "of the large table");
ABSL_FLAG(int64_t, small_rows, 2'000, "of the small table");
ABSL_FLAG(int64_t, width, 64, "of a row");
ABSL_FLAG(int64_t, ids, 4'096, "in a batch");
ABSL_FLAG(int, threads, 2, "CPU threads");
ABSL_FLAG(int, steps, 50, "timed steps in each round; a round of a dense update has a tenth");
ABSL_FLAG(int, rounds, 5, "rounds; the best median counts");

namespace halftone::benchmarks {
namespace {

enum class Rule : uint8_t { kSgd, kAdagrad, kAdam };

const char* Title(Rule rule) {
  return rule == Rule::kSgd ? "SGD" : rule == Rule::kAdagrad ? "Adagrad" : "SparseAdam";
}

// In: ids, and the gradient of their rows.
class Table : public nn::Graph {
 public:
  Table(int64_t rows, Rule rule, bool sparse)
      : table_(rows, absl::GetFlag(FLAGS_width), {.sparse = sparse}) {
    add_module("table", table_);
    if (rule == Rule::kSgd) {
      add_optimizer(optim::SGD(parameters()));
    } else if (rule == Rule::kAdagrad) {
      add_optimizer(optim::Adagrad(parameters()));
    } else if (sparse) {
      add_optimizer(optim::SparseAdam(parameters()));
    } else {
      add_optimizer(optim::Adam(parameters()));
    }
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::sum(table_(in[0]) * in[1]);
    loss.backward();
    return {loss};
  }

 private:
  nn::Embedding table_;
};

// A graph and its batch. The ids of both tables are as many different ones: any of the small one,
// spread over the large one, each anywhere in its share of it.
class Timed {
 public:
  Timed(int64_t rows, Rule rule, bool sparse) : graph_(rows, rule, sparse) {
    const int64_t ids = absl::GetFlag(FLAGS_ids), small = absl::GetFlag(FLAGS_small_rows);
    in_ = {Tensor::Empty(DType::kI64, {ids}),
           Tensor::Empty(DType::kF32, {ids, absl::GetFlag(FLAGS_width)})};
    PhiloxStream random(1, 0);
    const int64_t share = rows / small;
    std::vector<int64_t> row_of(static_cast<size_t>(small));
    for (int64_t id = 0; id < small; ++id) {
      row_of[static_cast<size_t>(id)] =
          id * share + static_cast<int64_t>(random.Below(static_cast<uint64_t>(share)));
    }
    for (int64_t i = 0; i < ids; ++i) {
      in_[0].data<int64_t>()[i] = row_of[random.Below(static_cast<uint64_t>(small))];
    }
    for (int64_t i = 0; i < in_[1].num_elements(); ++i) in_[1].data<float>()[i] = random.Normal();
  }
  absl::Status Step() { return graph_(in_).status(); }
  double seconds() const { return best_; }
  // False if a step failed.
  bool Round(int steps) {
    bool ok = true;
    best_ = std::min(best_, MedianSeconds(steps, [&] { ok &= Step().ok(); }));
    return ok;
  }

 private:
  Table graph_;
  std::vector<Tensor> in_;
  double best_ = INFINITY;
};

int Main() {
  const int steps = absl::GetFlag(FLAGS_steps), rounds = absl::GetFlag(FLAGS_rounds);
  const int64_t rows = absl::GetFlag(FLAGS_rows), small = absl::GetFlag(FLAGS_small_rows);
  if (steps < 1 || rounds < 1 || small < 1 || rows < small || absl::GetFlag(FLAGS_ids) < 1 ||
      absl::GetFlag(FLAGS_width) < 1) {
    cli::PrintMessage("embedding", "expected 1 or more of everything, and rows >= small_rows");
    return 2;
  }
  SetNumThreads(absl::GetFlag(FLAGS_threads));
  for (const Rule rule : {Rule::kSgd, Rule::kAdagrad, Rule::kAdam}) {
    Timed large(rows, rule, true), little(small, rule, true), dense(rows, rule, false);
    for (Timed* timed : {&large, &little, &dense}) {
      const absl::Status status = timed->Step();  // compiles
      if (status.ok()) continue;
      cli::PrintMessage("embedding", Message(status));
      return 1;
    }
    for (int round = 0; round < rounds; ++round) {
      if (!large.Round(steps) || !little.Round(steps) || !dense.Round(std::max(1, steps / 10))) {
        cli::PrintMessage("embedding", "a timed step failed");
        return 1;
      }
    }
    std::printf(
        "{\"optimizer\": \"%s\", \"rows\": %lld, \"small_rows\": %lld, \"width\": %lld, "
        "\"ids\": %lld, \"threads\": %d, \"sparse_ms\": %.3f, \"sparse_small_ms\": %.3f, "
        "\"dense_ms\": %.3f, \"large_over_small\": %.2f, \"dense_over_sparse\": %.1f}\n",
        Title(rule), static_cast<long long>(rows), static_cast<long long>(small),
        static_cast<long long>(absl::GetFlag(FLAGS_width)),
        static_cast<long long>(absl::GetFlag(FLAGS_ids)), NumThreads(), large.seconds() * 1e3,
        little.seconds() * 1e3, dense.seconds() * 1e3, large.seconds() / little.seconds(),
        dense.seconds() / large.seconds());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times training steps of an embedding table on the CPU");
  halftone::cli::ParseCommandLine(argc, argv);
  return halftone::cli::FinishOutput("embedding", halftone::benchmarks::Main());
}
