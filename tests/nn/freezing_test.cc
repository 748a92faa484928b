// eval(), train(), freeze() and unfreeze() of single modules within a training graph.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "halftone/graph/ir/text.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

std::vector<double> ValuesOf(const Parameter& parameter) { return parameter.value().ToVector(); }

// Two linear layers without bias, each a number: loss = sum(second(first(x))).
class TwoNumbers : public FnGraph {
 public:
  explicit TwoNumbers(const std::function<optim::Optimizer(const optim::ParameterList&)>& optimizer)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(second(first(in[0])));
          loss.backward();
          return {loss};
        }) {
    add_module("first", first);
    add_module("second", second);
    handle = add_optimizer(optimizer(parameters()));
    EXPECT_TRUE(first.weight.set_value(F32({1, 1}, {2})).ok());
    EXPECT_TRUE(second.weight.set_value(F32({1, 1}, {3})).ok());
  }
  // The numbers after a step on x.
  std::vector<double> Step(double x) {
    Call(*this, {F32({1, 1}, {x})});
    return {ValuesOf(first.weight)[0], ValuesOf(second.weight)[0]};
  }
  Linear first{1, 1, {.bias = false}};
  Linear second{1, 1, {.bias = false}};
  OptimizerHandle handle;
};

optim::Optimizer PlainSgd(const optim::ParameterList& parameters) {
  return optim::SGD(parameters, {.lr = 1});
}

TEST(FrozenBatchNorm, F05KeepsItsStatisticsAndPassesGradients) {
  BatchNorm2d frozen(1), moving(1);
  Parameter x(Shape{4, 1}, {ir::Initializer::Kind::kConstant, 0, 0});
  const Tensor upstream = F32({4, 1}, {1, 2, 3, 4});
  FnGraph graph([&](const Values&) -> Values {
    const Value y = frozen(x);
    const Value other = moving(x);
    // Of `other` no gradient comes back to x: its sum is constant.
    sum(y * constant(upstream) + other).backward();
    return {y, gradients(sum(y * constant(upstream)), {x})[0], other};
  });
  graph.add_parameter("x", x);
  graph.add_module("frozen", frozen);
  graph.add_module("moving", moving);
  graph.add_optimizer(
      optim::SGD(graph.parameters(), {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1}));
  for (BatchNorm2d* norm : {&frozen, &moving}) {
    ASSERT_TRUE(norm->running_mean.set_value(F32({1}, {2})).ok());
    ASSERT_TRUE(norm->running_var.set_value(F32({1}, {4})).ok());
  }
  ASSERT_TRUE(x.set_value(F32({4, 1}, {2, 4, 6, 8})).ok());
  frozen.freeze();

  const std::vector<Tensor> out = Call(graph, {});
  ASSERT_EQ(out.size(), 3u);
  // eps = 1e-5 shrinks both by 1.25e-6.
  EXPECT_THAT(out[0].ToVector(),
              ElementsAre(0, DoubleNear(1, 3e-6), DoubleNear(2, 6e-6), DoubleNear(3, 9e-6)));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(DoubleNear(0.5, 3e-6), DoubleNear(1, 3e-6),
                                             DoubleNear(1.5, 3e-6), DoubleNear(2, 6e-6)));
  // The mean of 2, 4, 6, 8 is 5, the variance 5.
  const double r5 = std::sqrt(5.0);
  EXPECT_THAT(out[2].ToVector(),
              Pointwise(DoubleNear(1e-5), std::vector<double>{-3 / r5, -1 / r5, 1 / r5, 3 / r5}));
  EXPECT_THAT(ValuesOf(frozen.running_mean), ElementsAre(2));
  EXPECT_THAT(ValuesOf(frozen.running_var), ElementsAre(4));
  EXPECT_EQ(frozen.num_batches_tracked.value().item(), 0);
  EXPECT_THAT(ValuesOf(frozen.weight), ElementsAre(1));
  EXPECT_THAT(ValuesOf(frozen.bias), ElementsAre(0));
  // 0.9 * 2 + 0.1 * 5; unbiased 20 / 3: 0.9 * 4 + 0.1 * 20 / 3.
  EXPECT_THAT(ValuesOf(moving.running_mean), ElementsAre(DoubleNear(2.3, 1e-6)));
  EXPECT_THAT(ValuesOf(moving.running_var), ElementsAre(DoubleNear(3.6 + 2.0 / 3, 1e-6)));
  // Gradient 0 (of the sum of normalised values), decay 0.1: 1 - 0.5 * 0.1.
  EXPECT_THAT(ValuesOf(moving.weight), ElementsAre(DoubleNear(0.95, 1e-6)));
}

