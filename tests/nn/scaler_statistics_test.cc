// What a grad scaler tells of itself: the history of its scale, and how gradients fit f16.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kInf;
using ChangeCause = amp::ScaleChange::Cause;

// Parameters a and b, with the loss sum(a * in[0]) + sum(b * in[1]): their gradients are the inputs.
class TwoGradients : public FnGraph {
 public:
  explicit TwoGradients(amp::GradScalerOptions options)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(a * in[0]) + sum(b * in[1]);
          loss.backward();
          return {loss};
        }),
        a(Shape{4}, {ir::Initializer::Kind::kConstant, 1, 0}),
        b(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("a", a);
    add_parameter("b", b);
    add_optimizer(optim::SGD(parameters(), {.lr = 1}));
    scaler = set_grad_scaler(amp::GradScaler(options));
    config.enable_amp(true, {.dtype = DType::kF16, .allow = {"mul", "mul_1"}});
  }
  Parameter a, b;
  ScalerHandle scaler;
};

std::vector<Tensor> Gradients(std::initializer_list<double> a, double b) {
  return {F32({4}, a), F32({1}, {b})};
}

TEST(ScaleHistory, HasEachChangeWithItsCause) {
  TwoGradients graph({.init_scale = 1024, .growth_interval = 2});
  const std::vector<Tensor> good = Gradients({1, 1, 1, 1}, 1), bad = Gradients({1, 1, 1, 1}, kInf);
  EXPECT_THAT(graph.scaler.scale_history(), IsEmpty());
  Call(graph, bad);
  Call(graph, good);
  Call(graph, good);
  ASSERT_TRUE(graph.scaler.set_scale(8).ok());
  Call(graph, bad);
  EXPECT_THAT(graph.scaler.scale_history(),
              ElementsAre(amp::ScaleChange{1, 1024, 512, ChangeCause::kOverflow},
                          amp::ScaleChange{3, 512, 1024, ChangeCause::kGrowth},
                          amp::ScaleChange{3, 1024, 8, ChangeCause::kSet},
                          amp::ScaleChange{4, 8, 4, ChangeCause::kOverflow}));
  EXPECT_STREQ(Name(ChangeCause::kOverflow), "overflow");
  EXPECT_STREQ(Name(ChangeCause::kGrowth), "growth");
  EXPECT_STREQ(Name(ChangeCause::kSet), "set");
}

TEST(ScaleHistory, AStateThatIsLoadedIsAChangeByTheProgram) {
  TwoGradients graph({.init_scale = 1024});
  Call(graph, Gradients({1, 1, 1, 1}, 1));
  StateDict state = *graph.state_dict();
  state["scaler0.scale"] = F32({}, {16});
  ASSERT_TRUE(graph.load_state_dict(state).ok());
  amp::StateDict own = *graph.scaler.state_dict();
  own["scale"] = 64;
  ASSERT_TRUE(graph.scaler.load_state_dict(own).ok());
  EXPECT_THAT(graph.scaler.scale_history(),
              ElementsAre(amp::ScaleChange{1, 1024, 16, ChangeCause::kSet},
                          amp::ScaleChange{1, 16, 64, ChangeCause::kSet}));
}

TEST(ScaleHistory, KeepsTheLastChanges) {
  TwoGradients graph({.init_scale = 1, .growth_interval = 1});
  const std::vector<Tensor> good = Gradients({0, 0, 0, 0}, 0);
  for (int step = 0; step < 70; ++step) Call(graph, good);
  const std::vector<amp::ScaleChange> history = graph.scaler.scale_history();
  ASSERT_EQ(history.size(), amp::ScaleHistory::kCapacity);
  EXPECT_EQ(history.front(),
            (amp::ScaleChange{7, std::ldexp(1, 6), std::ldexp(1, 7), ChangeCause::kGrowth}));
  EXPECT_EQ(history.back().step, 70);
}

TEST(MeasureGradients, CountsWhatF16Loses) {
  TwoGradients graph({.init_scale = 1024});
  // Scaled: 2^10, 2^-16 (fewer digits), 2^-30 (0), 0.
  const auto report =
      graph.scaler.measure_gradients(Gradients({1, std::ldexp(-1, -26), std::ldexp(1, -40), 0}, 3));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->scale, 1024);
  ASSERT_EQ(report->parameters.size(), 2u);
  const GradientFit& a = report->parameters[0];
  EXPECT_EQ(a.parameter, "a");
  EXPECT_EQ(a.largest, 1);
  EXPECT_EQ(a.elements, 4);
  EXPECT_EQ(a.zeros, 1);
  EXPECT_EQ(a.non_finite, 0);
  EXPECT_DOUBLE_EQ(a.vanishing_share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(a.subnormal_share, 1.0 / 3);
  const GradientFit& b = report->parameters[1];
  EXPECT_EQ(b.parameter, "b");
  EXPECT_EQ(b.largest, 3);
  EXPECT_EQ(b.vanishing_share, 0);
  EXPECT_EQ(b.subnormal_share, 0);
}

