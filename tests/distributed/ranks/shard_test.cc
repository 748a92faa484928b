// Ranks that keep the optimizers' state of some of the parameters each: the same bits as ranks that keep all.
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "halftone/distributed/communicator.h"
#include "halftone/tests/distributed/ranks/rank_folder.h"
#include "halftone/tests/distributed/ranks/rank_models.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

constexpr DataParallel kWhole = {.bucket_bytes = 4096};
constexpr DataParallel kSharded = {.bucket_bytes = 4096, .shard_optimizer = true};

// Adds optimizers and what else a case wants to a graph; the net's parameters are those of the graph.
using Recipe = std::function<void(FnGraph&)>;

// An emulated device is slow. Windows, and a scale that grows by the third step, are in them.
int NumSteps() { return IsOnCuda() ? 4 : 8; }

// A classifier, as RankModel, whose optimizers are the case's.
class Trained {
 public:
  Trained(const Recipe& recipe, const DataParallel& options) : net_(Mlp()) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = cross_entropy(net_(in[0]), in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_module("net", net_);
    recipe(graph);
    graph.config.data_parallel(options);
  }
  void Step(int step) { Call(graph, OwnPart(BatchOf({8 * Size(), 12}, step % 5))); }
  StateDict State() {
    const auto state = graph.state_dict();
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : StateDict();
  }

  RankGraph graph;

 private:
  Sequential net_;
};

void InF16(FnGraph& graph) {
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 3}));
}

struct ShardCase {
  const char* name;
  Recipe recipe;
};

const std::vector<ShardCase>& ShardCases() {
  static const auto* const cases = new std::vector<ShardCase>{
      {"sgd", [](FnGraph& g) { g.add_optimizer(optim::SGD(g.parameters(), {.lr = 0.02})); }},
      {"momentum",
       [](FnGraph& g) {
         g.add_optimizer(optim::SGD(g.parameters(), {.lr = 0.02, .momentum = 0.9}));
       }},
      {"momentum_f16_clipped",
       [](FnGraph& g) {
         InF16(g);
         g.add_optimizer(
             optim::SGD(g.parameters(), {.lr = 0.02, .momentum = 0.9, .clip_norm = 0.1}));
       }},
      {"adam", [](FnGraph& g) { g.add_optimizer(optim::Adam(g.parameters(), {.lr = 0.01})); }},
      {"adamw_clipped_with_averages",
       [](FnGraph& g) {
         g.add_optimizer(optim::AdamW(
             g.parameters(), {.lr = 0.01, .clip_norm = 0.05, .ema = optim::Ema{.decay = 0.9}}));
       }},
      {"adamw_f16_in_windows",
       [](FnGraph& g) {
         InF16(g);
         g.config.accumulate_calls(2);
         g.config.clip_grad_norm = 0.1;
         g.add_optimizer(optim::AdamW(g.parameters(), {.lr = 0.01}));
       }},
      {"lamb_of_whole_layers",
       [](FnGraph& g) { g.add_optimizer(optim::LAMB(g.parameters(), {.lr = 0.01})); }},
      {"two_optimizers_and_groups",
       [](FnGraph& g) {
         const ParameterSplit split = g.split_parameters({"*.bias"});
         const optim::ParameterList first(split.rest.begin(), split.rest.begin() + 1);
         const optim::ParameterList others(split.rest.begin() + 1, split.rest.end());
         g.config.clip_grad_norm = 0.1;
         g.add_optimizer(optim::SGD(first, {.lr = 0.02, .momentum = 0.9}));
         g.add_optimizer(optim::AdamW({{others, {}}, {split.matching, {.weight_decay = 0}}},
                                      {.lr = 0.01, .weight_decay = 0.1}));
       }},
      {"kept_in_bf16",
       [](FnGraph& g) {
         g.add_optimizer(optim::AdamW(g.parameters(),
                                      {.lr = 0.01, .weights = optim::Weights::kBF16Stochastic}));
       }},
  };
  return *cases;
}

class Shards : public ::testing::TestWithParam<ShardCase> {};

TEST_P(Shards, HaveTheBitsOfWholeState) {
  Trained whole(GetParam().recipe, kWhole), sharded(GetParam().recipe, kSharded);
  for (int step = 0; step < NumSteps(); ++step) {
    whole.Step(step);
    sharded.Step(step);
  }
  ExpectSameBits(sharded.State(), whole.State());
  ExpectSameOnAllRanks(sharded.State());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Shards, ::testing::ValuesIn(ShardCases()),
                         [](const auto& info) { return std::string(info.param.name); });