TEST(FrozenBatchNorm, InEvaluationScaleAndShiftStillTrain) {
  BatchNorm2d norm(1, {.eps = 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = norm(in[0]);
    sum(y * constant(F32({4, 1}, {1, 2, 3, 4}))).backward();
    return {y};
  });
  graph.add_module("norm", norm);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(norm.running_mean.set_value(F32({1}, {2})).ok());
  ASSERT_TRUE(norm.running_var.set_value(F32({1}, {4})).ok());
  norm.eval();
  EXPECT_THAT(Call1(graph, {F32({4, 1}, {2, 4, 6, 8})}), ElementsAre(0, 1, 2, 3));
  // d weight = sum(dy xhat) = 0 + 2 + 6 + 12, d bias = sum(dy) = 10.
  EXPECT_THAT(ValuesOf(norm.weight), ElementsAre(1 - 20));
  EXPECT_THAT(ValuesOf(norm.bias), ElementsAre(0 - 10));
  EXPECT_THAT(ValuesOf(norm.running_mean), ElementsAre(2));
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 0);
}

TEST(FrozenBatchNorm, IsOneKernelForwardAndOneBackward) {
  Conv2d conv(2, 3, 1);
  BatchNorm2d norm(3);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(norm(conv(in[0])));
    loss.backward();
    return {loss};
  });
  graph.add_module("conv", conv);
  graph.add_module("norm", norm);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  norm.freeze();
  ASSERT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {2, 2, 4, 4})}).ok());
  int inference = 0, other = 0;
  for (const auto& node : graph.compiled_graph()->nodes()) {
    inference += node->op().name == "batch_norm_inference";
    other += node->op().name == "batch_norm" || node->op().name == "batch_norm_grad";
  }
  EXPECT_EQ(inference, 2) << graph.compiled_text();
  EXPECT_EQ(other, 0) << graph.compiled_text();
}

TEST(Freezing, MomentumAndDecayLeaveAFrozenParameterAlone) {
  TwoNumbers graph([](const optim::ParameterList& p) {
    return optim::SGD(p, {.lr = 1, .momentum = 0.5, .weight_decay = 0.5});
  });
  // loss = first * second * x at x = 1. Gradients with decay: 3 + 1 = 4, 2 + 1.5 = 3.5.
  EXPECT_THAT(graph.Step(1), ElementsAre(-2, -0.5));
  graph.second.freeze();
  // first: -0.5 - 1 = -1.5, momentum 0.5 * 4 - 1.5 = 0.5.
  EXPECT_THAT(graph.Step(1), ElementsAre(-2.5, -0.5));
  graph.second.unfreeze();
  // first: -0.5 - 1.25 = -1.75, momentum 0.25 - 1.75 = -1.5; second goes on with its momentum of
  // 3.5: -2.5 - 0.25 = -2.75, 1.75 - 2.75 = -1.
  EXPECT_THAT(graph.Step(1), ElementsAre(-1, 0.5));
}

