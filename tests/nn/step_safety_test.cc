// What a step must never do: allocate, or change variables when it fails.
#include <gtest/gtest.h>

#include "halftone/core/alloc_counter.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/allocation_hook.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Setup {
  bool scaler = false;
  bool amp = false;
};

class StepAllocations : public ::testing::TestWithParam<Setup> {};

TEST_P(StepAllocations, NoneAfterTheFirstRun) {
  if (!testing::AllocationHookInstalled()) GTEST_SKIP() << "this build does not count allocations";
  Conv2d conv(1, 4, 3, {.padding = 1});
  BatchNorm2d norm(4);
  Linear fc(4 * 4 * 4, 10);
  FnGraph graph([&](const Values& in) -> Values {
    const Value h = max_pool2d(relu(norm(conv(in[0]))), 2);
    const Value logits = fc(dropout(flatten(h), 0.25));
    const Value loss = cross_entropy(logits, in[1]);
    loss.backward();
    return {loss, logits};
  });
  graph.add_module("conv", conv);
  graph.add_module("norm", norm);
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::AdamW(graph.parameters(),
                                   {.lr = 1e-2, .lr_schedule = optim::StepLR(10), .clip_norm = 1}));
  if (GetParam().scaler) graph.set_grad_scaler(amp::GradScaler({.max_consecutive_skips = 5}));
  graph.config.enable_amp(GetParam().amp, {.dtype = DType::kBF16});

  const std::vector<Tensor> in = {testing::RandomTensor(DType::kF32, {6, 1, 8, 8}, 1),
                                  testing::RandomTensor(DType::kI64, {6}, 2, 0, 10)};
  std::vector<Tensor> out = {Tensor::Zeros(DType::kF32, {}), Tensor::Zeros(DType::kF32, {6, 10})};
  ASSERT_TRUE(graph.Run(in, absl::MakeSpan(out)).ok());
  const AllocationCounter counter;
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(graph.Run(in, absl::MakeSpan(out)).ok());
  EXPECT_EQ(counter.count(), 0);
}

INSTANTIATE_TEST_SUITE_P(Setups, StepAllocations,
                         ::testing::Values(Setup{false, false}, Setup{true, false},
                                           Setup{true, true}),
                         [](const auto& test) {
                           return std::string(test.param.scaler ? "scaler" : "plain") +
                                  (test.param.amp ? "_amp" : "");
                         });

TEST(Faults, LabelOutOfRangeChangesNothingAndNamesTheLine) {
  Linear fc(2, 3);
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    const Value loss = cross_entropy(fc(in[0]), in[1]);
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  OptimizerHandle optimizer = graph.add_optimizer(optim::Adam(graph.parameters()));
  ScalerHandle scaler = graph.set_grad_scaler(amp::GradScaler());
  const Tensor x = F32({2, 2}, {1, 2, 3, 4});
  Call(graph, {x, I64({2}, {0, 2})});
  StateDict before = *graph.state_dict();
  for (const double label : {3.0, -1.0}) {
    const absl::Status status = CallStatus(graph, {x, I64({2}, {1, label})});
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(Message(status), HasSubstr("step_safety_test.cc:" + std::to_string(line) + ": "));
    EXPECT_THAT(Message(status), HasSubstr("cross_entropy"));
    EXPECT_THAT(Message(status), HasSubstr(std::to_string(static_cast<int>(label))));
    EXPECT_THAT(Message(status), HasSubstr("expected 0..2"));
    EXPECT_TRUE(graph.last_step_skipped());
  }
  StateDict after = *graph.state_dict();
  EXPECT_EQ(graph.run_count(), 3u) << "random masks move on";
  before.erase("run_count");
  after.erase("run_count");
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, value] : before) EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
  Call(graph, {x, I64({2}, {0, 2})});
  EXPECT_FALSE(graph.last_step_skipped());
  EXPECT_EQ(optimizer.applied_steps(), 2);
  EXPECT_EQ(scaler.total_steps(), 2);
}

TEST(Faults, BuffersStayToo) {
  // The statistics are committed, but the fault comes after they are computed.
  BatchNorm2d norm(1);
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = norm(in[0]);
    return {gather(y, in[1])};
  });
  graph.add_module("norm", norm);
  const Tensor x = F32({2, 1}, {1, 3});
  EXPECT_EQ(CallStatus(graph, {x, I64({1}, {2})}).code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(norm.running_mean.value().ToVector(), ElementsAre(0));
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 0);
  Call(graph, {x, I64({1}, {1})});
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 1);
}

TEST(Faults, EmbeddingIndex) {
  Embedding table(4, 2);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(table(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("table", table);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(graph.initialize().ok());
  const Tensor before = table.weight.value();
  const absl::Status status = CallStatus(graph, {I64({3}, {0, 4, 1})});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("expected 0..3"));
  EXPECT_TRUE(BitEqual(table.weight.value(), before));
}

}  // namespace
}  // namespace halftone::nn
