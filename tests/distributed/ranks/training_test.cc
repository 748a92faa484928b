// Ranks that train one model together: the same as one rank on all of the data.
#include <string>

#include "halftone/core/alloc_counter.h"
#include "halftone/distributed/communicator.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/distributed/ranks/rank_models.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

// An emulated device is slow.
int NumSteps() { return IsOnCuda() ? 10 : 50; }

// Of n ranks with batches of 8, and of one with 8 n: the distance after NumSteps.
double DistanceFromOneRank(Sequential (*net)(), const Shape& image, bool f16,
                           DataParallel options = {.bucket_bytes = 4096}) {
  RankModel together(net(), true, options), alone(net(), false);
  for (FnGraph* graph : {&together.graph, &alone.graph}) {
    if (!f16) continue;
    graph->config.enable_amp(true, {.dtype = DType::kF16});
    graph->set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 20}));
  }
  std::vector<int64_t> dims = {8 * Size()};
  dims.insert(dims.end(), image.dims().begin(), image.dims().end());
  for (int step = 0; step < NumSteps(); ++step) {
    const Batch batch = BatchOf(Shape(dims), step % 5);
    Call(together.graph, OwnPart(batch));
    Call(alone.graph, {batch.x, batch.y});
  }
  ExpectSameOnAllRanks(together.State());
  const double distance = RelativeDistance(together.State(), alone.State());
  if (Rank() == 0) std::printf("distance after %d steps: %.3g\n", NumSteps(), distance);
  return distance;
}

TEST(DataParallel, MlpFollowsOneRank) { EXPECT_LE(DistanceFromOneRank(Mlp, {12}, false), 1e-6); }

TEST(DataParallel, CnnFollowsOneRank) {
  EXPECT_LE(DistanceFromOneRank(Cnn, {1, 8, 8}, false), 1e-6);
}

TEST(DataParallel, MlpInF16FollowsOneRank) {
  EXPECT_LE(DistanceFromOneRank(Mlp, {12}, true), 1e-3);
}

TEST(DataParallel, CnnInF16FollowsOneRank) {
  EXPECT_LE(DistanceFromOneRank(Cnn, {1, 8, 8}, true), 1e-3);
}

// bf16 has 8 bits: a gradient is off by 2^-9 at most, and a parameter by what its gradients are of it.
TEST(DataParallel, GradientsMayTravelInSixteenBits) {
  const double distance = DistanceFromOneRank(Mlp, {12}, false, {.wire_dtype = DType::kBF16});
  EXPECT_LE(distance, 1e-2);
  EXPECT_GT(distance, 1e-6);  // they did
}

TEST(DataParallel, BucketsChangeNoBit) {
  if (IsOnCuda() && Size() > 2)
    GTEST_SKIP() << "NCCL's order of additions depends on where they lie";
  StateDict first;
  for (const int64_t bytes : {1, 4096, 1 << 20}) {
    RankModel model(Mlp(), true, {.bucket_bytes = bytes});
    for (int step = 0; step < 5; ++step)
      Call(model.graph, OwnPart(BatchOf({8 * Size(), 12}, step)));
    if (first.empty()) first = model.State();
    ExpectSameBits(model.State(), first);
  }
}

TEST(DataParallel, RepeatsBitForBit) {
  StateDict first;
  for (int run = 0; run < 2; ++run) {
    RankModel model(Cnn(), true);
    for (int step = 0; step < 10; ++step) {
      Call(model.graph, OwnPart(BatchOf({8 * Size(), 1, 8, 8}, step)));
    }
    if (run == 0) first = model.State();
    ExpectSameBits(model.State(), first);
  }
}

TEST(DataParallel, SumsWhereAskedTo) {
  RankModel mean(Mlp(), true), sum(Mlp(), true, {.reduction = DataParallel::Reduction::kSum});
  const StateDict before = mean.State();
  const Batch batch = BatchOf({8 * Size(), 12}, 0);
  Call(mean.graph, OwnPart(batch));
  Call(sum.graph, OwnPart(batch));
  const StateDict by_mean = mean.State(), by_sum = sum.State();
  for (const auto& [name, value] : before) {
    if (name.find("net.") != 0 || !IsFloat(value.dtype())) continue;
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const double step = by_mean.at(name).at(i) - value.at(i);
      EXPECT_NEAR(by_sum.at(name).at(i) - value.at(i), Size() * step, 1e-6) << name;
    }
  }
}