TEST(Freezing, AFrozenParameterKeepsItsPlaceInTheState) {
  const auto adam = [](const optim::ParameterList& p) { return optim::Adam(p, {.lr = 0.1}); };
  TwoNumbers graph(adam);
  graph.Step(1);
  const StateDict before = *graph.state_dict();
  graph.second.freeze();
  graph.Step(1);
  graph.Step(1);
  const StateDict after = *graph.state_dict();
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, value] : before) {
    const bool same = BitEqual(value, after.at(name));
    EXPECT_EQ(same, name.find("second.weight") != name.npos || name == "optimizer0.lr") << name;
  }
  // A graph that was frozen from the start takes it all, and gives it back.
  TwoNumbers frozen(adam);
  frozen.second.freeze();
  const absl::StatusOr<LoadReport> report = frozen.load_state_dict(after);
  ASSERT_TRUE(report.ok()) << report.status();
  frozen.Step(1);
  const StateDict returned = *frozen.state_dict();
  for (const char* name : {"second.weight", "optimizer0.second.weight.exp_avg",
                           "optimizer0.second.weight.exp_avg_sq"}) {
    ASSERT_EQ(returned.count(name), 1u) << name;
    EXPECT_TRUE(BitEqual(returned.at(name), after.at(name))) << name;
  }
}

TEST(Freezing, GradientsReachWhatLiesBefore) {
  TwoNumbers graph(&PlainSgd);
  graph.second.freeze();
  // d first = second * x = 3 * 5.
  EXPECT_THAT(graph.Step(5), ElementsAre(2 - 15, 3));
  graph.second.unfreeze();
  graph.first.freeze();
  // d second = first * x = -13 * 5.
  EXPECT_THAT(graph.Step(5), ElementsAre(-13, 3 + 65));
}

TEST(Freezing, EverythingFrozenIsAStepThatChangesNothing) {
  TwoNumbers graph([](const optim::ParameterList& p) {
    return optim::AdamW(p, {.lr = 1, .weight_decay = 0.5, .clip_norm = 1});
  });
  graph.set_grad_scaler(amp::GradScaler());
  graph.first.freeze();
  graph.second.freeze();
  EXPECT_THAT(graph.Step(5), ElementsAre(2, 3));
  EXPECT_EQ(graph.handle.applied_steps(), 0);
  graph.first.unfreeze();
  EXPECT_EQ(graph.Step(5)[1], 3);
  EXPECT_EQ(graph.handle.applied_steps(), 1);
}

TEST(Freezing, TheNormThatClippingLooksAtIsOfWhatTrains) {
  TwoNumbers graph(
      [](const optim::ParameterList& p) { return optim::SGD(p, {.lr = 1, .clip_norm = 1}); });
  graph.second.freeze();
  // The one gradient, 3, is cut to 1.
  EXPECT_EQ(graph.Step(1)[1], 3);
  EXPECT_NEAR(ValuesOf(graph.first.weight)[0], 2 - 1, 1e-6);
  EXPECT_EQ(graph.handle.grad_norm(), 3);
}

