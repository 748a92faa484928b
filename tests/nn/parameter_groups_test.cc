// Parameter groups: options, schedules and learning rates of their own under one step count. The
// parameters are w and b with losses sum(w * c), so that the gradients are what the test feeds.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

Parameter FilledParameter(double value, const Shape& shape = {1}) {
  return Parameter(shape, {ir::Initializer::Kind::kConstant, value, 0});
}

// Inputs are the gradients of w and b.
struct TwoGroups {
  explicit TwoGroups(double start = 0) : w(FilledParameter(start)), b(FilledParameter(start)) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]) + sum(b * in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_parameter("w", w);
    graph.add_parameter("b", b);
  }
  void Step(double grad_w, double grad_b) { Call(graph, {F32({1}, {grad_w}), F32({1}, {grad_b})}); }
  // w, b.
  std::vector<double> Values2() const { return {w.value().item(), b.value().item()}; }

  Parameter w, b;
  FnGraph graph;
};

::testing::Matcher<std::vector<double>> AllNear(const std::vector<double>& expected,
                                                double tolerance = 1e-6) {
  return Pointwise(::testing::DoubleNear(tolerance), expected);
}

double State(Graph& graph, const std::string& name) {
  const StateDict state = *graph.state_dict();
  const auto found = state.find(name);
  return found == state.end() ? std::nan("") : found->second.item();
}

TEST(ParameterGroups, MomentumOfOneGroupOnly) {
  TwoGroups t;
  t.graph.add_optimizer(optim::SGD({{{t.w}, {.momentum = 0.5}}, {{t.b}, {}}}, {.lr = 1}));
  t.Step(1, 1);
  t.Step(1, 1);
  // w: the buffer is 1, then 0.5 + 1.
  EXPECT_THAT(t.Values2(), ElementsAre(-2.5, -2));
  const StateDict state = *t.graph.state_dict();
  EXPECT_EQ(state.count("optimizer0.w.momentum_buffer"), 1u);
  EXPECT_EQ(state.count("optimizer0.b.momentum_buffer"), 0u);
  EXPECT_EQ(State(t.graph, "optimizer0.applied_steps"), 2);
}

TEST(ParameterGroups, AScheduleForEachAndOneStepCount) {
  TwoGroups t;
  const OptimizerHandle optimizer = t.graph.add_optimizer(
      optim::SGD({{{t.w}, {.lr = 8, .lr_schedule = optim::StepLR(1, 0.5)}}, {{t.b}, {}}},
                 {.lr = 1, .lr_schedule = optim::StepLR(2, 0.25)}));
  for (int step = 0; step < 4; ++step) t.Step(1, 1);
  // 8 + 4 + 2 + 1; 1 + 1 + 0.25 + 0.25.
  EXPECT_THAT(t.Values2(), ElementsAre(-15, -2.5));
  EXPECT_EQ(optimizer.applied_steps(), 4);
}

// The schedule given beside the optimizer is the optimizer's.
TEST(ParameterGroups, LearningRatesAreVariables) {
  TwoGroups t;
  OptimizerHandle optimizer =
      t.graph.add_optimizer(optim::SGD({{{t.w}, {}}, {{t.b}, {.lr = 2}}}, {.lr = 1}));
  ASSERT_EQ(optimizer.num_groups(), 2u);
  EXPECT_THAT(optimizer.group(0).parameters(), ElementsAre("w"));
  EXPECT_THAT(optimizer.group(1).parameters(), ElementsAre("b"));
  EXPECT_EQ(optimizer.lr(), 1);
  EXPECT_EQ(optimizer.group(1).lr(), 2);
  t.Step(1, 1);
  EXPECT_THAT(t.Values2(), ElementsAre(-1, -2));
  ASSERT_TRUE(optimizer.group(1).set_lr(4).ok());
  t.Step(1, 1);
  EXPECT_THAT(t.Values2(), ElementsAre(-2, -6));
  ASSERT_TRUE(optimizer.set_lr(0.5).ok());  // of both
  EXPECT_EQ(optimizer.group(1).lr(), 0.5);
  t.Step(1, 1);
  EXPECT_THAT(t.Values2(), ElementsAre(-2.5, -6.5));
  EXPECT_EQ(t.graph.builds, 1);
  EXPECT_EQ(State(t.graph, "optimizer0.lr"), 0.5);
  EXPECT_EQ(State(t.graph, "optimizer0.group1.lr"), 0.5);

  const absl::Status outside = optimizer.group(2).set_lr(1);
  EXPECT_EQ(outside.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(outside), "set_lr: group 2 of optimizer0; expected 0..1");
  EXPECT_TRUE(std::isnan(optimizer.group(2).lr()));
  EXPECT_THAT(optimizer.group(2).parameters(), IsEmpty());
  EXPECT_EQ(Message(GroupHandle().set_lr(1)), "set_lr: the handle belongs to no graph");
}