TEST(DataParallel, AllBeginWithTheParametersOfRankZero) {
  Linear layer(3, 2);
  RankGraph graph;
  graph.fn = [&layer](const Values& in) -> Values {
    const Value loss = mean(layer(in[0]));
    loss.backward();
    return {loss};
  };
  graph.add_module("layer", layer);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0}));
  graph.config.data_parallel();
  ASSERT_TRUE(graph.initialize().ok());
  StateDict own = *graph.state_dict();
  for (int64_t i = 0; i < 6; ++i)
    own["layer.weight"].set(i, 10 * (Rank() + 1) + static_cast<double>(i));
  ASSERT_TRUE(graph.load_state_dict(own).ok());
  Call(graph, {F32({1, 3}, {1, 2, 3})});
  const StateDict state = *graph.state_dict();
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(state.at("layer.weight").at(i), 10 + static_cast<double>(i));
  }
}

TEST(DataParallel, MasksDifferByRankAndNotByRun) {
  std::vector<double> first;
  for (int run = 0; run < 2; ++run) {
    Linear layer(64, 1);
    RankGraph graph;
    graph.fn = [&layer](const Values& in) -> Values {
      const Value kept = dropout(in[0], 0.5);
      mean(layer(kept)).backward();
      return {kept};
    };
    graph.add_module("layer", layer);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
    graph.config.data_parallel();
    const std::vector<double> mask = Call1(graph, {Tensor::Full(DType::kF32, {1, 64}, 1)});
    if (run == 0) first = mask;
    EXPECT_EQ(mask, first);
  }
  std::string bits;
  for (const double kept : first) bits += kept != 0 ? '1' : '0';
  const auto all = distributed::World().Exchange(bits, "test");
  ASSERT_TRUE(all.ok());
  for (int a = 0; a < Size(); ++a) {
    for (int b = 0; b < a; ++b) {
      EXPECT_NE((*all)[static_cast<size_t>(a)], (*all)[static_cast<size_t>(b)]) << a << " " << b;
    }
  }
}

TEST(DataParallel, WindowsReduceOnceAndFollowOneRank) {
  RankModel together(Mlp(), true), alone(Mlp(), false);
  together.graph.config.accumulate_calls(3);
  alone.graph.config.accumulate_calls(3);
  for (int step = 0; step < 12; ++step) {
    const Batch batch = BatchOf({8 * Size(), 12}, step);
    Call(together.graph, OwnPart(batch));
    Call(alone.graph, {batch.x, batch.y});
  }
  EXPECT_LE(RelativeDistance(together.State(), alone.State()), 1e-6);
  // The step of a micro-batch has one exchange, of no gradient; the update has those of all.
  const std::string text = together.graph.compiled_text();
  const size_t update = text.find("_update(");
  const std::string adds = text.substr(0, update);
  EXPECT_EQ(adds.find("all_reduce_start()"), adds.rfind("all_reduce_start("));
  EXPECT_NE(adds.find("all_reduce_start()"), std::string::npos) << adds;
}

TEST(DataParallel, AStepAllocatesNothing) {
  RankModel model(Mlp(), true);
  const std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, 0));
  std::vector<Tensor> out = Call(model.graph, in);
  Call(model.graph, in);
  const AllocationCounter counter;
  ASSERT_TRUE(model.graph.Run(in, absl::MakeSpan(out)).ok());
  EXPECT_EQ(counter.count(), 0);
}

// Behind a wait the profile has what was not hidden behind the backward pass.
TEST(DataParallel, ProfilesAndCostsItsExchanges) {
  RankModel model(Mlp(), true);
  const std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, 0));
  Call(model.graph, in);
  int starts = 0, waits = 0;
  model.graph.set_profile([&](const ir::Node& node, const kernels::Kernel& kernel, double seconds) {
    const std::string how = IsOnCuda() ? "cuda:native:" : "cpu:exchange:";
    starts += kernel.name() == how + "all_reduce_start" ? 1 : 0;
    waits += kernel.name() == how + "all_reduce_wait" ? 1 : 0;
    if (kernel.name().find("cpu:exchange:") == 0) {
      EXPECT_GT(ir::CostOf(node).bytes, 0);
      EXPECT_GE(seconds, 0);
    }
  });
  Call(model.graph, in);
  // 10 x 24 + 10, 24 x 48 + 24 (4704 bytes), 48 x 12 + 48: buckets of at most 4096 bytes.
  EXPECT_EQ(starts, waits);
  EXPECT_GE(starts, 3);
  model.graph.set_profile(nullptr);
}

}  // namespace
}  // namespace halftone::nn