const Recipe kAdamW = [](FnGraph& g) {
  g.add_optimizer(optim::AdamW(g.parameters(),
                               {.lr = 0.01, .clip_norm = 0.1, .ema = optim::Ema{.decay = 0.9}}));
};

// Bytes of the variables of a compiled step that are of as many elements as a parameter and belong to an optimizer.
int64_t StateBytes(const FnGraph& graph) {
  int64_t bytes = 0;
  for (const ir::Variable& variable : graph.compiled_graph()->variables()) {
    if (variable.kind == ir::VariableKind::kOptimizer && variable.type.shape.rank() > 0) {
      bytes += variable.type.num_bytes();
    }
  }
  return bytes;
}

TEST(ShardedState, IsAsManyTimesLessAsThereAreRanks) {
  // 8 layers of 24 x 24 weights and 24 biases: two states of f32 and an average each.
  const int64_t all = 3 * 4 * 8 * (24 * 24 + 24);
  std::deque<Linear> layers;
  RankGraph graph;
  graph.fn = [&](const Values& in) -> Values {
    Value x = in[0];
    for (Linear& layer : layers) x = layer(x);
    mean(x).backward();
    return {x};
  };
  for (size_t i = 0; i < 8; ++i) {
    graph.add_module(Concat("layer", i), layers.emplace_back(24, 24));
  }
  kAdamW(graph);
  graph.config.data_parallel(kSharded);
  Call(graph, {Tensor::Full(DType::kF32, {2, 24}, 1)});
  EXPECT_EQ(StateBytes(graph), all / Size());
  const auto sum = distributed::Sum(static_cast<double>(StateBytes(graph)));
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(*sum, static_cast<double>(all));
  graph.config.data_parallel(kWhole);
  Call(graph, {Tensor::Full(DType::kF32, {2, 24}, 1)});
  EXPECT_EQ(StateBytes(graph), all);
}

TEST(ShardedState, BucketsAndWiresChangeItAsTheyChangeWholeState) {
  for (const int64_t bytes : {1, 1 << 20}) {
    for (const DType wire : {DType::kF32, DType::kBF16}) {
      DataParallel options{.bucket_bytes = bytes, .wire_dtype = wire};
      Trained whole(kAdamW, options);
      options.shard_optimizer = true;
      Trained sharded(kAdamW, options);
      for (int step = 0; step < 3; ++step) {
        whole.Step(step);
        sharded.Step(step);
      }
      ExpectSameBits(sharded.State(), whole.State());
    }
  }
}

TEST(ShardedState, OverflowOnOneRankSkipsTheStepOnAll) {
  const Recipe recipe = [](FnGraph& g) {
    InF16(g);
    kAdamW(g);
  };
  Trained whole(recipe, kWhole), sharded(recipe, kSharded);
  for (int step = 0; step < 4; ++step) {
    std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, step));
    if (step == 2 && Rank() == 1) in[0].set(3, std::numeric_limits<double>::infinity());
    Call(whole.graph, in);
    Call(sharded.graph, in);
    EXPECT_EQ(sharded.graph.last_step_skipped(), step == 2);
    EXPECT_EQ(sharded.graph.grad_scaler().scale(), whole.graph.grad_scaler().scale());
    EXPECT_EQ(sharded.graph.first_nonfinite_param(), whole.graph.first_nonfinite_param());
    EXPECT_EQ(sharded.graph.grad_norm(), whole.graph.grad_norm());
  }
  ExpectSameBits(sharded.State(), whole.State());
  ExpectSameOnAllRanks(sharded.State());
}

TEST(ShardedState, FaultOnOneRankLeavesItOnAll) {
  Trained model(kAdamW, kSharded);
  model.Step(0);
  StateDict before = model.State();
  std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, 1));
  if (Rank() == 1) in[1].set(5, 10);
  EXPECT_THAT(Message(StepStatus(model.graph, in)), ::testing::StartsWith("rank 1: "));
  StateDict after = model.State();
  before.erase("run_count");
  after.erase("run_count");
  ExpectSameBits(after, before);
  model.Step(2);
  ExpectSameOnAllRanks(model.State());
}

// An average is in the place of each parameter, also of those that another rank averages.
TEST(ShardedState, AveragesAreThoseOfAllRanks) {
  Trained whole(kAdamW, kWhole), sharded(kAdamW, kSharded);
  std::vector<std::vector<double>> losses;
  for (Trained* model : {&whole, &sharded}) {
    for (int step = 0; step < 3; ++step) model->Step(step);
    const EmaScope scope(model->graph);
    ASSERT_TRUE(scope.status().ok()) << scope.status();
    model->graph.eval();
    losses.push_back(Call1(model->graph, OwnPart(BatchOf({8 * Size(), 12}, 1))));
    model->graph.train();
  }
  EXPECT_EQ(losses[0], losses[1]);
  ExpectSameBits(sharded.State(), whole.State());
}

