// Module::recompute and GraphConfig::memory_budget: less working memory, and not a bit of a
// training differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::halftone::testing::RandomTensor;
using ::testing::HasSubstr;
using ::testing::Not;

// A convolution with batch norm, dropout, and linear layers with layer norm.
class RecomputeBlock : public Module {
 public:
  RecomputeBlock() : conv_(8, 8, 3, {.padding = 1}), norm_(8), drop_(0.3) {
    register_module("conv", conv_);
    register_module("norm", norm_);
    register_module("drop", drop_);
  }
  Value forward(const Value& x) override { return x + gelu(drop_(norm_(conv_(x)))); }

 private:
  Conv2d conv_;
  BatchNorm2d norm_;
  Dropout drop_;
};

class RecomputeNet : public FnGraph {
 public:
  explicit RecomputeNet(std::optional<DType> low = {}) : first(3, 8, 1), head(8 * 144, 5) {
    for (int i = 0; i < 4; ++i) blocks.emplace<RecomputeBlock>();
    add_module("first", first);
    add_module("blocks", blocks);
    add_module("head", head);
    add_optimizer(optim::Adam(parameters(), {.lr = 1e-2, .clip_norm = 1}));
    if (low.has_value()) config.enable_amp(true, {.dtype = low});
    fn = [this](const Values& in) -> Values {
      Value h = first(in[0]);
      for (size_t i = 0; i < blocks.size(); ++i) h = blocks[i](h);
      const Value logits = head(flatten(h));
      const Value loss = cross_entropy(logits, in[1]);
      loss.backward();
      return {loss, logits};
    };
  }
  static std::vector<Tensor> Batch(int step) {
    Tensor y = Tensor::Empty(DType::kI64, {16});
    for (int i = 0; i < 16; ++i) y.set(i, (i + step) % 5);
    return {RandomTensor(DType::kF32, {16, 3, 12, 12}, 7 + static_cast<uint64_t>(step)), y};
  }

  Conv2d first;
  ModuleList blocks;
  Linear head;
};

class Recompute : public ::testing::TestWithParam<std::optional<DType>> {};

INSTANTIATE_TEST_SUITE_P(DTypes, Recompute,
                         ::testing::Values(std::nullopt, DType::kBF16, DType::kF16),
                         [](const auto& info) {
                           return std::string(info.param.has_value() ? Name(*info.param) : "f32");
                         });

TEST_P(Recompute, ModulesKeepEveryBitOfATraining) {
  RecomputeNet plain(GetParam()), less(GetParam());
  less.blocks.recompute();  // each block called is one
  const StepsTaken want = TrainSteps(plain, RecomputeNet::Batch);
  const StepsTaken got = TrainSteps(less, RecomputeNet::Batch);
  ExpectSameBits(got, want);
  EXPECT_LT(got.arena_bytes, want.arena_bytes * 8 / 10);
  EXPECT_THAT(less.compiled_text(), HasSubstr("dropout.again = dropout"));
  EXPECT_THAT(plain.compiled_text(), Not(HasSubstr(".again")));
}

TEST_P(Recompute, ABudgetIsMetAndKeepsEveryBitOfATraining) {
  RecomputeNet plain(GetParam()), less(GetParam());
  const StepsTaken want = TrainSteps(plain, RecomputeNet::Batch);
  less.config.memory_budget = static_cast<int64_t>(want.arena_bytes * 7 / 10);
  const StepsTaken got = TrainSteps(less, RecomputeNet::Batch);
  ExpectSameBits(got, want);
  EXPECT_LE(got.arena_bytes, want.arena_bytes * 7 / 10);
  EXPECT_THAT(less.compiled_text(), HasSubstr(".again = "));
}

TEST(MemoryBudget, TheSmallestThatWasFoundIsNamedAndMet) {
  RecomputeNet net;
  net.config.memory_budget = 1000;
  const absl::Status status = CallStatus(net, RecomputeNet::Batch(0));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const std::string message = Message(status), before = "and no less than ";
  ASSERT_THAT(message, HasSubstr("memory_budget: 1000 bytes; the step takes "));
  ASSERT_THAT(message, HasSubstr(before));
  const int64_t smallest = std::atoll(message.c_str() + message.find(before) + before.size());
  net.config.memory_budget = smallest;
  EXPECT_TRUE(CallStatus(net, RecomputeNet::Batch(0)).ok());
  EXPECT_LE(static_cast<int64_t>(net.arena_bytes()), smallest);
}

TEST(CheapValues, AreHeldWhereTheProgramSaysSo) {
  RecomputeNet plain, held;
  held.config.recompute_cheap_values = false;
  const StepsTaken want = TrainSteps(plain, RecomputeNet::Batch);
  const StepsTaken got = TrainSteps(held, RecomputeNet::Batch);
  ExpectSameBits(got, want);
  EXPECT_THAT(held.traced_text(), HasSubstr("hold_cheap_values()"));
  EXPECT_THAT(held.compiled_text(), Not(HasSubstr("hold_cheap_values")));
  EXPECT_THAT(plain.traced_text(), Not(HasSubstr("hold_cheap_values")));
  EXPECT_THAT(plain.compiled_text(), Not(HasSubstr(".again"))) << "too small to pay";
}

TEST(MemoryBudget, BelowZeroIsAnError) {
  RecomputeNet net;
  net.config.memory_budget = -3;
  EXPECT_THAT(Message(CallStatus(net, RecomputeNet::Batch(0))),
              HasSubstr("memory_budget: bytes is -3; expected 1 or more"));
}

// A wish compiles its own step, and finds it again.
TEST(RecomputeCache, AWishIsPartOfTheKey) {
  RecomputeNet net;
  Call(net, RecomputeNet::Batch(0));
  EXPECT_EQ(net.builds, 1);
  net.blocks[1].recompute();
  EXPECT_TRUE(net.blocks[1].recomputes());
  Call(net, RecomputeNet::Batch(0));
  EXPECT_EQ(net.builds, 2);
  EXPECT_THAT(net.compiled_text(), HasSubstr(".again"));
  net.blocks[1].recompute(false);
  Call(net, RecomputeNet::Batch(0));
  EXPECT_EQ(net.builds, 2);
  EXPECT_THAT(net.compiled_text(), Not(HasSubstr(".again")));
  net.eval();
  net.blocks[1].recompute();
  Call(net, RecomputeNet::Batch(0));
  EXPECT_THAT(net.compiled_text(), Not(HasSubstr(".again")));
}

TEST(RecomputeCache, NotInsideBuild) {
  RecomputeNet net;
  const auto build = net.fn;
  net.fn = [&](const Values& in) {
    net.head.recompute();
    return build(in);
  };
  EXPECT_THAT(Message(CallStatus(net, RecomputeNet::Batch(0))),
              HasSubstr("recompute() was called inside build()"));
}

}  // namespace
}  // namespace halftone::nn
