// Batch norms whose statistics are those of all ranks' samples: the same as of one rank that has all.
#include "halftone/examples/models/resnet.h"
#include "halftone/tests/distributed/ranks/rank_models.h"

namespace halftone::nn {
namespace {

// A network with its loss and optimizer, on all ranks together or on one.
struct NormModel {
  NormModel(Module& net, bool together, double lr) {
    graph.fn = [&net](const Values& in) -> Values {
      const Value loss = cross_entropy(net(in[0]), in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_module("net", net);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = lr}));
    if (together) graph.config.data_parallel({.sync_batch_norm = true});
  }
  RankGraph graph;
};

TEST(SyncBatchNorm, FollowsOneRankThatHasAllSamples) {
  const auto net = [] {
    return Sequential(Conv2d(1, 6, 3), BatchNorm2d(6), ReLU(), Flatten(), Linear(6 * 36, 16),
                      BatchNorm1d(16), ReLU(), Linear(16, 10));
  };
  Sequential own = net(), whole = net();
  NormModel together(own, true, 0.05), alone(whole, false, 0.05);
  const int steps = IsOnCuda() ? 4 : 20;  // an emulated device is slow
  for (int step = 0; step < steps; ++step) {
    const Batch batch = BatchOf({6 * Size(), 1, 8, 8}, step);
    Call(together.graph, OwnPart(batch));
    Call(alone.graph, {batch.x, batch.y});
  }
  const StateDict got = *together.graph.state_dict(), want = *alone.graph.state_dict();
  const double distance = RelativeDistance(got, want);  // running statistics, too
  if (Rank() == 0) std::printf("distance after %d steps: %.3g\n", steps, distance);
  EXPECT_LE(distance, 1e-5);
  ExpectSameOnAllRanks(got);
}

TEST(SyncBatchNorm, Resnet18StepsAsOneRankDoes) {
  if (Size() != 2) GTEST_SKIP() << "takes seconds: one number of ranks is enough";
  if (IsOnCuda()) GTEST_SKIP() << "takes minutes on an emulated device";
  models::ResNet own(18, 10, 1), whole(18, 10, 1);
  NormModel together(own, true, 0.05), alone(whole, false, 0.05);
  // The deepest norms are of one number for each image.
  const Batch batch = BatchOf({16 * Size(), 1, 28, 28}, 0);
  Call(together.graph, OwnPart(batch));
  Call(alone.graph, {batch.x, batch.y});
  const double distance = RelativeDistance(*together.graph.state_dict(), *alone.graph.state_dict());
  if (Rank() == 0) std::printf("resnet18, distance after a step: %.3g\n", distance);
  EXPECT_LE(distance, 1e-5);
}

// Each rank's samples lie around another number, far from 0: f64's formula for the biased variance of all.
TEST(SyncBatchNorm, LosesNothingToALargeMean) {
  constexpr int64_t kRows = 64;
  BatchNorm1d norm(1);
  RankGraph graph;
  graph.fn = [&norm](const Values& in) -> Values {
    const Value y = norm(in[0]);
    mean(y * y * y).backward();
    return {y};
  };
  graph.add_module("norm", norm);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0}));
  graph.config.data_parallel({.sync_batch_norm = true});
  const auto sample = [](int rank, int64_t i) {
    return 4096 + rank + static_cast<double>(i % 8) / 8;  // exact in f32
  };
  Tensor x = Tensor::Empty(DType::kF32, {kRows, 1});
  for (int64_t i = 0; i < kRows; ++i) x.set(i, sample(Rank(), i));
  const std::vector<double> y = Call1(graph, {x});
  double mean = 0, var = 0;
  const double n = static_cast<double>(kRows) * Size();
  for (int r = 0; r < Size(); ++r) {
    for (int64_t i = 0; i < kRows; ++i) mean += sample(r, i) / n;
  }
  for (int r = 0; r < Size(); ++r) {
    for (int64_t i = 0; i < kRows; ++i) var += std::pow(sample(r, i) - mean, 2) / n;
  }
  ASSERT_EQ(y.size(), static_cast<size_t>(kRows));
  // A mean of 4096 is rounded to 2^-12.
  for (int64_t i = 0; i < kRows; ++i) {
    const double want = (sample(Rank(), i) - mean) / std::sqrt(var + 1e-5);
    EXPECT_NEAR(y[static_cast<size_t>(i)], want, 1e-3);
  }
  const double running = (*graph.state_dict()).at("norm.running_var").at(0);
  EXPECT_NEAR(running, 0.9 + 0.1 * var * n / (n - 1), 1e-4);
}

TEST(SyncBatchNorm, OfAFailedRankFailsOnAll) {
  Sequential own(Linear(12, 16), BatchNorm1d(16), ReLU(), Linear(16, 10));
  NormModel model(own, true, 0.05);
  Call(model.graph, OwnPart(BatchOf({8 * Size(), 12}, 0)));
  const StateDict before = *model.graph.state_dict();
  std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, 1));
  if (Rank() == 1) in[1].set(0, 10);
  EXPECT_THAT(Message(StepStatus(model.graph, in)), ::testing::StartsWith("rank 1: "));
  const StateDict after = *model.graph.state_dict();
  for (const auto& [name, value] : before) {
    if (name != "run_count") {
      EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
    }
  }
  Call(model.graph, OwnPart(BatchOf({8 * Size(), 12}, 2)));
  ExpectSameOnAllRanks(*model.graph.state_dict());
}

}  // namespace
}  // namespace halftone::nn
