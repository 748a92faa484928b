// Ties made at any time: names, optimizer slots and saved state agree.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// y = b(a(x)) without bias, Adam; when the weights are tied is up to the test.
class TiedPair : public FnGraph {
 public:
  explicit TiedPair(bool tie_first = false, bool b_first = false)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(b(a(in[0])) * in[0]);
          loss.backward();
          return {loss};
        }),
        a(2, 2, false),
        b(2, 2, false) {
    if (tie_first) b.weight = a.weight;
    add_module(b_first ? "b" : "a", b_first ? b : a);
    add_module(b_first ? "a" : "b", b_first ? a : b);
  }
  void AddOptimizer() { optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 0.25})); }

  Linear a, b;
  OptimizerHandle optimizer;
};

const Tensor kTiedInput = F32({3, 2}, {1, -2, 0.5, 3, -1, 2});

std::vector<std::string> Keys(const StateDict& state) {
  std::vector<std::string> keys;
  for (const auto& entry : state) keys.push_back(entry.first);
  return keys;
}

void ExpectSameState(Graph& got, Graph& expected) {
  const StateDict a = *got.state_dict(), b = *expected.state_dict();
  ASSERT_EQ(Keys(a), Keys(b));
  for (const auto& [name, value] : b) EXPECT_TRUE(BitEqual(a.at(name), value)) << name;
}

void TrainSteps(Graph& graph, int count) {
  for (int i = 0; i < count; ++i) Call(graph, {kTiedInput});
}

TEST(Ties, BeforeAndAfterAddOptimizerAreTheSame) {
  TiedPair first(/*tie_first=*/true);
  first.AddOptimizer();
  TrainSteps(first, 3);
  EXPECT_THAT(Keys(*first.state_dict()),
              ElementsAre("a.weight", "b.weight", "optimizer0.a.weight.exp_avg",
                          "optimizer0.a.weight.exp_avg_sq", "optimizer0.applied_steps",
                          "optimizer0.lr", "run_count"));
  EXPECT_TRUE(BitEqual(first.a.weight.value(), first.b.weight.value()));

  TiedPair after_modules;
  after_modules.b.weight = after_modules.a.weight;
  EXPECT_EQ(after_modules.parameters().size(), 1u);
  after_modules.AddOptimizer();
  TrainSteps(after_modules, 3);
  ExpectSameState(after_modules, first);

  TiedPair after_optimizer;
  after_optimizer.AddOptimizer();
  after_optimizer.b.weight = after_optimizer.a.weight;
  TrainSteps(after_optimizer, 3);
  ExpectSameState(after_optimizer, first);

  // The other way round: b's tensor under a's name.
  TiedPair reversed;
  reversed.AddOptimizer();
  reversed.a.weight = reversed.b.weight;
  TrainSteps(reversed, 3);
  ExpectSameState(reversed, first);
}

// Which tensor stays is the assignment's choice; its slots go with it, the other's are gone.
TEST(Ties, AfterACallTheSlotsOfTheTensorThatStaysGoOn) {
  for (const bool keep_a : {true, false}) {
    SCOPED_TRACE(keep_a);
    TiedPair model;
    model.AddOptimizer();
    TrainSteps(model, 2);
    const StateDict before = *model.state_dict();
    (keep_a ? model.b : model.a).weight = (keep_a ? model.a : model.b).weight;
    const std::string kept = keep_a ? "a" : "b";
    const StateDict after = *model.state_dict();
    EXPECT_THAT(Keys(after), ElementsAre("a.weight", "b.weight", "optimizer0.a.weight.exp_avg",
                                         "optimizer0.a.weight.exp_avg_sq",
                                         "optimizer0.applied_steps", "optimizer0.lr", "run_count"));
    for (const char* name : {"a.weight", "b.weight"}) {
      EXPECT_TRUE(BitEqual(after.at(name), before.at(kept + ".weight"))) << name;
    }
    for (const char* slot : {".weight.exp_avg", ".weight.exp_avg_sq"}) {
      EXPECT_TRUE(BitEqual(after.at(std::string("optimizer0.a") + slot),
                           before.at("optimizer0." + kept + slot)))
          << slot;
    }
    // From here as a model that was tied from the start and loads this state.
    TiedPair loaded(/*tie_first=*/true);
    loaded.AddOptimizer();
    ASSERT_TRUE(loaded.load_state_dict(after).ok());
    TrainSteps(model, 2);
    TrainSteps(loaded, 2);
    ExpectSameState(model, loaded);
  }
}

