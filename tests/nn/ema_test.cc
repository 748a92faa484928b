// optim::Ema against its formula in double; saved, skipped, and put in the parameters' place.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;
using Doubles = std::vector<double>;

TEST(Ema, DecayIsTimms) {
  const optim::Ema defaults;
  EXPECT_EQ(defaults.decay, 0.9999);
  EXPECT_EQ(defaults.warmup_power, 2.0 / 3);
  EXPECT_EQ(defaults.DecayAt(1), 0) << "the first update is the parameter";
  EXPECT_EQ(defaults.DecayAt(2), 0.9999);
  const optim::Ema late{.decay = 0.5, .update_after_step = 3};
  EXPECT_EQ(late.DecayAt(4), 0);
  EXPECT_EQ(late.DecayAt(5), 0.5);
  const optim::Ema warm{.decay = 0.75, .use_warmup = true, .warmup_power = 1};
  EXPECT_EQ(warm.DecayAt(1), 0);
  EXPECT_EQ(warm.DecayAt(2), 0.5);               // 1 - (1 + 1)^-1
  EXPECT_NEAR(warm.DecayAt(3), 2.0 / 3, 1e-15);  // 1 - (1 + 2)^-1
  EXPECT_EQ(warm.DecayAt(4), 0.75);
  EXPECT_EQ(warm.DecayAt(1000), 0.75);
  const optim::Ema floor{
      .decay = 0.75, .min_decay = 0.7, .use_warmup = true, .warmup_gamma = 10, .warmup_power = 1};
  EXPECT_EQ(floor.DecayAt(2), 0.7);
  EXPECT_EQ(floor.DecayAt(1), 0);
}

TEST(Ema, ErrorsNameOptionAndRange) {
  const auto message = [](const optim::Ema& ema) { return Message(ema.Validate()); };
  EXPECT_EQ(message({.decay = 1.5}), "Ema: decay = 1.5; expected 0..1");
  EXPECT_EQ(message({.decay = 0.5, .min_decay = 0.75}),
            "Ema: min_decay = 0.75; expected 0..decay, which is 0.5");
  EXPECT_EQ(message({.update_after_step = -1}), "Ema: update_after_step = -1; expected >= 0");
  EXPECT_EQ(message({.warmup_gamma = 0}),
            "Ema: warmup_gamma = 0; expected a number > 0 that is finite in f32");
  EXPECT_EQ(message({.warmup_power = -1}),
            "Ema: warmup_power = -1; expected a number >= 0 that is finite in f32");
  const optim::SGD optimizer({Parameter(Shape{1}, {}).storage()}, {.ema = optim::Ema{.decay = -1}});
  EXPECT_EQ(Message(optimizer.Validate()), "SGD: Ema: decay = -1; expected 0..1");
}

// loss = sum(w * c) + sum(b * c): every gradient is the input.
struct AveragedModel {
  explicit AveragedModel(const optim::SGDOptions& options, bool scaler = false)
      : w(Shape{3}, {ir::Initializer::Kind::kConstant, 0.5, 0}),
        b(Shape{3}, {ir::Initializer::Kind::kConstant, -1, 0}) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]) + sum(b * in[0]);
      loss.backward();
      return {loss, w + 0.0};
    };
    graph.add_parameter("w", w);
    graph.add_parameter("b", b);
    optimizer = graph.add_optimizer(optim::SGD({{{w}, {}}, {{b}, {.lr = 0.5}}}, options));
    if (scaler) graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  }
  absl::Status Step(const Doubles& gradient) {
    return CallStatus(graph, {Tensor::Of(DType::kF32, {3}, gradient)});
  }
  Doubles State(const std::string& name) { return graph.state_dict()->at(name).ToVector(); }

  Parameter w, b;
  FnGraph graph;
  OptimizerHandle optimizer;
};

