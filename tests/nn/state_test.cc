// state_dict and load_state_dict of graphs, optimizers and scalers.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One linear layer trained with Adam on a sum.
class StateModel : public FnGraph {
 public:
  explicit StateModel(uint64_t seed = 0)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(fc(in[0]) * in[0]);
          loss.backward();
          return {loss};
        }),
        fc(2, 2) {
    config.seed = seed;
    add_module("fc", fc);
    optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 0.5}));
  }
  Linear fc;
  OptimizerHandle optimizer;
};

const Tensor kStateInput = F32({1, 2}, {1, -2});

std::vector<std::string> StateKeys(const StateDict& state) {
  std::vector<std::string> keys;
  for (const auto& entry : state) keys.push_back(entry.first);
  return keys;
}

TEST(StateDict, NamesBeforeAndAfterTheFirstCall) {
  StateModel model;
  const auto before = model.state_dict();
  ASSERT_TRUE(before.ok());
  EXPECT_THAT(StateKeys(*before), ElementsAre("fc.bias", "fc.weight", "optimizer0.applied_steps",
                                              "optimizer0.lr", "run_count"));
  Call(model, {kStateInput});
  const auto after = model.state_dict();
  ASSERT_TRUE(after.ok());
  for (const char* name : {"optimizer0.fc.weight.exp_avg", "optimizer0.fc.bias.exp_avg_sq"}) {
    EXPECT_EQ(after->count(name), 1u) << name;
  }
  EXPECT_EQ(after->at("optimizer0.applied_steps").item(), 1);
  EXPECT_EQ(after->at("run_count").item(), 1);
}

TEST(StateDict, IsACopy) {
  StateModel model;
  const auto state = model.state_dict();
  ASSERT_TRUE(state.ok());
  const Tensor before = state->at("fc.weight").Clone();
  Call(model, {kStateInput});
  EXPECT_TRUE(BitEqual(state->at("fc.weight"), before));
  EXPECT_FALSE(BitEqual(model.fc.weight.value(), before));
}

TEST(StateDict, ResumesExactlyBeforeAndAfterTheFirstCompile) {
  StateModel reference;
  for (int i = 0; i < 3; ++i) Call(reference, {kStateInput});
  const auto state = reference.state_dict();
  ASSERT_TRUE(state.ok());
  for (int i = 0; i < 3; ++i) Call(reference, {kStateInput});

  for (const bool compiled : {false, true}) {
    StateModel model(/*seed=*/17);
    if (compiled) Call(model, {kStateInput});
    const auto report = model.load_state_dict(*state);
    ASSERT_TRUE(report.ok()) << Message(report.status());
    EXPECT_THAT(report->missing, IsEmpty());
    EXPECT_THAT(report->unexpected, IsEmpty());
    EXPECT_EQ(model.run_count(), 3u);
    EXPECT_EQ(model.optimizer.applied_steps(), 3);
    for (int i = 0; i < 3; ++i) Call(model, {kStateInput});
    EXPECT_TRUE(BitEqual(model.fc.weight.value(), reference.fc.weight.value())) << compiled;
    EXPECT_TRUE(BitEqual(model.fc.bias.value(), reference.fc.bias.value())) << compiled;
  }
}

TEST(StateDict, SavedAgainBeforeCompilingKeepsWhatWasLoaded) {
  StateModel reference;
  Call(reference, {kStateInput});
  const auto state = reference.state_dict();
  ASSERT_TRUE(state.ok());
  StateModel model;
  ASSERT_TRUE(model.load_state_dict(*state).ok());
  const auto again = model.state_dict();
  ASSERT_TRUE(again.ok());
  ASSERT_EQ(StateKeys(*again), StateKeys(*state));
  for (const auto& [name, value] : *state) EXPECT_TRUE(BitEqual(again->at(name), value)) << name;
}