TEST(Ties, AreTracedAnewOnceAndAssigningTheSameChangesNothing) {
  TiedPair model;
  model.AddOptimizer();
  TrainSteps(model, 2);
  EXPECT_EQ(model.builds, 1);
  model.b.weight = model.a.weight;
  TrainSteps(model, 2);
  EXPECT_EQ(model.builds, 2);
  model.b.weight = model.a.weight;
  const Linear unrelated(2, 2);  // parameters of others are assigned all the time
  TrainSteps(model, 2);
  EXPECT_EQ(model.builds, 2);
}

TEST(Ties, InsideBuildHold) {
  TiedPair model;
  model.AddOptimizer();
  const auto build = model.fn;
  model.fn = [&](const Values& in) -> Values {
    model.b.weight = model.a.weight;
    return build(in);
  };
  TrainSteps(model, 3);
  TiedPair first(/*tie_first=*/true);
  first.AddOptimizer();
  TrainSteps(first, 3);
  ExpectSameState(model, first);
}

TEST(Ties, AcrossTwoOptimizersAreAnErrorThatNamesBothUntilUndone) {
  for (const bool compiled : {false, true}) {
    SCOPED_TRACE(compiled);
    TiedPair model;
    model.add_optimizer(optim::SGD({model.a.weight}, {.lr = 1}));
    model.add_optimizer(optim::SGD({model.b.weight}, {.lr = 1, .momentum = 0.5}));
    if (compiled) TrainSteps(model, 1);
    const StateDict before = *model.state_dict();
    const Parameter own = model.b.weight;  // this handle follows b
    const Parameter kept = [&] {
      Parameter copy;
      copy = model.b.weight;
      return copy;
    }();
    model.b.weight = model.a.weight;
    const std::string message =
        "optimizer1: parameter \"b.weight\" is tied to \"a.weight\", which optimizer0 changes; "
        "expected one optimizer a parameter";
    const absl::Status status = CallStatus(model, {kTiedInput});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), message);
    EXPECT_EQ(Message(model.state_dict().status()), message);
    EXPECT_EQ(Message(model.load_state_dict({}).status()), message);
    EXPECT_EQ(own.storage(), model.a.weight.storage());
    model.b.weight = kept;
    const StateDict after = *model.state_dict();
    ASSERT_EQ(Keys(after), Keys(before));
    for (const auto& [name, value] : before) EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
    TrainSteps(model, 1);
  }
}

// The issue of an untied weight: a new tensor under a known name.
TEST(Ties, F55ANewParameterIsTakenAtAnyTime) {
  TiedPair model(/*tie_first=*/true);
  model.AddOptimizer();
  TrainSteps(model, 2);
  const Tensor a = model.a.weight.value();
  model.b.weight = Parameter(Shape{2, 2}, {ir::Initializer::Kind::kConstant, 0.5, 0});
  TrainSteps(model, 1);
  EXPECT_FALSE(BitEqual(model.a.weight.value(), a));
  EXPECT_NE(model.b.weight.value().at(0), 0.5) << "the optimizer had both names, and has both now";
  EXPECT_THAT(Keys(*model.state_dict()),
              ElementsAre("a.weight", "b.weight", "optimizer0.a.weight.exp_avg",
                          "optimizer0.a.weight.exp_avg_sq", "optimizer0.applied_steps",
                          "optimizer0.b.weight.exp_avg", "optimizer0.b.weight.exp_avg_sq",
                          "optimizer0.lr", "run_count"));
  EXPECT_FALSE(BitEqual(model.a.weight.value(), model.b.weight.value()));
}

TEST(Ties, AParameterOfAnotherShapeOrNoneIsTakenToo) {
  Linear fc(2, 2);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::Adam(graph.parameters()));
  const Tensor x = F32({1, 2}, {1, 2});
  Call(graph, {x});
  fc.weight = Parameter(Shape{3, 2}, {ir::Initializer::Kind::kConstant, 1, 0});
  fc.bias = Parameter();
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(9));  // three rows of 1 + 2
  EXPECT_THAT(Keys(*graph.state_dict()),
              ElementsAre("fc.weight", "optimizer0.applied_steps", "optimizer0.fc.weight.exp_avg",
                          "optimizer0.fc.weight.exp_avg_sq", "optimizer0.lr", "run_count"));
  EXPECT_EQ(graph.named_parameters().size(), 1u);
}