// The largest f16 value of the backward pass is the scale times the gradient 3: 32,752 / 3 is
// within 2^13 and 2^14.
TEST(MeasureGradients, SuggestsTheLargestScaleThatLeavesRoomForOneGrowth) {
  for (const double scale : {1.0, 1024.0, 65536.0 * 1024}) {
    TwoGradients graph({.init_scale = scale});
    const auto report = graph.scaler.measure_gradients(Gradients({1, 1, 1, 0}, 3));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->suggested_scale, 8192) << "at " << scale;
    ASSERT_TRUE(graph.scaler.set_scale(*report->suggested_scale).ok());
    Call(graph, Gradients({1, 1, 1, 0}, 3));
    EXPECT_FALSE(graph.last_step_skipped());
    ASSERT_TRUE(graph.scaler.set_scale(4 * *report->suggested_scale).ok());
    Call(graph, Gradients({1, 1, 1, 0}, 3));
    EXPECT_TRUE(graph.last_step_skipped()) << "98,304 is infinite in f16";
  }
}

TEST(MeasureGradients, SuggestsNothingWithoutF16) {
  TwoGradients graph({.init_scale = 1024});
  graph.config.enable_amp(false);
  const auto report = graph.scaler.measure_gradients(Gradients({1, 1, 1, 0}, 3));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->suggested_scale, std::nullopt);
  EXPECT_EQ(report->parameters[1].largest, 3);
}

TEST(MeasureGradients, TellsOfGradientsThatAreNotFinite) {
  TwoGradients graph({.init_scale = 1024});
  const auto report = graph.scaler.measure_gradients(Gradients({1, 1, 1, 0}, kInf));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->parameters[1].non_finite, 1);
  EXPECT_EQ(report->suggested_scale, std::nullopt);
}

TEST(MeasureGradients, OfAccumulatedMicroBatchesIsOfAllOfThem) {
  TwoGradients graph({.init_scale = 1024});
  graph.config.set_gradient_accumulation_steps(2);
  const auto report = graph.scaler.measure_gradients(
      {F32({8}, {1, 1, 1, 1, 5, 0, 0, 0}), F32({2}, {3, std::ldexp(1, -40)})});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->parameters.size(), 2u);
  EXPECT_EQ(report->parameters[0].largest, 5);
  EXPECT_EQ(report->parameters[0].elements, 8);
  EXPECT_EQ(report->parameters[1].vanishing_share, 0.5);
}

// Each scaler sees its own loss, also where both reach one parameter.
TEST(MeasureGradients, OfTwoLossesIsThatOfEachScaler) {
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  ScalerHandle first, second;
  FnGraph graph([&](const Values& in) -> Values {
    const Value a = sum(w * in[0]), b = sum(w * in[1]);
    a.backward({.scaler = first});
    b.backward({.scaler = second});
    return {a, b};
  });
  graph.add_parameter("w", w);
  first = graph.set_grad_scaler(amp::GradScaler({.init_scale = 4}));
  second = graph.add_scaler(amp::GradScaler({.init_scale = 1024}));
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.config.enable_amp(true, {.dtype = DType::kF16, .allow = {"mul", "mul_1"}});
  const std::vector<Tensor> in = {F32({1}, {5}), F32({1}, {7})};
  for (const auto& [scaler, scale, largest, suggested] :
       {std::tuple{first, 4.0, 5.0, 4096.0}, {second, 1024.0, 7.0, 4096.0}}) {
    const auto report = scaler.measure_gradients(in);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->scale, scale);
    ASSERT_EQ(report->parameters.size(), 1u);
    EXPECT_EQ(report->parameters[0].largest, largest);
    EXPECT_EQ(report->parameters[0].elements, 1);
    EXPECT_EQ(report->suggested_scale, suggested);
  }
}

TEST(MeasureGradients, SaysWhyItCannot) {
  TwoGradients graph({.init_scale = 1024});
  const std::vector<Tensor> in = Gradients({1, 1, 1, 0}, 3);
  graph.eval();
  EXPECT_THAT(Message(graph.scaler.measure_gradients(in).status()), HasSubstr("expected train()"));
  TwoGradients disabled({.enabled = false});
  EXPECT_THAT(Message(disabled.scaler.measure_gradients(in).status()), HasSubstr("is disabled"));
  EXPECT_THAT(Message(ScalerHandle().measure_gradients(in).status()), HasSubstr("no graph"));
}

}  // namespace
}  // namespace halftone::nn