TEST(StateDict, DifferencesAreErrorsThatChangeNothing) {
  StateModel model;
  auto state = *model.state_dict();
  const Tensor weight = model.fc.weight.value();
  state["fc.weight"] = F32({2, 2}, {9, 9, 9, 9});
  state.erase("fc.bias");
  state["head.weight"] = F32({1}, {1});
  EXPECT_EQ(Message(model.load_state_dict(state).status()),
            "load_state_dict: missing: fc.bias; unexpected: head.weight");
  EXPECT_TRUE(BitEqual(model.fc.weight.value(), weight));

  const auto report = model.load_state_dict(state, /*strict=*/false);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->missing, ElementsAre("fc.bias"));
  EXPECT_THAT(report->unexpected, ElementsAre("head.weight"));
  EXPECT_EQ(model.fc.weight.value().at(0), 9);

  state["fc.weight"] = F32({4}, {1, 1, 1, 1});
  const absl::Status status = model.load_state_dict(state).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "load_state_dict: \"fc.weight\" is f32[4], expected f32[2,2]; missing: fc.bias; "
            "unexpected: head.weight");
  EXPECT_EQ(model.fc.weight.value().at(0), 9);
}

TEST(StateDict, OptimizerStateIsCheckedBeforeAndAfterCompiling) {
  for (const bool compiled : {false, true}) {
    StateModel model;
    auto state = *model.state_dict();
    if (compiled) {
      Call(model, {kStateInput});
      state = *model.state_dict();
    }
    state["optimizer0.fc.bias.exp_avg"] = F32({3}, {0, 0, 0});
    state["optimizer0.fc.bias.momentum_buffer"] = F32({2}, {0, 0});
    EXPECT_EQ(Message(model.load_state_dict(state).status()),
              "load_state_dict: \"optimizer0.fc.bias.exp_avg\" is f32[3], expected f32[2]; "
              "unexpected: optimizer0.fc.bias.momentum_buffer");
  }
}

TEST(StateDict, RunCountIsOptionalAndTyped) {
  StateModel model;
  auto state = *model.state_dict();
  state["run_count"] = F32({}, {1});
  EXPECT_EQ(Message(model.load_state_dict(state).status()),
            "load_state_dict: \"run_count\" is f32[], expected i64[]");
  state["run_count"] = Tensor();
  EXPECT_EQ(Message(model.load_state_dict(state).status()),
            "load_state_dict: \"run_count\" is an undefined tensor, expected i64[]");
  state.erase("run_count");
  EXPECT_TRUE(model.load_state_dict(state).ok());
}

TEST(Initialisation, FollowsSeedAndName) {
  StateModel a(1), b(1), c(2);
  for (StateModel* model : {&a, &b, &c}) ASSERT_TRUE(model->initialize().ok());
  EXPECT_TRUE(BitEqual(a.fc.weight.value(), b.fc.weight.value()));
  EXPECT_FALSE(BitEqual(a.fc.weight.value(), c.fc.weight.value()));
}

// w * c with a scaler: the gradient is the input c, scaled.
class StateProbe : public FnGraph {
 public:
  explicit StateProbe(const amp::GradScalerOptions& options)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(w * in[0]);
          loss.backward();
          return {loss};
        }),
        w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("w", w);
    optimizer = add_optimizer(optim::SGD(parameters(), {.lr = 0.5}));
    scaler = set_grad_scaler(amp::GradScaler(options));
  }
  Parameter w;
  OptimizerHandle optimizer;
  ScalerHandle scaler;
};

using testing::kInf;

TEST(Scaler, SkipsAndReports) {
  StateProbe probe({.init_scale = 1024, .growth_interval = 2});
  EXPECT_EQ(probe.scaler.scale(), 1024);
  Call(probe, {F32({1}, {kInf})});
  EXPECT_TRUE(probe.last_step_skipped());
  EXPECT_TRUE(probe.optimizer.last_step_skipped());
  EXPECT_EQ(probe.optimizer.grad_norm(), kInf);
  EXPECT_EQ(probe.first_nonfinite_param(), "w");
  EXPECT_EQ(probe.w.value().item(), 1);
  EXPECT_EQ(probe.scaler.scale(), 512);
  EXPECT_EQ(probe.scaler.skipped_count(), 1);
  EXPECT_EQ(probe.scaler.consecutive_skips(), 1);
  EXPECT_EQ(probe.optimizer.applied_steps(), 0);
  Call(probe, {F32({1}, {1})});
  EXPECT_FALSE(probe.last_step_skipped());
  EXPECT_EQ(probe.first_nonfinite_param(), "");
  EXPECT_EQ(probe.w.value().item(), 0.5);
  EXPECT_EQ(probe.optimizer.grad_norm(), 1);
  EXPECT_EQ(probe.scaler.growth_tracker(), 1);
  Call(probe, {F32({1}, {1})});
  EXPECT_EQ(probe.scaler.scale(), 1024);
  EXPECT_EQ(probe.scaler.total_steps(), 3);
  EXPECT_EQ(probe.builds, 1);
}