TEST(ParameterGroups, F65LearningRatesAreFiniteInF32) {
  TwoGroups t;
  OptimizerHandle optimizer =
      t.graph.add_optimizer(optim::SGD({{{t.w}, {}}, {{t.b}, {}}}, {.lr = 1}));
  for (const double lr : {1e39, std::nan(""), -1.0}) {
    for (const absl::Status& status : {optimizer.set_lr(lr), optimizer.group(1).set_lr(lr)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(Message(status),
                Concat("set_lr: lr = ", lr, "; expected a number >= 0 that is finite in f32"));
    }
  }
  EXPECT_EQ(optimizer.lr(), 1);
  EXPECT_EQ(optimizer.group(1).lr(), 1);
}

TEST(ParameterGroups, ALearningRateOfZeroStillCountsSteps) {
  TwoGroups t(1);
  const OptimizerHandle optimizer = t.graph.add_optimizer(
      optim::AdamW({{{t.w}, {.lr = 0}}, {{t.b}, {}}}, {.lr = 0.5, .weight_decay = 0.5}));
  t.Step(1, 1);
  EXPECT_EQ(optimizer.applied_steps(), 1);
  // b: 1 - 0.5 * 0.5, then Adam's first step of lr.
  EXPECT_THAT(t.Values2(), AllNear({1, 0.25}));
}

TEST(ParameterGroups, ATiedWeightInTwoGroupsIsNamed) {
  Linear encoder(2, 2, /*bias=*/false), decoder(2, 2, /*bias=*/false);
  decoder.weight = encoder.weight;
  FnGraph graph([&](const Values& in) -> Values { return {decoder(encoder(in[0]))}; });
  graph.add_module("encoder", encoder);
  graph.add_module("decoder", decoder);
  graph.add_optimizer(optim::SGD({{encoder.parameters(), {}}, {decoder.parameters(), {.lr = 1}}}));
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(graph.status()),
            At(__LINE__ - 3) +
                "optimizer0: parameter \"encoder.weight\" is already changed by group "
                "0 of optimizer0; expected one group a parameter");
}

// The same where the tie is made later; within a group it is one parameter from then on.
TEST(ParameterGroups, ALaterTieAcrossGroupsIsNamed) {
  TwoGroups across, within;
  across.graph.add_optimizer(optim::SGD({{{across.w}, {}}, {{across.b}, {.lr = 1}}}));
  across.Step(1, 1);
  across.b = across.w;
  const absl::Status status = CallStatus(across.graph, {F32({1}, {1}), F32({1}, {1})});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "optimizer0: parameter \"w\" is tied to one of another group; expected one group a "
            "parameter");
  Parameter c = FilledParameter(0);
  within.graph.add_parameter("c", c);
  OptimizerHandle optimizer =
      within.graph.add_optimizer(optim::SGD({{{c}, {}}, {{within.w, within.b}, {}}}, {.lr = 1}));
  within.b = within.w;
  within.Step(1, 2);
  EXPECT_THAT(within.Values2(), ElementsAre(-3, -3));
  EXPECT_THAT(optimizer.group(1).parameters(), ElementsAre("w"));
}

