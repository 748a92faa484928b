// 16-bit copies of weights on the host: kept from step to step, and written by the updates.
#include <set>

#include "halftone/kernels/kernel.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using nn::Call;

enum class KeptRule : uint8_t { kSgd, kAdam, kLamb };

// Two layers whose weights end in the middle of a vector.
class KeptNet : public nn::FnGraph {
 public:
  KeptNet(KeptRule rule, DType low) : fc1_(37, 67), fc2_(67, 3) {
    add_module("fc1", fc1_);
    add_module("fc2", fc2_);
    config.enable_amp(true, {.dtype = low});
    switch (rule) {
      case KeptRule::kSgd:
        add_optimizer(optim::SGD(parameters(), {.lr = 0.1, .momentum = 0.9}));
        break;
      case KeptRule::kAdam:
        add_optimizer(optim::Adam(parameters(), {.lr = 0.01}));
        break;
      case KeptRule::kLamb:
        add_optimizer(optim::LAMB(parameters(), {.lr = 0.01}));
        break;
    }
    fn = [this](const nn::Values& in) -> nn::Values {
      const nn::Value loss = nn::cross_entropy(fc2_(nn::relu(fc1_(in[0]))), in[1]);
      loss.backward();
      return {loss};
    };
    set_profile([this](const ir::Node& node, const kernels::Kernel&, double) {
      if (node.op().name != "cast" || !IsLow(node.output_type().dtype)) return;
      casts_of_weights += node.input(0).node->op().name == "variable" ? 1 : 0;
    });
  }

  // The casts of weights in one step.
  int Step(uint64_t seed) {
    casts_of_weights = 0;
    Call(*this, {RandomTensor(DType::kF32, {5, 37}, seed), nn::I64({5}, {0, 1, 2, 1, 0})});
    return casts_of_weights;
  }

  int casts_of_weights = 0;

 private:
  nn::Linear fc1_, fc2_;
};

class KeptWeights : public ::testing::TestWithParam<std::tuple<KeptRule, DType>> {
 protected:
  std::unique_ptr<KeptNet> Make() const {
    return std::make_unique<KeptNet>(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

TEST_P(KeptWeights, OnlyTheFirstStepCastsThem) {
  const auto net = Make();
  EXPECT_GE(net->Step(1), 2);  // both weights, and biases as far as they are cast
  for (uint64_t seed = 2; seed < 5; ++seed) EXPECT_EQ(net->Step(seed), 0) << seed;
  // An evaluation reads the same copies.
  net->eval();
  EXPECT_EQ(net->Step(5), 0);
  net->train();
  EXPECT_EQ(net->Step(6), 0);
}

// A graph that is given its own state before every step casts from the f32 weights each time.
TEST_P(KeptWeights, AreTheCastsOfTheWeightsBitForBit) {
  const auto kept = Make(), cast = Make();
  ASSERT_TRUE(cast->load_state_dict(*kept->state_dict()).ok());
  for (uint64_t seed = 1; seed < 6; ++seed) {
    kept->Step(seed);
    EXPECT_GE(cast->Step(seed), 2);
    const auto a = kept->state_dict(), b = cast->state_dict();
    for (const auto& [name, value] : *a) EXPECT_TRUE(BitEqual(value, b->at(name))) << name;
    ASSERT_TRUE(cast->load_state_dict(*b).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, KeptWeights,
                         ::testing::Combine(::testing::Values(KeptRule::kSgd, KeptRule::kAdam,
                                                              KeptRule::kLamb),
                                            ::testing::Values(DType::kF16, DType::kBF16)));

// A skipped step writes neither the weights nor their copies.
TEST(KeptWeights, ASkippedStepLeavesTheCopies) {
  KeptNet net(KeptRule::kAdam, DType::kF16), other(KeptRule::kAdam, DType::kF16);
  net.grad_scaler();
  net.Step(1);
  const auto before = net.state_dict();
  Tensor x = RandomTensor(DType::kF32, {5, 37}, 2);
  x.set(0, INFINITY);
  Call(net, {x, nn::I64({5}, {0, 1, 2, 1, 0})});
  ASSERT_TRUE(net.last_step_skipped());
  EXPECT_EQ(net.Step(3), 0);
  // The same from the state before the skipped step, cast anew; the scale has gone down meanwhile.
  ASSERT_TRUE(other.load_state_dict(*before).ok());
  other.Step(3);
  const auto a = net.state_dict(), b = other.state_dict();
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    EXPECT_TRUE(BitEqual(a->at(name), b->at(name))) << name;
  }
}

// An f64 parameter is updated by a kernel that writes no copy: the next step casts it.
TEST(KeptWeights, ACopyThatNoUpdateWritesIsCastAgain) {
  nn::FnGraph graph;
  nn::Parameter w({2}, {ir::Initializer::Kind::kConstant, 1, 0}, DType::kF64);
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.fn = [&w](const nn::Values&) -> nn::Values {
    const nn::Value y = nn::cast(nn::cast(w, DType::kF16), DType::kF64);
    nn::sum(y).backward();
    return {y};
  };
  EXPECT_THAT(nn::Call1(graph, {}), ::testing::ElementsAre(1, 1));
  EXPECT_THAT(nn::Call1(graph, {}), ::testing::ElementsAre(0, 0));
  EXPECT_THAT(nn::Call1(graph, {}), ::testing::ElementsAre(-1, -1));
}

}  // namespace
}  // namespace halftone::testing
