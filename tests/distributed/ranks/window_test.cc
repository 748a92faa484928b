// Windows of micro-batches in a job: each rank has sums of its own until the window ends, and a checkpoint in the
// middle of one has those of all.
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "halftone/distributed/communicator.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/tests/distributed/ranks/rank_folder.h"
#include "halftone/tests/distributed/ranks/rank_models.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

constexpr int kWindow = 4;
constexpr DataParallel kMean = {.bucket_bytes = 4096};
constexpr DataParallel kShards = {.bucket_bytes = 4096, .shard_optimizer = true};
constexpr DataParallel kAdds = {.bucket_bytes = 4096, .reduction = DataParallel::Reduction::kSum};

// A classifier that updates by every fourth call. `factor`: of its loss.
class Accumulating {
 public:
  explicit Accumulating(const DataParallel* options, bool f16 = false, double factor = 1)
      : net_(Mlp()) {
    graph.fn = [this, factor](const Values& in) -> Values {
      const Value loss = cross_entropy(net_(in[0]), in[1]) * factor;
      loss.backward();
      return {loss};
    };
    graph.add_module("net", net_);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.02, .momentum = 0.9}));
    graph.config.accumulate_calls(kWindow);
    if (options != nullptr) graph.config.data_parallel(*options);
    if (!f16) return;
    graph.config.enable_amp(true, {.dtype = DType::kF16});
    graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 2}));
  }
  static Batch Of(int call) { return BatchOf({8 * Size(), 12}, call); }
  // The own part of the batches of calls first..last - 1, or all of them.
  void Train(int first, int last) {
    for (int call = first; call < last; ++call) Call(graph, OwnPart(Of(call)));
  }
  void TrainOnAll(int first, int last) {
    for (int call = first; call < last; ++call) Call(graph, {Of(call).x, Of(call).y});
  }
  StateDict State() { return *graph.state_dict(); }

  RankGraph graph;

 private:
  Sequential net_;
};

class WindowCheckpoint : public RankFolder {
 protected:
  std::string path() const { return (folder_ / "state").string(); }
};

TEST_F(WindowCheckpoint, ResumesBitForBit) {
  for (const DataParallel& options : {kMean, kShards, kAdds}) {
    for (const bool f16 : {false, true}) {
      if (IsOnCuda() && f16 != options.shard_optimizer) continue;  // an emulated device is slow
      Accumulating whole(&options, f16), stopped(&options, f16), resumed(&options, f16);
      whole.Train(0, 2 * kWindow + 1);
      stopped.Train(0, 2);
      ASSERT_TRUE(stopped.graph.save_checkpoint(path()).ok());
      ASSERT_TRUE(resumed.graph.load_checkpoint(path()).ok());
      EXPECT_EQ(resumed.graph.accumulated_micro_batches(), 2);
      resumed.Train(2, 2 * kWindow + 1);
      // The sums of the third window, too, which differ by rank.
      ExpectSameBits(resumed.State(), whole.State());
      stopped.Train(2, 2 * kWindow + 1);
      ExpectSameBits(stopped.State(), whole.State());
      // Also into a graph that has sums of its own by now.
      ASSERT_TRUE(resumed.graph.load_checkpoint(path()).ok());
      resumed.Train(2, 2 * kWindow + 1);
      ExpectSameBits(resumed.State(), whole.State());
    }
  }
}

TEST_F(WindowCheckpoint, HasTheSumsOfAllRanksInTheirOrder) {
  Accumulating model(&kMean);
  model.Train(0, 3);
  const std::string name = "optimizer0.net.0.weight.grad_sum";
  const Tensor own = model.State().at(name);
  ASSERT_TRUE(model.graph.save_checkpoint(path()).ok());
  const auto file = runtime::ReadCheckpoint(path());
  ASSERT_TRUE(file.ok()) << file.status();
  const Tensor all = file->tensors.at(name);
  EXPECT_EQ(all.shape(), Shape({Size(), own.shape()[0], own.shape()[1]}));
  bool same = true;
  for (int64_t i = 0; i < own.num_elements(); ++i) {
    EXPECT_EQ(all.at(Rank() * own.num_elements() + i), own.at(i));
    same = same && all.at(i) == all.at(own.num_elements() + i);
  }
  EXPECT_FALSE(same);
  // Between windows there are none.
  model.Train(3, kWindow);
  ASSERT_TRUE(model.graph.save_checkpoint(path()).ok());
  EXPECT_EQ(runtime::ReadCheckpoint(path())->tensors.count(name), 0);
}