TEST(Freezing, ATiedParameterStaysWhileOneOfItsModulesIsFrozen) {
  Linear a(1, 1, {.bias = false}), b(1, 1, {.bias = false});
  b.weight = a.weight;
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(a(in[0]) + b(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("a", a);
  graph.add_module("b", b);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(a.weight.set_value(F32({1, 1}, {7})).ok());
  b.freeze();
  Call(graph, {F32({1, 1}, {1})});
  EXPECT_THAT(ValuesOf(a.weight), ElementsAre(7));
  b.unfreeze();
  Call(graph, {F32({1, 1}, {1})});
  EXPECT_THAT(ValuesOf(a.weight), ElementsAre(5));
}

TEST(Freezing, RequiresGradIsASwitchOfItsOwn) {
  TwoNumbers graph(&PlainSgd);
  graph.second.weight.set_requires_grad(false);
  graph.second.freeze();
  graph.second.unfreeze();
  EXPECT_FALSE(graph.second.weight.requires_grad());
  EXPECT_THAT(graph.Step(1), ElementsAre(-1, 3));
  // Also after a call.
  graph.second.weight.set_requires_grad(true);
  EXPECT_THAT(graph.Step(1), ElementsAre(-4, 4));
}

// A block in a block, each with dropout; the inner one as a module and as a function.
class Inner : public Module {
 public:
  Inner() { register_module("drop", drop); }
  Value forward(const Value& x) override { return dropout(drop(x), 0.5); }
  Dropout drop{0.5};
};
class Outer : public Module {
 public:
  Outer() {
    register_module("inner", inner);
    register_module("drop", drop);
  }
  Value forward(const Value& x) override { return drop(inner(x)); }
  Inner inner;
  Dropout drop{0.5};
};

// Whether dropout is at work in a step of `graph` on ones.
bool Drops(Graph& graph) {
  for (double y : Call1(graph, {Tensor::Full(DType::kF32, {64}, 1)})) {
    if (y != 1) return true;
  }
  return false;
}

TEST(ModuleModes, ReachTheModulesBelowAsInPyTorch) {
  Outer outer;
  FnGraph graph([&](const Values& in) -> Values { return {outer(in[0])}; });
  graph.add_module("outer", outer);
  EXPECT_TRUE(Drops(graph));
  outer.eval();
  EXPECT_FALSE(outer.inner.drop.is_training());
  EXPECT_FALSE(Drops(graph));
  outer.drop.train();
  EXPECT_TRUE(Drops(graph));
  EXPECT_FALSE(outer.inner.is_training());
  outer.train();
  outer.drop.eval();
  outer.inner.drop.eval();
  EXPECT_TRUE(Drops(graph)) << "the function in Inner::forward follows Inner";
  outer.inner.train(false);
  EXPECT_FALSE(Drops(graph));
}

TEST(ModuleModes, TrainDoesNotUndoFreezing) {
  Outer outer;
  outer.inner.eval();
  outer.freeze();
  outer.train();
  EXPECT_TRUE(outer.is_frozen());
  EXPECT_TRUE(outer.inner.drop.is_frozen());
  EXPECT_FALSE(outer.is_training());
  outer.inner.drop.eval();
  outer.unfreeze();
  // What train() and eval() said last holds again.
  EXPECT_TRUE(outer.is_training());
  EXPECT_TRUE(outer.inner.is_training());
  EXPECT_FALSE(outer.inner.drop.is_training());
  EXPECT_FALSE(outer.inner.drop.is_frozen());
}

TEST(ModuleModes, AnEvaluationGraphEvaluatesAll) {
  Outer outer;
  FnGraph graph([&](const Values& in) -> Values { return {outer(in[0])}; });
  graph.add_module("outer", outer);
  graph.eval();
  EXPECT_FALSE(Drops(graph));
  EXPECT_TRUE(outer.is_training());
  outer.eval();
  graph.train();
  EXPECT_FALSE(Drops(graph));
  outer.train();
  EXPECT_TRUE(Drops(graph));
}

TEST(ModuleModes, EachCombinationIsTracedOnce) {
  Outer outer;
  FnGraph graph([&](const Values& in) -> Values { return {outer(in[0])}; });
  graph.add_module("outer", outer);
  for (int round = 0; round < 3; ++round) {
    outer.train();
    EXPECT_TRUE(Drops(graph));
    outer.eval();
    EXPECT_FALSE(Drops(graph));
    graph.eval();
    EXPECT_FALSE(Drops(graph));
    outer.train();
    EXPECT_FALSE(Drops(graph));
    graph.train();
  }
  EXPECT_EQ(graph.builds, 3) << "train, eval, and an evaluation graph in either";
  // What changes elsewhere does not matter.
  Dropout loose;
  loose.eval();
  EXPECT_TRUE(Drops(graph));
  EXPECT_EQ(graph.builds, 3);
}

TEST(ModuleModes, BelongToTheModuleWhateverGraphRunsIt) {
  Outer outer;
  const auto run = [&](const Values& in) -> Values { return {outer(in[0])}; };
  FnGraph first(run), second(run);
  first.add_module("outer", outer);
  second.add_module("model", outer);
  EXPECT_TRUE(Drops(first));
  EXPECT_TRUE(Drops(second));
  outer.eval();
  EXPECT_FALSE(Drops(first));
  EXPECT_FALSE(Drops(second));
}

TEST(ModuleModes, AreNoPartOfTheState) {
  Outer outer;
  BatchNorm2d norm(1);
  FnGraph graph([&](const Values& in) -> Values { return {norm(outer(in[0]))}; });
  graph.add_module("outer", outer);
  graph.add_module("norm", norm);
  const StateDict before = *graph.state_dict();
  norm.freeze();
  outer.eval();
  EXPECT_EQ(graph.state_dict()->size(), before.size());
  ASSERT_TRUE(graph.load_state_dict(before).ok());
  EXPECT_TRUE(norm.is_frozen());
  EXPECT_FALSE(outer.is_training());
}

TEST(ModuleModes, OneLayersDropoutMovesNoOthersMasks) {
  Dropout a, b;
  FnGraph graph([&](const Values& in) -> Values { return {a(in[0]), b(in[0])}; });
  graph.add_module("a", a);
  graph.add_module("b", b);
  FnGraph other(graph.fn);
  other.add_module("a", a);
  other.add_module("b", b);
  const Tensor x = Tensor::Full(DType::kF32, {256}, 1);
  const std::vector<Tensor> both = Call(graph, {x});
  a.eval();
  const std::vector<Tensor> one = Call(other, {x});
  ASSERT_EQ(one.size(), 2u);
  EXPECT_TRUE(BitEqual(one[0], x));
  EXPECT_TRUE(BitEqual(one[1], both[1]));
}

TEST(ModuleModes, AreShownInTheDump) {
  Outer outer;
  Linear fc(4, 4);
  BatchNorm2d norm(4);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(norm(fc(outer(in[0]))));
    loss.backward();
    return {loss};
  });
  graph.add_module("outer", outer);
  graph.add_module("fc", fc);
  graph.add_module("norm", norm);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  fc.freeze();
  norm.eval();
  outer.eval();
  outer.drop.train();
  ASSERT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {2, 4})}).ok());
  const std::string traced = graph.traced_text();
  EXPECT_THAT(traced, HasSubstr("\"fc.weight\" {init=\"uniform(-0.5,0.5)\", trainable=false}"));
  EXPECT_THAT(traced, HasSubstr("\"norm.weight\" {init=\"constant(1)\"}"));
  EXPECT_THAT(traced, HasSubstr("batch_norm_inference("));
  // outer/inner/drop is in outer, which says it.
  EXPECT_THAT(traced,
              EndsWith("\n// in evaluation mode: fc (frozen), norm, outer; in training mode: "
                       "outer/drop\n"));
  EXPECT_TRUE(ir::Parse(traced).ok()) << "a remark, not part of the graph";
  for (Module* module : std::initializer_list<Module*>{&outer, &fc, &norm}) {
    module->unfreeze();
    module->train();
  }
  ASSERT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {2, 4})}).ok());
  EXPECT_THAT(graph.traced_text(), Not(HasSubstr("mode")));
}

