// One grad scaler of two graphs.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

using testing::kInf;

// A parameter whose gradient is the input.
class Sharer : public FnGraph {
 public:
  Sharer()
      : FnGraph([this](const Values& in) -> Values {
          sum(w * in[0]).backward();
          return {};
        }),
        w(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0}) {
    add_parameter("w", w);
    add_optimizer(optim::SGD({w}, {.lr = 1}));
  }
  void Step(double gradient) { Call(*this, {F32({1}, {gradient})}); }

  Parameter w;
};

TEST(SharedScaler, AStepOfEitherGraphIsAStepOfIt) {
  Sharer a, b;
  const ScalerHandle of_a =
      a.set_grad_scaler(amp::GradScaler({.init_scale = 64, .growth_interval = 3}));
  const ScalerHandle of_b = b.set_grad_scaler(of_a);
  EXPECT_EQ(of_b.scale(), 64);
  a.Step(1);
  b.Step(2);
  EXPECT_EQ(of_a.growth_tracker(), 2);
  a.Step(1);
  EXPECT_EQ(of_b.scale(), 128);
  b.Step(kInf);
  EXPECT_EQ(of_a.scale(), 64);
  EXPECT_EQ(of_a.skipped_count(), 1);
  EXPECT_EQ(of_b.total_steps(), 4);
  // Each unscales by what it was scaled by.
  a.Step(3);
  EXPECT_EQ(a.w.value().item(), -5);
  EXPECT_EQ(b.w.value().item(), -2);
}

TEST(SharedScaler, SettingsReachBothGraphs) {
  Sharer a, b;
  ScalerHandle of_a = a.set_grad_scaler(amp::GradScaler({.init_scale = 64}));
  ScalerHandle of_b = b.add_scaler(of_a);
  b.fn = [&](const Values& in) -> Values {
    sum(b.w * in[0]).backward({.scaler = of_b});
    return {};
  };
  a.Step(1);
  b.Step(1);
  ASSERT_TRUE(of_b.set_growth_interval(3).ok());
  ASSERT_TRUE(of_a.set_growth_factor(4).ok());
  a.Step(1);
  EXPECT_EQ(of_b.scale(), 256);
  b.Step(1);
  b.Step(1);
  b.Step(1);
  EXPECT_EQ(of_a.scale(), 1024);
  amp::StateDict state = *of_a.state_dict();
  state["growth_interval"] = 1;
  ASSERT_TRUE(of_a.load_state_dict(state).ok());
  b.Step(1);
  EXPECT_EQ(of_b.scale(), 4096);
  EXPECT_EQ((*of_b.state_dict())["growth_interval"], 1);
}

TEST(SharedScaler, ItsStateIsThatOfEachGraph) {
  Sharer a, b;
  const ScalerHandle of_a = a.set_grad_scaler(amp::GradScaler({.init_scale = 64}));
  b.set_grad_scaler(of_a);
  b.Step(kInf);
  EXPECT_EQ(a.state_dict()->at("scaler0.scale").item(), 32);
  EXPECT_EQ(b.state_dict()->at("scaler0.scale").item(), 32);
  StateDict state = *b.state_dict();
  state["scaler0.scale"] = F32({}, {8});
  ASSERT_TRUE(b.load_state_dict(state).ok());
  EXPECT_EQ(of_a.scale(), 8);
}

TEST(SharedScaler, OutlivesTheGraphThatMadeIt) {
  Sharer b;
  ScalerHandle of_b;
  {
    Sharer a;
    of_b = b.set_grad_scaler(a.set_grad_scaler(amp::GradScaler({.init_scale = 64})));
    a.Step(kInf);
  }
  b.Step(kInf);
  EXPECT_EQ(of_b.scale(), 16);
}

TEST(SharedScaler, HandlesOnNoScalerOfAnotherGraph) {
  Sharer a, b, c;
  a.set_grad_scaler(ScalerHandle());
  EXPECT_EQ(CallStatus(a, {F32({1}, {1})}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(a.status()), HasSubstr("scaler0: the handle is on no grad scaler"));
  b.set_grad_scaler(c.grad_scaler());
  EXPECT_THAT(Message(b.status()), HasSubstr("scaler0: the handle is on no grad scaler"));
  const ScalerHandle own = c.set_grad_scaler(amp::GradScaler());
  c.add_scaler(own);
  EXPECT_THAT(Message(c.status()),
              HasSubstr("scaler1: scaler0 is of this graph; expected the grad scaler of another"));
}

}  // namespace
}  // namespace halftone::nn