Doubles Gradient(int step) {
  Doubles gradient;
  for (int i = 0; i < 3; ++i) {
    gradient.push_back(static_cast<float>(std::sin(3.0 * step + i) + 0.25));
  }
  return gradient;
}

TEST(Ema, FollowsItsFormula) {
  for (const optim::Ema& ema :
       {optim::Ema{.decay = 0.75}, optim::Ema{.decay = 0.9, .update_after_step = 4},
        optim::Ema{.decay = 0.9, .min_decay = 0.25, .use_warmup = true, .warmup_gamma = 2}}) {
    AveragedModel model({.lr = 0.25, .ema = ema});
    Doubles w(3, 0.5), b(3, -1), average_w(3), average_b(3);
    for (int step = 1; step <= 20; ++step) {
      const Doubles gradient = Gradient(step);
      ASSERT_TRUE(model.Step(gradient).ok());
      const double decay = ema.DecayAt(step);
      for (int i = 0; i < 3; ++i) {
        w[i] -= 0.25 * gradient[i];
        b[i] -= 0.5 * gradient[i];
        average_w[i] = decay * average_w[i] + (1 - decay) * w[i];
        average_b[i] = decay * average_b[i] + (1 - decay) * b[i];
      }
      if (step == 1) {
        EXPECT_EQ(model.State("optimizer0.w.ema"), model.State("w"));
      }
      if (step % 5 != 0) continue;
      const Doubles got_w = model.State("optimizer0.w.ema"),
                    got_b = model.State("optimizer0.b.ema");
      for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(got_w[i], average_w[i], 2e-6) << step;
        EXPECT_NEAR(got_b[i], average_b[i], 2e-6) << step;
      }
    }
    EXPECT_EQ(model.State("optimizer0.ema_steps"), Doubles{20});
  }
}

TEST(Ema, ChangesNoParameter) {
  AveragedModel with({.lr = 0.25, .momentum = 0.9, .ema = optim::Ema{.decay = 0.5}}),
      without({.lr = 0.25, .momentum = 0.9});
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(with.Step(Gradient(step)).ok() && without.Step(Gradient(step)).ok());
  }
  EXPECT_EQ(with.State("w"), without.State("w"));
}

TEST(Ema, StaysInASkippedStep) {
  AveragedModel model({.lr = 0.25, .ema = optim::Ema{.decay = 0.5, .use_warmup = true}}, true);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(model.Step(Gradient(step)).ok());
  const StateDict before = *model.graph.state_dict();
  ASSERT_TRUE(model.Step({1, std::numeric_limits<double>::infinity(), 1}).ok());
  EXPECT_TRUE(model.optimizer.last_step_skipped());
  const StateDict after = *model.graph.state_dict();
  for (const char* name : {"optimizer0.w.ema", "optimizer0.b.ema", "optimizer0.ema_steps", "w"}) {
    EXPECT_TRUE(BitEqual(before.at(name), after.at(name))) << name;
  }
}

TEST(Ema, IsSaved) {
  const optim::SGDOptions options{.lr = 0.25, .ema = optim::Ema{.decay = 0.5, .use_warmup = true}};
  AveragedModel whole(options), first(options), second(options);
  for (int step = 0; step < 6; ++step) ASSERT_TRUE(whole.Step(Gradient(step)).ok());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(first.Step(Gradient(step)).ok());
  ASSERT_TRUE(second.graph.load_state_dict(*first.graph.state_dict()).ok());
  for (int step = 3; step < 6; ++step) ASSERT_TRUE(second.Step(Gradient(step)).ok());
  for (const char* name : {"optimizer0.w.ema", "optimizer0.ema_steps"}) {
    EXPECT_EQ(second.State(name), whole.State(name)) << name;
  }
}