TEST(Ties, ALayerWithoutBiasMayBeGivenOne) {
  Linear fc(2, 1, /*with_bias=*/false), other(2, 1);
  FnGraph graph([&](const Values& in) -> Values { return {fc(in[0]), other(in[0])}; });
  graph.add_module("fc", fc);
  graph.add_module("other", other);
  const Tensor x = F32({1, 2}, {0, 0});
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(0));
  fc.bias = other.bias;
  ASSERT_TRUE(other.bias.set_value(F32({1}, {7})).ok());
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(7));
  EXPECT_EQ(graph.state_dict()->count("fc.bias"), 1u);
}

TEST(Ties, WithoutAnyParameterLeftAnOptimizerIsAnError) {
  Linear fc(2, 1, false);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters()));
  fc.weight = Parameter();
  EXPECT_EQ(Message(CallStatus(graph, {F32({1}, {1})})),
            "optimizer0: none of its parameters is part of this graph any more");
}

TEST(Ties, BuffersToo) {
  BatchNorm2d a(1), b(1);
  FnGraph graph([&](const Values& in) -> Values { return {b(a(in[0]))}; });
  graph.add_module("a", a);
  graph.add_module("b", b);
  graph.eval();
  const Tensor x = F32({1, 1, 1, 1}, {3});
  Call(graph, {x});
  b.running_mean = a.running_mean;
  ASSERT_TRUE(a.running_mean.set_value(F32({1}, {3})).ok());
  EXPECT_THAT(Call1(graph, {x})[0], ::testing::DoubleNear(-3, 1e-4));  // (3 - 3) / 1, then 0 - 3
  EXPECT_EQ(graph.state_dict()->at("b.running_mean").item(), 3);
}

TEST(Ties, BuildThatAssignsOtherParametersAtEveryCallIsAnError) {
  Linear fc(1, 1, false);
  FnGraph graph([&](const Values& in) -> Values {
    fc.weight = Parameter(Shape{1, 1}, {});
    return {fc(in[0])};
  });
  graph.add_module("fc", fc);
  const absl::Status status = CallStatus(graph, {F32({1, 1}, {1})});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "graph @graph: build() assigns other parameters at every call; "
            "expected the same, or none");
}

// To read the lists ties nothing.
TEST(Ties, ListsOfParametersAreCopies) {
  BatchNorm2d norm(2);
  Linear fc(2, 2);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("norm", norm);
  graph.add_module("fc", fc);
  std::vector<std::string> names;
  for (const auto& entry : graph.named_parameters()) names.push_back(entry.first);
  EXPECT_THAT(names, ElementsAre("norm.weight", "norm.bias", "fc.weight", "fc.bias"));
  EXPECT_EQ(graph.state_dict()->size(), 8u);  // three buffers and run_count
  EXPECT_EQ(norm.running_mean.shape(), Shape{2});
  EXPECT_FALSE(norm.running_mean.requires_grad());
}

TEST(Ties, TwoGraphsThatShareTheModulesSeeThem) {
  Linear a(2, 2, false), b(2, 2, false);
  const auto forward = [&](const Values& in) -> Values { return {b(a(in[0]))}; };
  FnGraph one(forward), two(forward);
  for (FnGraph* graph : {&one, &two}) {
    graph->add_module("a", a);
    graph->add_module("b", b);
    Call(*graph, {kTiedInput});
  }
  b.weight = a.weight;
  EXPECT_EQ(Call1(one, {kTiedInput}), Call1(two, {kTiedInput}));
  for (FnGraph* graph : {&one, &two}) {
    const StateDict state = *graph->state_dict();
    EXPECT_EQ(state.at("a.weight").raw(), state.at("b.weight").raw());
  }
}

