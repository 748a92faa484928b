// What a training step takes on several ranks, and how much of its exchanges backward hides. The same total
// batch on one rank is what to compare with:
//   mpirun -n 2 scaling --workload=resnet50 --threads=1
//   scaling --workload=resnet50 --threads=2
// One line for each bucket on standard error, one JSON line on standard output; of the first rank.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/benchmarks/support/timing.h"
#include "halftone/benchmarks/support/workloads.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/distributed/all_reduce.h"
#include "halftone/distributed/communicator.h"
#include "halftone/distributed/shards.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/shards.h"
#include "halftone/kernels/kernel.h"

ABSL_FLAG(std::string, workload, "mlp", "a name of benchmarks/support/workloads.h");
ABSL_FLAG(int, batch, 0, "samples per step of all ranks together; 0: 16");
ABSL_FLAG(std::string, amp, "off", "off, bf16 or f16");
ABSL_FLAG(std::string, wire, "f32", "f32, f16 or bf16");
ABSL_FLAG(double, bucket_mib, 25, "of gradients that travel together");
ABSL_FLAG(bool, shard_optimizer, false, "each rank keeps the optimizer's state of its part");
ABSL_FLAG(int, threads, 1, "CPU threads of each rank");
ABSL_FLAG(int, steps, 5, "timed steps");