// Lists of two modules, put together by hand, have a tied weight twice.
TEST(ParameterGroups, F23ATiedWeightInOneGroupCountsOnce) {
  Linear encoder(1, 1, /*bias=*/false), decoder(1, 1, /*bias=*/false);
  decoder.weight = encoder.weight;
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(encoder(in[0])) + sum(decoder(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("encoder", encoder);
  graph.add_module("decoder", decoder);
  optim::ParameterList both = encoder.parameters();
  for (const auto& parameter : decoder.parameters()) both.push_back(parameter);
  const OptimizerHandle optimizer = graph.add_optimizer(optim::SGD(both, {.lr = 1}));
  EXPECT_THAT(optimizer.group(0).parameters(), ElementsAre("encoder.weight"));
  ASSERT_TRUE(encoder.weight.set_value(F32({1, 1}, {0})).ok());
  Call(graph, {F32({1, 1}, {3})});
  EXPECT_EQ(encoder.weight.value().item(), -6);  // once, by the sum of both gradients
}

TEST(ParameterGroups, AnEmptyGroupIsAMistake) {
  TwoGroups t;
  t.graph.add_optimizer(optim::SGD({{{t.w, t.b}, {}}, {{}, {.lr = 1}}}));
  EXPECT_EQ(Message(t.graph.status()),
            At(__LINE__ - 2) + "optimizer0: SGD: group 1: no parameters; expected one or more");
}

TEST(ParameterGroups, F35AParameterOf16BitIsRefusedWhereItIsGiven) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
    const Parameter w(Shape{2}, ir::Initializer{}, dtype);
    graph.add_parameter("w", w);
    graph.add_optimizer(optim::SGD({w}, {.lr = 1}));
    const absl::Status status = CallStatus(graph, {F32({1}, {1})});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status),
              At(__LINE__ - 4) + "optimizer0: parameter \"w\" is " + Name(dtype) +
                  "[2]; expected f32 or f64: keep parameters in f32, config.enable_amp computes "
                  "with 16-bit copies of them; or in bf16 with the optimizer's weights = "
                  "bf16_stochastic or bf16_kahan");
  }
}

// What the optimizer has by name comes back whatever the order of the groups; learning rates belong
// to the position.
TEST(ParameterGroups, ACheckpointGoesOnBitForBit) {
  const auto add = [](TwoGroups& t, bool reordered) {
    const optim::Adam::Group w = {{t.w}, {.betas = {{0.5, 0.75}}}}, b = {{t.b}, {.lr = 0.25}};
    return t.graph.add_optimizer(reordered ? optim::Adam({b, w}, {.lr = 0.125})
                                           : optim::Adam({w, b}, {.lr = 0.125}));
  };
  TwoGroups first, same, reordered;
  OptimizerHandle optimizer = add(first, false);
  add(same, false);
  OptimizerHandle swapped = add(reordered, true);
  ASSERT_TRUE(optimizer.group(1).set_lr(0.5).ok());
  for (const double grad : {1.0, -3.0}) first.Step(grad, 2 * grad);
  const StateDict state = *first.graph.state_dict();
  EXPECT_EQ(state.count("optimizer0.lr") + state.count("optimizer0.group1.lr") +
                state.count("optimizer0.applied_steps") + state.count("optimizer0.w.exp_avg") +
                state.count("optimizer0.b.exp_avg_sq"),
            5u);
  ASSERT_TRUE(same.graph.load_state_dict(state).ok());
  ASSERT_TRUE(reordered.graph.load_state_dict(state).ok());
  EXPECT_EQ(swapped.group(0).lr(), 0.125);
  EXPECT_EQ(swapped.group(1).lr(), 0.5);
  ASSERT_TRUE(swapped.group(0).set_lr(0.5).ok());
  ASSERT_TRUE(swapped.group(1).set_lr(0.125).ok());
  for (TwoGroups* t : {&first, &same, &reordered}) t->Step(5, 7);
  EXPECT_EQ(first.Values2(), same.Values2());
  EXPECT_EQ(first.Values2(), reordered.Values2());
}