TEST(ModuleModes, AreShownInDumpedFiles) {
  const testing::TempDir dir;
  Outer outer;
  FnGraph graph([&](const Values& in) -> Values { return {outer(in[0])}; });
  graph.add_module("outer", outer);
  graph.config.dump_dir = dir.path();
  outer.freeze();
  ASSERT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {2})}).ok());
  std::ifstream file(dir.path() + "/graph_0/00_input.txt");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, EndsWith("\n// in evaluation mode: outer (frozen)\n"));
}

TEST(ModuleModes, WishesForPrecisionGivenAfterACallCount) {
  Linear fc(8, 8);
  FnGraph graph([&](const Values& in) -> Values { return {fc(in[0])}; });
  graph.add_module("fc", fc);
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  const auto wishes = [&graph] {
    EXPECT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {8, 8})}).ok());
    int8_t wish = 0;
    for (const auto& node : graph.compiled_graph()->nodes()) {
      if (node->op().name == "linear") wish = node->amp_request;
    }
    return wish;
  };
  EXPECT_EQ(wishes(), 0);
  fc.keep_fp32();
  EXPECT_EQ(wishes(), -1);
  fc.allow_low();
  EXPECT_EQ(wishes(), 1);
}

TEST(Freezing, UnderMixedPrecision) {
  // Integers of bf16: every product and sum below is exact.
  Conv2d conv(1, 1, 1, {.bias = false});
  BatchNorm2d norm(1, {.eps = 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = conv(norm(conv(in[0])));
    sum(y * constant(F32({1, 1, 2, 2}, {1, 2, 3, 4}))).backward();
    return {y};
  });
  graph.add_module("conv", conv);
  graph.add_module("norm", norm);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  ASSERT_TRUE(conv.weight.set_value(F32({1, 1, 1, 1}, {2})).ok());
  ASSERT_TRUE(norm.running_mean.set_value(F32({1}, {4})).ok());
  ASSERT_TRUE(norm.running_var.set_value(F32({1}, {0.25})).ok());
  norm.freeze();
  // 2 x, then (.. - 4) * 2, then times 2.
  EXPECT_THAT(Call1(graph, {F32({1, 1, 2, 2}, {2, 3, 4, 1})}), ElementsAre(0, 8, 16, -8));
  // d weight: outer sum(dy norm) = 0 + 2*4 + 3*8 - 4*4 = 16; inner sum(dy * 2 * 2 * x) =
  // 4 * (2 + 6 + 12 + 4) = 96.
  EXPECT_THAT(ValuesOf(conv.weight), ElementsAre(2 - 112));
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->op().name != "batch_norm_inference") continue;
    EXPECT_EQ(node->input_type(1).dtype, DType::kF32) << ir::Print(*node);
  }
}