namespace halftone::benchmarks {
namespace {

// Of one exchange of the profiled step.
struct Bucket {
  std::string op, name;
  int64_t elements = 0;        // of the buffer that travels
  std::vector<int64_t> parts;  // of each rank, where they differ
  DType dtype = DType::kF32;
  double start_s = 0, wait_s = 0;
  double alone_s = 0;  // from start to end with nothing else to do
};

// Seconds of an exchange when nobody computes beside it, begun by `start`: the median of 5.
template <typename Exchange, typename Start>
absl::StatusOr<double> MedianAlone(Exchange& exchange, const Start& start) {
  absl::Status status;
  const double seconds = MedianSeconds(5, [&] {
    if (status.ok()) status = distributed::World().Barrier("benchmark");
    bool failed = false;
    start();
    if (const absl::Status waited = exchange.Wait(&failed); status.ok()) status = waited;
  });
  HT_RETURN_IF_ERROR(status);
  return seconds;
}

absl::StatusOr<double> AloneSeconds(const Bucket& bucket) {
  distributed::Communicator& world = distributed::World();
  const auto zeros = [&](int64_t elements) {
    return Tensor::Zeros(bucket.dtype, Shape({elements}));
  };
  if (bucket.op == "all_gather_start") {
    distributed::AllGather gather(world, bucket.dtype, bucket.parts);
    Tensor buffer = zeros(bucket.elements);
    return MedianAlone(gather, [&] { gather.Start(buffer.raw()); });
  }
  if (bucket.op == "reduce_scatter_start") {
    distributed::ReduceScatter reduction(world, bucket.dtype, bucket.parts, /*mean=*/true);
    Tensor buffer = zeros(distributed::ReduceScatter::BufferElements(bucket.parts, world.rank()));
    return MedianAlone(reduction, [&] { reduction.Start(buffer.raw(), false); });
  }
  distributed::AllReduce reduction(world, bucket.dtype, bucket.elements, /*mean=*/true);
  Tensor buffer = zeros(distributed::AllReduce::BufferElements(bucket.elements, world.size()));
  return MedianAlone(reduction, [&] { reduction.Start(buffer.raw(), false); });
}

Bucket BucketOf(const ir::Node& start, double seconds) {
  Bucket bucket;
  bucket.op = start.op().name;
  bucket.name = start.name();
  bucket.start_s = seconds;
  bucket.dtype = start.output_type().dtype;
  if (bucket.op == "all_reduce_start") {
    for (const ir::Value& x : start.inputs()) bucket.elements += x.type().num_elements();
  } else {
    const ops::ShardLayout layout = *ops::ShardLayout::Of(bucket.op, start.attrs());
    bucket.parts = layout.parts;
    bucket.elements = layout.elements();
  }
  return bucket;
}

// Runs one step more and looks at its exchanges.
absl::StatusOr<std::vector<Bucket>> ProfileExchanges(TrainingStep& graph,
                                                     const std::vector<Tensor>& data) {
  std::vector<Bucket> buckets;
  size_t waited = 0;
  graph.set_profile([&](const ir::Node& node, const kernels::Kernel&, double seconds) {
    if (!node.op().communicates) return;
    if (node.op().name.ends_with("_start")) {
      buckets.push_back(BucketOf(node, seconds));
    } else if (node.op().name.ends_with("_wait") && waited < buckets.size()) {
      buckets[waited++].wait_s = seconds;  // in the order of the starts
    }
  });
  std::vector<Tensor> out = {Tensor::Zeros(DType::kF32, {})};
  HT_RETURN_IF_ERROR(graph.Run(data, absl::MakeSpan(out)));
  graph.set_profile(nullptr);
  for (Bucket& bucket : buckets) {
    HT_ASSIGN_OR_RETURN(bucket.alone_s, AloneSeconds(bucket));
  }
  return buckets;
}

absl::Status Run() {
  HT_RETURN_IF_ERROR(distributed::Init());
  const int ranks = distributed::Size(), threads = absl::GetFlag(FLAGS_threads);
  const int64_t batch = absl::GetFlag(FLAGS_batch) > 0 ? absl::GetFlag(FLAGS_batch) : 16;
  const std::string name = absl::GetFlag(FLAGS_workload);
  if (batch % ranks != 0) return cli::WrongOption("--batch: expected a multiple of ", ranks);
  if (threads < 1) return cli::WrongOption("--threads: expected 1 or more");
  if (absl::GetFlag(FLAGS_steps) < 1) return cli::WrongOption("--steps: expected 1 or more");
  const auto wire = ParseDType(absl::GetFlag(FLAGS_wire));
  if (!wire || (*wire != DType::kF32 && !IsLow(*wire))) {
    return cli::WrongOption("--wire: expected f32, f16 or bf16");
  }
  auto workload = MakeWorkload(name, batch / ranks);
  if (!workload.ok()) return cli::WrongOption("--workload: ", Message(workload.status()));
  SetNumThreads(threads);
  TrainingStep graph(**workload);
  HT_RETURN_IF_ERROR(cli::OptionError(SetPrecision(graph, absl::GetFlag(FLAGS_amp))));
  graph.config.data_parallel(
      {.bucket_bytes = static_cast<int64_t>(absl::GetFlag(FLAGS_bucket_mib) * (1 << 20)),
       .wire_dtype = *wire,
       .shard_optimizer = absl::GetFlag(FLAGS_shard_optimizer)});

  std::vector<Tensor> out = {Tensor::Zeros(DType::kF32, {})};
  const std::vector<Tensor>& data = (*workload)->data;
  absl::Status status;
  const auto step = [&] {
    if (status.ok()) status = graph.Run(data, absl::MakeSpan(out));
  };
  for (int i = 0; i < 2; ++i) step();
  HT_RETURN_IF_ERROR(status);
  const double seconds = MedianSeconds(absl::GetFlag(FLAGS_steps), step);
  HT_RETURN_IF_ERROR(status);
  HT_ASSIGN_OR_RETURN(const std::vector<Bucket> buckets, ProfileExchanges(graph, data));

  double waits = 0, alone = 0, starts = 0, mib = 0;
  for (const Bucket& bucket : buckets) {
    const double own = static_cast<double>(bucket.elements) *
                       static_cast<double>(SizeOf(bucket.dtype)) / (1 << 20);
    waits += bucket.wait_s;
    alone += bucket.alone_s;
    starts += bucket.start_s;
    mib += own;
    if (distributed::Rank() != 0) continue;
    std::fprintf(stderr, "%-20s %8.2f MiB  start %7.2f ms  wait %7.2f ms  alone %7.2f ms\n",
                 bucket.name.c_str(), own, 1e3 * bucket.start_s, 1e3 * bucket.wait_s,
                 1e3 * bucket.alone_s);
  }
  if (distributed::Rank() != 0) return absl::OkStatus();
  // Of the exchanges' time the part that the step did not wait for.
  const double overlap = alone > 0 ? std::max(0.0, 1 - waits / alone) : 0;
  std::printf(
      "{\"name\": \"%s\", \"ranks\": %d, \"threads\": %d, \"batch\": %lld, \"amp\": \"%s\", "
      "\"wire\": \"%s\", \"step_s\": %.6f, \"samples_per_s\": %.3f, \"buckets\": %zu, "
      "\"exchanged_mib\": %.2f, \"start_s\": %.6f, \"wait_s\": %.6f, \"alone_s\": %.6f, "
      "\"overlap\": %.3f}\n",
      name.c_str(), ranks, threads, static_cast<long long>(batch), absl::GetFlag(FLAGS_amp).c_str(),
      Name(*wire), seconds, static_cast<double>(batch) / seconds, buckets.size(), mib, starts,
      waits, alone, overlap);
  return absl::OkStatus();
}

}  // namespace
}  // namespace halftone::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times training steps of several ranks, and their exchanges");
  halftone::cli::ParseCommandLine(argc, argv);
  const absl::Status status = halftone::benchmarks::Run();
  if (!status.ok()) halftone::cli::PrintMessage("scaling", halftone::Message(status));
  return halftone::cli::FinishOutput("scaling", halftone::cli::ExitStatus(status));
}