TEST(Scaler, StateLoadsBeforeTheFirstCall) {
  StateProbe saved({.init_scale = 2048, .growth_interval = 2});
  Call(saved, {F32({1}, {kInf})});
  Call(saved, {F32({1}, {1})});
  const auto state = saved.scaler.state_dict();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->at("scale"), 1024);
  EXPECT_EQ(state->at("_growth_tracker"), 1);

  StateProbe fresh({.init_scale = 2048});
  ASSERT_TRUE(fresh.scaler.load_state_dict(*state).ok());
  EXPECT_EQ(fresh.scaler.scale(), 1024);
  EXPECT_EQ(fresh.scaler.growth_tracker(), 1);
  // The growth interval came along.
  Call(fresh, {F32({1}, {1})});
  EXPECT_EQ(fresh.scaler.scale(), 2048);
  EXPECT_EQ(fresh.scaler.growth_tracker(), 0);

  StateProbe whole({.init_scale = 2048, .growth_interval = 2});
  ASSERT_TRUE(whole.load_state_dict(*saved.state_dict()).ok());
  EXPECT_EQ(whole.scaler.scale(), 1024);
  EXPECT_EQ(whole.w.value().item(), 0.5);
}

TEST(Scaler, SetScale) {
  StateProbe probe({.init_scale = 4});
  ASSERT_TRUE(probe.scaler.set_scale(8).ok());
  Call(probe, {F32({1}, {1})});
  EXPECT_EQ(probe.scaler.scale(), 8);
  EXPECT_EQ(Message(probe.scaler.set_scale(0)),
            "set_scale: scale = 0; expected a finite f32 > 0 whose inverse is finite");
  for (const double bad : {-1.0, 1e39, 1e-40, double{kInf}, std::nan("")}) {
    EXPECT_FALSE(probe.scaler.set_scale(bad).ok()) << bad;
  }
  EXPECT_EQ(probe.scaler.scale(), 8);
}

TEST(Scaler, TooManySkipsInARowAreAnError) {
  StateProbe probe({.init_scale = 1024, .max_consecutive_skips = 2});
  Call(probe, {F32({1}, {kInf})});
  Call(probe, {F32({1}, {kInf})});
  const absl::Status status = CallStatus(probe, {F32({1}, {kInf})});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "scaler0: 3 steps in a row were skipped; limit 2; first non-finite gradient: w; "
            "first non-finite value: input in0 f32[1]: 1 of 1 element is not finite in what the "
            "step was given");
  EXPECT_EQ(probe.w.value().item(), 1);
}

TEST(Scaler, SeveralScalersEachWithItsLoss) {
  Parameter u(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  Parameter v(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  ScalerHandle s, t;
  FnGraph graph([&](const Values& in) -> Values {
    sum(u * in[0]).backward({.scaler = s});
    sum(v * in[1]).backward({.scaler = t});
    return {u, v};
  });
  graph.add_parameter("u", u);
  graph.add_parameter("v", v);
  s = graph.add_scaler(amp::GradScaler({.init_scale = 64}));
  t = graph.add_scaler(amp::GradScaler({.init_scale = 32}));
  OptimizerHandle ou = graph.add_optimizer(optim::SGD({u.storage()}, {.lr = 0.5, .scaler = s}));
  OptimizerHandle ov = graph.add_optimizer(optim::SGD({v.storage()}, {.lr = 0.5, .scaler = t}));
  Call(graph, {F32({1}, {kInf}), F32({1}, {1})});
  EXPECT_EQ(u.value().item(), 1);
  EXPECT_EQ(v.value().item(), 0.5);
  EXPECT_TRUE(ou.last_step_skipped());
  EXPECT_FALSE(ov.last_step_skipped());
  EXPECT_TRUE(graph.last_step_skipped());
  EXPECT_EQ(s.scale(), 32);
  EXPECT_EQ(t.scale(), 32);
}

TEST(Scaler, SetTwiceIsAnError) {
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  graph.set_grad_scaler(amp::GradScaler());
  graph.set_grad_scaler(amp::GradScaler());
  EXPECT_THAT(Message(CallStatus(graph, {F32({1}, {1})})),
              HasSubstr("set_grad_scaler was called twice"));
}

}  // namespace
}  // namespace halftone::nn