// State of an optimizer without groups fits the first of its groups and lacks the others' rates.
TEST(ParameterGroups, StateWithoutGroupsLacksRates) {
  TwoGroups whole, grouped;
  whole.graph.add_optimizer(optim::SGD({whole.w, whole.b}, {.lr = 1}));
  OptimizerHandle optimizer = grouped.graph.add_optimizer(
      optim::SGD({{{grouped.w}, {}}, {{grouped.b}, {.lr = 2}}}, {.lr = 3}));
  const StateDict state = *whole.graph.state_dict();
  EXPECT_FALSE(grouped.graph.load_state_dict(state).ok());
  const absl::StatusOr<LoadReport> report = grouped.graph.load_state_dict(state, /*strict=*/false);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, ElementsAre("optimizer0.group1.lr"));
  EXPECT_EQ(optimizer.lr(), 1);
  EXPECT_EQ(optimizer.group(1).lr(), 2);
}

// Weights in one group, biases in the other, f16 and a scale that overflows.
TEST(ParameterGroups, AnOverflowLeavesAllGroupsBitIdentical) {
  Linear fc1(4, 8), fc2(8, 2);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = mean(fc2(relu(fc1(in[0]))));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc1", fc1);
  graph.add_module("fc2", fc2);
  const ParameterSplit split = graph.split_parameters({"*.bias"});
  OptimizerHandle optimizer = graph.add_optimizer(
      optim::AdamW({{split.rest, {}}, {split.matching, {.weight_decay = 0}}},
                   {.weight_decay = 0.1, .lr_schedule = optim::StepLR(1), .clip_norm = 1}));
  graph.config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
  ScalerHandle scaler = graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  const Tensor x = Tensor::Of(DType::kF32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  Call(graph, {x});
  ASSERT_FALSE(optimizer.last_step_skipped());
  ASSERT_TRUE(scaler.set_scale(std::ldexp(1.0, 120)).ok());
  const StateDict before = *graph.state_dict();
  Call(graph, {x});
  EXPECT_TRUE(optimizer.last_step_skipped());
  const StateDict after = *graph.state_dict();
  for (const auto& [name, value] : after) {
    if (name.rfind("scaler0.", 0) == 0 || name == "run_count") continue;
    if (name == "optimizer0.first_nonfinite") continue;
    EXPECT_EQ(value.ToVector(), before.at(name).ToVector()) << name;
  }
  EXPECT_THAT(graph.first_nonfinite_param(), HasSubstr("fc"));
}

TEST(SplitParameters, ByPatternAndByPredicate) {
  Linear fc(2, 3), out(3, 3);
  LayerNorm norm({3});
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("fc", fc);
  graph.add_module("norm", norm);
  graph.add_module("out", out);
  const ParameterSplit by_name = graph.split_parameters({"*.bias", "norm.*"});
  EXPECT_THAT(by_name.matching, ElementsAre(fc.bias.storage(), norm.weight.storage(),
                                            norm.bias.storage(), out.bias.storage()));
  EXPECT_THAT(by_name.rest, ElementsAre(fc.weight.storage(), out.weight.storage()));
  const ParameterSplit by_rank =
      split_parameters(graph.named_parameters(),
                       [](const std::string&, const Parameter& p) { return p.shape().rank() < 2; });
  EXPECT_EQ(by_rank.matching, by_name.matching);
  EXPECT_EQ(by_rank.rest, by_name.rest);
  EXPECT_EQ(split_parameters(fc.named_parameters(), {std::string("b?as")})->matching.size(), 1u);
}

TEST(SplitParameters, ATiedParameterOnceIfOneOfItsNamesMatches) {
  Linear encoder(2, 2), decoder(2, 2);
  decoder.weight = encoder.weight;
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("encoder", encoder);
  graph.add_module("decoder", decoder);
  const ParameterSplit split = graph.split_parameters({"decoder.*"});
  EXPECT_THAT(split.matching, ElementsAre(encoder.weight.storage(), decoder.bias.storage()));
  EXPECT_THAT(split.rest, ElementsAre(encoder.bias.storage()));
}

TEST(SplitParameters, APatternThatMatchesNothingIsAMistake) {
  Linear fc(2, 2);
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("fc", fc);
  graph.split_parameters({"*.bias", "*norm*"});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(graph.status()),
            At(__LINE__ - 3) +
                "split_parameters: \"*norm*\" matches no parameter; known: "
                "fc.weight, fc.bias");
}

}  // namespace
}  // namespace halftone::nn