// Fine-tuning: the state has averages, but nothing of `b`, a new head.
TEST(Ema, BeginsAtTheParameterWhereAStateLacksIt) {
  const optim::SGDOptions options{.lr = 0.25, .ema = optim::Ema{.decay = 0.75}};
  AveragedModel trained(options);
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(trained.Step(Gradient(step)).ok());
  const StateDict whole = *trained.graph.state_dict();
  StateDict without = whole, other_shape = whole;
  without.erase("b");
  without.erase("optimizer0.b.ema");
  other_shape["b"] = F32({2}, {1, 2});
  other_shape["optimizer0.b.ema"] = F32({2}, {1, 2});
  for (const StateDict& state : {without, other_shape}) {
    AveragedModel tuned(options);
    ASSERT_TRUE(tuned.graph.load_state_dict(state, false).ok());
    EXPECT_EQ(tuned.State("optimizer0.b.ema"), Doubles(3, -1));
    EXPECT_EQ(tuned.State("optimizer0.w.ema"), trained.State("optimizer0.w.ema"));
    {
      const EmaScope averaged(tuned.graph);
      EXPECT_EQ(tuned.b.value().ToVector(), Doubles(3, -1));
    }
    ASSERT_TRUE(tuned.Step({1, -2, 4}).ok());
    // b is -1 - 0.5 g, of which a quarter goes into the average.
    EXPECT_EQ(tuned.State("optimizer0.b.ema"), (Doubles{-1.125, -0.75, -1.5}));
  }
}

TEST(Ema, OfALoadedParameterBeginsAnew) {
  AveragedModel model({.lr = 0.25, .ema = optim::Ema{.decay = 0.75}});
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(model.Step(Gradient(step)).ok());
  const Doubles average_b = model.State("optimizer0.b.ema");
  ASSERT_NE(average_b, model.State("b"));
  ASSERT_TRUE(model.graph.load_state_dict({{"w", F32({3}, {1, 2, 3})}}, false).ok());
  EXPECT_EQ(model.State("optimizer0.w.ema"), (Doubles{1, 2, 3}));
  EXPECT_EQ(model.State("optimizer0.b.ema"), average_b) << "nothing of b was loaded";
}

TEST(Ema, OfAReplacedParameterBeginsAtIt) {
  for (const bool scope : {false, true}) {
    AveragedModel model({.lr = 0.25, .ema = optim::Ema{.decay = 0.75}});
    for (int step = 0; step < 4; ++step) ASSERT_TRUE(model.Step(Gradient(step)).ok());
    const Doubles average_b = model.State("optimizer0.b.ema");
    model.w = Parameter(Shape{3}, {ir::Initializer::Kind::kConstant, 2, 0});
    if (scope) {
      const EmaScope averaged(model.graph);
      ASSERT_TRUE(averaged.status().ok()) << averaged.status();
      EXPECT_EQ(model.w.value().ToVector(), Doubles(3, 2));
      EXPECT_EQ(model.b.value().ToVector(), average_b);
    }
    ASSERT_TRUE(model.Step({1, -2, 4}).ok());
    // w is 2 - 0.25 g, of which a quarter goes into the average.
    EXPECT_EQ(model.State("optimizer0.w.ema"), (Doubles{1.9375, 2.125, 1.75})) << scope;
  }
}

TEST(EmaScope, PutsAveragesInThePlaceOfParameters) {
  AveragedModel model({.lr = 0.25, .ema = optim::Ema{.decay = 0.75}});
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(model.Step(Gradient(step)).ok());
  const Doubles w = model.State("w"), average = model.State("optimizer0.w.ema");
  ASSERT_NE(w, average);
  model.graph.eval();
  const Tensor x = Tensor::Of(DType::kF32, {3}, {1, 1, 1});
  EXPECT_EQ(Call(model.graph, {x})[1].ToVector(), w);
  {
    const EmaScope averaged(model.graph);
    ASSERT_TRUE(averaged.status().ok()) << averaged.status();
    EXPECT_EQ(Call(model.graph, {x})[1].ToVector(), average);
    EXPECT_EQ(model.w.value().ToVector(), average);
    EXPECT_EQ(model.State("w"), average);
  }
  EXPECT_EQ(Call(model.graph, {x})[1].ToVector(), w);
  EXPECT_EQ(model.State("w"), w);
  EXPECT_EQ(model.State("optimizer0.w.ema"), average);
  // Training goes on as if there had been no evaluation.
  AveragedModel twin({.lr = 0.25, .ema = optim::Ema{.decay = 0.75}});
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(twin.Step(Gradient(step)).ok());
  model.graph.train();
  ASSERT_TRUE(model.Step(Gradient(4)).ok() && twin.Step(Gradient(4)).ok());
  EXPECT_EQ(model.State("w"), twin.State("w"));
  EXPECT_EQ(model.State("optimizer0.w.ema"), twin.State("optimizer0.w.ema"));
}