TEST(ShardedState, IsGivenUpAndTakenWithoutALoss) {
  Trained whole(kAdamW, kWhole), changing(kAdamW, kSharded);
  for (int step = 0; step < 9; ++step) {
    whole.Step(step);
    changing.graph.config.data_parallel(step / 3 % 2 == 0 ? kSharded : kWhole);
    changing.Step(step);
  }
  ExpectSameBits(changing.State(), whole.State());
}

TEST(ShardedState, IsNotTrainedAlone) {
  Trained model(kAdamW, kSharded);
  model.Step(0);
  FnGraph& graph = model.graph;
  graph.config = GraphConfig();
  const absl::Status status = CallStatus(graph, OwnPart(BatchOf({8 * Size(), 12}, 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("expected config.data_parallel also in this call"));
}

TEST(ShardedState, IsComparedBetweenRanks) {
  Trained model(kAdamW, Rank() == 1 ? kSharded : kWhole);
  const absl::Status status = CallStatus(model.graph, OwnPart(BatchOf({8 * Size(), 12}, 1)));
  EXPECT_EQ(Message(status),
            Concat("rank 1: graph @", model.graph.name(),
                   ": data_parallel.shard_optimizer: true, of rank 0 false; expected the same "
                   "program on all ranks"));
}

TEST(ShardedState, TakesOneScalerForAllLosses) {
  Linear layer(12, 10);
  RankGraph graph;
  const ScalerHandle second = graph.add_scaler(amp::GradScaler({.init_scale = 8}));
  graph.fn = [&](const Values& in) -> Values {
    const Value loss = cross_entropy(layer(in[0]), in[1]);
    loss.backward();
    mean(layer(in[0])).backward({.scaler = second});
    return {loss};
  };
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  graph.add_module("layer", layer);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  graph.config.data_parallel(kSharded);
  const absl::Status status = CallStatus(graph, OwnPart(BatchOf({8 * Size(), 12}, 1)));
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("expected one scaler"));
}

class ShardedCheckpoint : public RankFolder {};

// Written by sharded or whole ranks, read by either, and by a rank that trains alone.
TEST_F(ShardedCheckpoint, IsWholeAndResumesEitherWay) {
  for (const bool writes_shards : {true, false}) {
    const std::string path = (folder_ / (writes_shards ? "sharded" : "whole")).string();
    Trained model(kAdamW, writes_shards ? kSharded : kWhole);
    for (int step = 0; step < 3; ++step) model.Step(step);
    const StateDict want = model.State();
    ASSERT_TRUE(model.graph.save_checkpoint(path).ok());
    EXPECT_FALSE(std::filesystem::exists(path + ".previous"));
    const auto written = runtime::ReadCheckpoint(path);
    ASSERT_TRUE(written.ok()) << written.status();
    ExpectSameBits(written->tensors, want);
    Trained alone(kAdamW, kWhole);
    alone.graph.config = GraphConfig();
    ASSERT_TRUE(alone.graph.load_checkpoint(path).ok());
    Call(alone.graph, OwnPart(BatchOf({8 * Size(), 12}, 3)));  // takes all of it
    ASSERT_TRUE(alone.graph.load_checkpoint(path).ok());
    ExpectSameBits(alone.State(), want);
    model.Step(3);
    for (const DataParallel& options : {kSharded, kWhole}) {
      Trained resumed(kAdamW, options);
      ASSERT_TRUE(resumed.graph.load_checkpoint(path).ok());
      resumed.Step(3);
      ExpectSameBits(resumed.State(), model.State());
      // Also into a graph that has state of its own by now.
      resumed.Step(4);
      ASSERT_TRUE(resumed.graph.load_checkpoint(path).ok());
      ExpectSameBits(resumed.State(), want);
      resumed.Step(3);
      ExpectSameBits(resumed.State(), model.State());
    }
  }
}

TEST_F(ShardedCheckpoint, ThatCannotBeWrittenIsAnErrorOfAll) {
  Trained model(kAdamW, kSharded);
  model.Step(0);
  const absl::Status saved = model.graph.save_checkpoint((folder_ / "none" / "state").string());
  EXPECT_TRUE(absl::IsNotFound(saved)) << saved;
  EXPECT_THAT(Message(saved), ::testing::StartsWith("rank 0: "));
}

}  // namespace
}  // namespace halftone::nn