// Another number of ranks goes on with the mean, or the sum, of what there was.
TEST_F(WindowCheckpoint, OfAllRanksResumesOnOne) {
  for (const DataParallel& options : {kMean, kAdds}) {
    const bool adds = options.reduction == DataParallel::Reduction::kSum;
    Accumulating together(&options), alone(nullptr, false, adds ? Size() : 1);
    together.Train(0, 2);
    ASSERT_TRUE(together.graph.save_checkpoint(path()).ok());
    together.Train(2, kWindow);
    ASSERT_TRUE(alone.graph.load_checkpoint(path()).ok());
    alone.TrainOnAll(2, kWindow);
    EXPECT_EQ(alone.graph.accumulated_micro_batches(), 0);
    EXPECT_LE(RelativeDistance(together.State(), alone.State()), 1e-6);
  }
}

TEST_F(WindowCheckpoint, OfOneRankResumesOnAll) {
  Accumulating alone(nullptr), together(&kMean);
  alone.TrainOnAll(0, 2);
  if (Rank() == 0) {
    ASSERT_TRUE(alone.graph.save_checkpoint(path()).ok());
  }
  alone.TrainOnAll(2, kWindow);
  ASSERT_TRUE(distributed::Barrier().ok());
  ASSERT_TRUE(together.graph.load_checkpoint(path()).ok());
  together.Train(2, kWindow);
  EXPECT_LE(RelativeDistance(together.State(), alone.State()), 1e-6);
}

// A signature that is new in the middle of a window takes nothing from rank 0.
TEST(Window, GoesOnInACallThatCompiles) {
  Accumulating together(&kMean), alone(nullptr);
  together.Train(0, 2);
  alone.TrainOnAll(0, 2);
  for (int call = 2; call < kWindow; ++call) {
    const Batch batch = BatchOf({4 * Size(), 12}, call);
    Call(together.graph, OwnPart(batch));
    Call(alone.graph, {batch.x, batch.y});
  }
  EXPECT_EQ(together.graph.accumulated_micro_batches(), 0);
  EXPECT_LE(RelativeDistance(together.State(), alone.State()), 1e-6);
}

// Each of two scalers hears of its own gradients, and of those of all ranks: else their scales would differ.
TEST(Window, TellsScalersOfTheGradientsOfAllRanks) {
  Linear layer(12, 10);
  RankGraph graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  const ScalerHandle first = graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  const ScalerHandle second = graph.add_scaler(amp::GradScaler({.init_scale = 8}));
  graph.fn = [&](const Values& in) -> Values {
    const Value logits = layer(in[0]), loss = cross_entropy(logits, in[1]);
    loss.backward();
    (mean(logits) * in[2]).backward({.scaler = second});
    return {loss};
  };
  graph.add_module("layer", layer);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  graph.config.accumulate_calls(2);
  graph.config.data_parallel(kMean);
  for (int call = 0; call < 4; ++call) {
    std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, call));
    const bool overflows = call == 1 && Rank() == 1;
    in.push_back(
        Tensor::Scalar(DType::kF32, overflows ? std::numeric_limits<double>::infinity() : 1));
    Call(graph, in);
    if (call % 2 == 0) continue;
    EXPECT_EQ(graph.last_step_skipped(), call == 1);
    EXPECT_EQ(first.scale(), 1024);
    EXPECT_EQ(second.scale(), 4);
  }
  ExpectSameOnAllRanks(*graph.state_dict());
}

TEST(Window, MustBeOnAllRanks) {
  Accumulating one(&kMean), other(&kMean);
  one.Train(0, 2);
  const StateDict state = one.State();
  if (Rank() == 0) {
    ASSERT_TRUE(other.graph.load_state_dict(state).ok());
  }
  EXPECT_THAT(Message(CallStatus(other.graph, OwnPart(Accumulating::Of(2)))),
              HasSubstr("rank 1: graph @" + other.graph.name() +
                        ": accumulated_micro_batches(): 0, of rank 0 2; expected"));
  // Each rank's own state dictionary has its own sums.
  ASSERT_TRUE(other.graph.load_state_dict(state).ok());
  other.Train(2, kWindow);
  one.Train(2, kWindow);
  ExpectSameBits(other.State(), one.State());
}

}  // namespace
}  // namespace halftone::nn