// Both names are saved, one tensor; either name is enough, different values are an error.
TEST(TiedState, EitherNameIsEnough) {
  TiedPair saved(true);
  saved.AddOptimizer();
  TrainSteps(saved, 2);
  const StateDict state = *saved.state_dict();
  EXPECT_EQ(state.at("a.weight").raw(), state.at("b.weight").raw());
  for (const char* left_out : {"a.weight", "b.weight", ""}) {
    StateDict part = state;
    part.erase(left_out);
    TiedPair model(true);
    model.AddOptimizer();
    const auto report = model.load_state_dict(part);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->missing, IsEmpty());
    ASSERT_TRUE(model.compile({kTiedInput}).ok());
    ExpectSameState(model, saved);
  }
}

TEST(TiedState, DifferentValuesAreAnErrorThatNamesBoth) {
  TiedPair model(true);
  model.AddOptimizer();
  StateDict state = *model.state_dict();
  const Tensor before = model.a.weight.value();
  state["b.weight"] = F32({2, 2}, {1, 2, 3, 4});
  for (const bool strict : {true, false}) {
    EXPECT_EQ(Message(model.load_state_dict(state, strict).status()),
              "load_state_dict: \"a.weight\" and \"b.weight\" are one tensor here, "
              "and differ in the state");
    EXPECT_TRUE(BitEqual(model.a.weight.value(), before));
  }
  // Equal bytes in two tensors, as they come from NumPy.
  state["b.weight"] = state.at("a.weight").Clone();
  EXPECT_TRUE(model.load_state_dict(state).ok());
}

TEST(TiedState, SlotsAreFoundUnderAnyOfTheNames) {
  TiedPair saved(true, /*b_first=*/true);  // its slots are b's
  saved.AddOptimizer();
  TrainSteps(saved, 2);
  StateDict state = *saved.state_dict();
  ASSERT_EQ(state.count("optimizer0.b.weight.exp_avg"), 1u);
  for (const bool compiled : {false, true}) {
    TiedPair model(true);
    model.AddOptimizer();
    if (compiled) TrainSteps(model, 1);
    const auto report = model.load_state_dict(state);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->unexpected, IsEmpty());
    EXPECT_THAT(report->missing, IsEmpty());
    ASSERT_TRUE(model.compile({kTiedInput}).ok());
    EXPECT_TRUE(BitEqual(model.state_dict()->at("optimizer0.a.weight.exp_avg"),
                         state.at("optimizer0.b.weight.exp_avg")));
  }
  TiedPair model(true);
  model.AddOptimizer();
  state["optimizer0.a.weight.exp_avg"] = F32({2, 2}, {9, 9, 9, 9});
  EXPECT_EQ(Message(model.load_state_dict(state).status()),
            "load_state_dict: \"optimizer0.a.weight.exp_avg\" "
            "and \"optimizer0.b.weight.exp_avg\" of the state both become "
            "\"optimizer0.a.weight.exp_avg\", with different values");
}

TEST(TiedState, GoesIntoAnUntiedModelAndNotBackOnceItDiffers) {
  TiedPair tied(true), untied;
  tied.AddOptimizer();
  untied.AddOptimizer();
  ASSERT_TRUE(untied.load_state_dict(*tied.state_dict()).ok());
  EXPECT_TRUE(BitEqual(untied.b.weight.value(), tied.a.weight.value()));
  ASSERT_TRUE(tied.load_state_dict(*untied.state_dict()).ok());
  TrainSteps(untied, 1);
  EXPECT_FALSE(tied.load_state_dict(*untied.state_dict()).ok());
}

TEST(TiedState, TieAfterALoadBeforeTheFirstCallKeepsTheSlotsThatWait) {
  TiedPair saved;
  saved.AddOptimizer();
  TrainSteps(saved, 2);
  const StateDict state = *saved.state_dict();
  TiedPair model;
  model.AddOptimizer();
  ASSERT_TRUE(model.load_state_dict(state).ok());
  model.a.weight = model.b.weight;
  ASSERT_TRUE(model.compile({kTiedInput}).ok());
  const StateDict after = *model.state_dict();
  EXPECT_TRUE(BitEqual(after.at("a.weight"), state.at("b.weight")));
  EXPECT_TRUE(
      BitEqual(after.at("optimizer0.a.weight.exp_avg"), state.at("optimizer0.b.weight.exp_avg")));
  EXPECT_EQ(after.count("optimizer0.b.weight.exp_avg"), 0u);
}

}  // namespace
}  // namespace halftone::nn