TEST(EmaScope, RefusesWhatWouldMixThemUp) {
  AveragedModel model({.lr = 0.25, .ema = optim::Ema{}});
  ASSERT_TRUE(model.Step(Gradient(0)).ok());
  const StateDict state = *model.graph.state_dict();
  const EmaScope averaged(model.graph);
  ASSERT_TRUE(averaged.status().ok());
  EXPECT_EQ(Message(model.Step(Gradient(1))),
            "graph @graph: a training step while an EmaScope lives: averages stand in the "
            "parameters' place");
  EXPECT_THAT(Message(model.graph.load_state_dict(state).status()),
              HasSubstr("load_state_dict while an EmaScope lives"));
  EXPECT_THAT(Message(model.graph.save_checkpoint("never_written.ckpt")),
              HasSubstr("save_checkpoint while an EmaScope lives"));
  const EmaScope second(model.graph);
  EXPECT_EQ(Message(second.status()),
            "graph @graph: an EmaScope lives already; expected one at a time");
}

// Whoever shares a parameter would write into what is going to be the average again.
TEST(EmaScope, RefusesWritesOfOthersThatShareParameters) {
  Linear fc(2, 2), apart(2, 2);
  const auto add = [](FnGraph& graph, Linear& module) {
    graph.fn = [&module](const Values& in) -> Values {
      const Value loss = sum(module(in[0]));
      loss.backward();
      return {loss};
    };
    graph.add_module("fc", module);
    graph.add_optimizer(
        optim::SGD(graph.parameters(), {.lr = 0.25, .ema = optim::Ema{.decay = 0.75}}));
  };
  FnGraph first, second, stranger;
  add(first, fc);
  add(second, fc);
  add(stranger, apart);
  const Tensor x = F32({1, 2}, {1, -2});
  for (int step = 0; step < 2; ++step) {
    Call(first, {x});
    Call(second, {x});
  }
  const StateDict of_graph = *second.state_dict(), of_module = *fc.state_dict();
  const Tensor weight = fc.weight.value();
  const std::string reason =
      " while an EmaScope lives: the average of parameter \"fc.weight\" stands in its place";
  const std::string of_bias =
      " while an EmaScope lives: the average of parameter \"fc.bias\" stands in its place";
  {
    const EmaScope averaged(first);
    ASSERT_TRUE(averaged.status().ok()) << averaged.status();
    const Doubles average = fc.weight.value().ToVector();
    EXPECT_EQ(Message(fc.weight.set_value(weight)), "set_value" + reason);
    EXPECT_EQ(Message(fc.load_state_dict(of_module).status()), "load_state_dict" + of_bias);
    EXPECT_EQ(Message(CallStatus(second, {x})), "a training step" + of_bias);
    EXPECT_EQ(Message(second.load_state_dict(of_graph).status()), "load_state_dict" + of_bias);
    EXPECT_EQ(Message(second.save_checkpoint("never_written.ckpt")), "save_checkpoint" + of_bias);
    EXPECT_EQ(Message(EmaScope(second).status()), "EmaScope" + reason);
    EXPECT_EQ(fc.weight.value().ToVector(), average);
    EXPECT_TRUE(CallStatus(stranger, {x}).ok()) << "shares nothing";
    second.eval();
    EXPECT_TRUE(CallStatus(second, {x}).ok());
  }
  EXPECT_EQ(fc.weight.value().ToVector(), weight.ToVector());
  ASSERT_TRUE(fc.weight.set_value(F32({2, 2}, {1, 2, 3, 4})).ok());
  second.train();
  EXPECT_TRUE(CallStatus(second, {x}).ok());
}

