// Parameters of an optimizer that build() does not use: they and their state stay, and a note names
// them.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Parameter One() { return Parameter(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0}); }

// The first input's extent says whether the step uses `a` alone or `b` too.
struct UnusedModel {
  UnusedModel() : a(One()), b(One()) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = in[0].shape().dims()[0] == 1 ? sum(a * in[0]) : sum(a) + sum(b * in[0]);
      loss.backward();
      return {loss};
    };
    graph.add_parameter("a", a);
    graph.add_parameter("b", b);
  }
  void StepWithA() { Call(graph, {F32({1}, {2})}); }
  void StepWithBoth() { Call(graph, {F32({2}, {2, 1})}); }

  Parameter a, b;
  FnGraph graph;
};

TEST(UnusedParameters, StayWithTheirStateAndAreNamed) {
  UnusedModel model;
  OptimizerHandle optimizer =
      model.graph.add_optimizer(optim::SGD({{{model.a}, {}}, {{model.b}, {.lr = 0.5}}},
                                           {.lr = 1, .momentum = 0.5, .weight_decay = 0.5}));
  model.StepWithBoth();
  EXPECT_THAT(model.graph.notes(), IsEmpty());
  const StateDict before = *model.graph.state_dict();
  const double a = model.a.value().item();
  model.StepWithA();
  model.StepWithA();
  EXPECT_THAT(model.graph.notes(),
              ElementsAre("optimizer0: build() does not use \"b\"; it stays as it is"));
  const StateDict after = *model.graph.state_dict();
  for (const char* name : {"b", "optimizer0.b.momentum_buffer", "optimizer0.group1.lr"}) {
    EXPECT_EQ(after.at(name).ToVector(), before.at(name).ToVector()) << name;
  }
  EXPECT_NE(model.a.value().item(), a);
  EXPECT_EQ(optimizer.applied_steps(), 3);
  // Its momentum goes on where it was: b = 1 - 0.5 (3 + 0.5), then the buffer is half of 3.5 and
  // 3 + 0.5 * -0.75.
  EXPECT_EQ(model.b.value().item(), -0.75);
  model.StepWithBoth();
  EXPECT_EQ(model.b.value().item(), -0.75 - 0.5 * (0.5 * 3.5 + 3 - 0.375));
}

TEST(UnusedParameters, OfAWholeOptimizer) {
  UnusedModel model;
  OptimizerHandle used = model.graph.add_optimizer(optim::SGD({model.a}, {.lr = 1}));
  OptimizerHandle unused =
      model.graph.add_optimizer(optim::Adam({model.b}, {.clip_norm = 1, .skip_nonfinite = true}));
  model.graph.set_grad_scaler(amp::GradScaler({.init_scale = 4}));
  model.StepWithA();
  EXPECT_EQ(model.a.value().item(), -1);
  EXPECT_EQ(model.b.value().item(), 1);
  EXPECT_THAT(model.graph.notes(),
              ElementsAre("optimizer1: build() does not use \"b\"; it stays as it is"));
  EXPECT_EQ(used.applied_steps(), 1);
  EXPECT_EQ(unused.applied_steps(), 0);
  EXPECT_EQ(unused.grad_norm(), 0);
  EXPECT_TRUE(unused.last_step_skipped());
  EXPECT_EQ(model.graph.state_dict()->count("optimizer1.b.exp_avg"), 0u);
}

// The names say which gradient is not finite, whatever stands before it unused.
TEST(UnusedParameters, DoNotShiftTheNameOfABadGradient) {
  UnusedModel model;
  model.graph.add_optimizer(optim::SGD({model.b, model.a}, {.lr = 1, .skip_nonfinite = true}));
  Call(model.graph, {F32({1}, {std::numeric_limits<double>::infinity()})});
  EXPECT_EQ(model.graph.first_nonfinite_param(), "a");
}

TEST(UnusedParameters, ManyAreCounted) {
  Parameter used = One();
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(used * in[0]);
    loss.backward();
    return {loss};
  });
  graph.add_parameter("used", used);
  for (int i = 0; i < 12; ++i) graph.add_parameter(Concat("p", i), One());
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  Call(graph, {F32({1}, {1})});
  EXPECT_THAT(graph.notes(),
              ElementsAre("optimizer0: build() does not use \"p0\", \"p1\", \"p2\", \"p3\", "
                          "\"p4\", \"p5\", \"p6\", \"p7\", \"p8\", \"p9\" and 2 more; "
                          "they stay as they are"));
}

TEST(UnusedParameters, SayNothingInEvaluation) {
  UnusedModel model;
  model.graph.add_optimizer(optim::SGD({model.a, model.b}, {.lr = 1}));
  model.graph.eval();
  model.StepWithA();
  EXPECT_THAT(model.graph.notes(), IsEmpty());
}

}  // namespace
}  // namespace halftone::nn