TEST(BatchNormInference, GradientsOfAllItsOperands) {
  // y = gamma (x - mean) / sqrt(var) + beta with gamma 3, mean 2, var 4; dy = 1, 2.
  Parameter x(Shape{2, 1}, {}), gamma(Shape{1}, {}), beta(Shape{1}, {}), mean(Shape{1}, {}),
      var(Shape{1}, {});
  FnGraph graph([&](const Values&) -> Values {
    const Value y = batch_norm_inference(x, gamma, beta, mean, var, 0);
    return Values(gradients(sum(y * constant(F32({2, 1}, {1, 2}))), {x, gamma, beta, mean, var}));
  });
  int i = 0;
  for (const Parameter* p : {&x, &gamma, &beta, &mean, &var}) {
    graph.add_parameter(Concat("p", i++), *p);
  }
  ASSERT_TRUE(x.set_value(F32({2, 1}, {4, 10})).ok());
  ASSERT_TRUE(gamma.set_value(F32({1}, {3})).ok());
  ASSERT_TRUE(mean.set_value(F32({1}, {2})).ok());
  ASSERT_TRUE(var.set_value(F32({1}, {4})).ok());
  const std::vector<Tensor> d = Call(graph, {});
  ASSERT_EQ(d.size(), 5u);
  EXPECT_THAT(d[0].ToVector(), ElementsAre(1.5, 3));
  // xhat = 1, 4: 1 + 8.
  EXPECT_THAT(d[1].ToVector(), ElementsAre(9));
  EXPECT_THAT(d[2].ToVector(), ElementsAre(3));
  EXPECT_THAT(d[3].ToVector(), ElementsAre(-4.5));
  // -gamma / (2 var^(3/2)) sum(dy (x - mean)) = -3 / 16 * (2 + 16).
  EXPECT_THAT(d[4].ToVector(), ElementsAre(-3.375));
}

}  // namespace
}  // namespace halftone::nn