TEST(EmaScope, LeavesParametersAloneBeforeTheFirstUpdate) {
  AveragedModel model({.lr = 0.25, .ema = optim::Ema{.decay = 0.5}}), plain({.lr = 0.25});
  for (AveragedModel* m : {&model, &plain}) {
    const EmaScope averaged(m->graph);
    ASSERT_TRUE(averaged.status().ok()) << averaged.status();
    m->graph.eval();
    EXPECT_EQ(Call(m->graph, {F32({3}, {1, 1, 1})})[1].ToVector(), (Doubles{0.5, 0.5, 0.5}));
  }
}

// Loaded and evaluated without ever training.
TEST(EmaScope, WorksOnALoadedState) {
  const optim::SGDOptions options{.lr = 0.25, .ema = optim::Ema{.decay = 0.75}};
  AveragedModel trained(options), loaded(options);
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(trained.Step(Gradient(step)).ok());
  ASSERT_TRUE(loaded.graph.load_state_dict(*trained.graph.state_dict()).ok());
  loaded.graph.eval();
  const EmaScope averaged(loaded.graph);
  EXPECT_EQ(Call(loaded.graph, {F32({3}, {1, 1, 1})})[1].ToVector(),
            trained.State("optimizer0.w.ema"));
}

// A frozen parameter, and one that build() does not use, are their averages.
TEST(EmaScope, KeepsWhatIsNotUpdated) {
  Linear fc(2, 2), frozen(2, 2), unused(2, 2);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(fc(frozen(in[0])));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_module("frozen", frozen);
  graph.add_module("unused", unused);
  frozen.freeze();
  graph.add_optimizer(
      optim::SGD(graph.parameters(), {.lr = 0.25, .ema = optim::Ema{.decay = 0.75}}));
  for (int step = 0; step < 3; ++step) Call(graph, {F32({1, 2}, {1, -2})});
  const StateDict before = *graph.state_dict();
  const EmaScope averaged(graph);
  const StateDict during = *graph.state_dict();
  EXPECT_NE(during.at("fc.weight").ToVector(), before.at("fc.weight").ToVector());
  for (const char* name : {"frozen.weight", "frozen.bias", "unused.weight", "unused.bias"}) {
    const Doubles got = during.at(name).ToVector(), want = before.at(name).ToVector();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << name;
  }
}

// 16-bit copies of the weights are those of the averages.
TEST(EmaScope, MixedPrecisionSeesTheAverages) {
  Linear fc(4, 4);
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = fc(in[0]);
    mean(y * y).backward();
    return {cast(y, DType::kF32)};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(
      optim::Adam(graph.parameters(), {.lr = 0.25, .ema = optim::Ema{.decay = 0.75}}));
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  const Tensor x = testing::RandomTensor(DType::kF32, {3, 4}, 1);
  for (int step = 0; step < 3; ++step) Call(graph, {x});
  const StateDict state = *graph.state_dict();
  graph.eval();
  Doubles swapped;
  {
    const EmaScope averaged(graph);
    swapped = Call1(graph, {x});
  }
  EXPECT_NE(Call1(graph, {x}), swapped);
  StateDict averages = state;
  for (const char* name : {"fc.weight", "fc.bias"}) {
    averages[name] = state.at(std::string("optimizer0.") + name + ".ema");
  }
  ASSERT_TRUE(graph.load_state_dict(averages).ok());
  EXPECT_EQ(Call1(graph, {x}), swapped);
}

}  // namespace
}  // namespace halftone::nn
