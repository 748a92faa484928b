// build() describes a step: what changes the graph or its modules there is an error at that line.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A graph of one layer that calls `change` inside build().
class Changing : public FnGraph {
 public:
  using Change = std::function<void(Changing&)>;
  explicit Changing(Change change)
      : FnGraph([this](const Values& in) -> Values {
          this->change(*this);
          return {fc(in[0])};
        }),
        change(std::move(change)) {
    add_module("fc", fc);
  }
  Linear fc{1, 1};
  Linear other{1, 1};
  OptimizerHandle sgd;
  Change change;
};

struct Mistake {
  const char* function;
  int line;
  Changing::Change change;
};

class InsideBuild : public ::testing::TestWithParam<Mistake> {};

TEST_P(InsideBuild, F69IsAnErrorAtTheLineAndChangesNothing) {
  const Mistake& mistake = GetParam();
  Changing graph(mistake.change);
  const size_t state = graph.state_dict()->size();
  for (int call = 0; call < 2; ++call) {
    const absl::Status status = CallStatus(graph, {F32({1, 1}, {1})});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(Message(status), Concat("inside_build_test.cc:", mistake.line, ": ", mistake.function,
                                      "() was called inside build(), which only describes the "
                                      "step; expected a call outside of it"));
  }
  EXPECT_TRUE(graph.is_training());
  EXPECT_TRUE(graph.fc.is_training());
  EXPECT_EQ(graph.fc.amp_request(), 0);
  EXPECT_EQ(graph.device(), Device());
  EXPECT_EQ(graph.state_dict()->size(), state);
  // The mistake is over once build() no longer makes it.
  graph.change = [](Changing&) {};
  EXPECT_TRUE(CallStatus(graph, {F32({1, 1}, {1})}).ok());
}

std::vector<Mistake> Mistakes() {
  return {
      {"eval", __LINE__, [](Changing& g) { g.eval(); }},
      {"train", __LINE__, [](Changing& g) { g.train(); }},
      {"to", __LINE__, [](Changing& g) { g.to(Device::Reference()); }},
      {"add_module", __LINE__, [](Changing& g) { g.add_module("x", g.other); }},
      {"add_parameter", __LINE__, [](Changing& g) { g.add_parameter("x", g.other.bias); }},
      {"add_optimizer", __LINE__, [](Changing& g) { g.add_optimizer(optim::SGD(g.parameters())); }},
      {"set_grad_scaler", __LINE__, [](Changing& g) { g.set_grad_scaler(amp::GradScaler()); }},
      {"add_scaler", __LINE__, [](Changing& g) { g.add_scaler(amp::GradScaler()); }},
      {"eval", __LINE__, [](Changing& g) { g.fc.eval(); }},
      {"train", __LINE__, [](Changing& g) { g.fc.train(); }},
      {"freeze", __LINE__, [](Changing& g) { g.fc.freeze(); }},
      {"unfreeze", __LINE__, [](Changing& g) { g.fc.unfreeze(); }},
      {"keep_fp32", __LINE__, [](Changing& g) { g.fc.keep_fp32(); }},
      {"allow_low", __LINE__, [](Changing& g) { g.fc.allow_low(); }}};
}

INSTANTIATE_TEST_SUITE_P(Functions, InsideBuild, ::testing::ValuesIn(Mistakes()),
                         [](const auto& info) {
                           return Concat(info.param.function, "_line", info.param.line);
                         });

TEST(InsideBuildOthers, OtherGraphsAndModulesMayChange) {
  // A module that is no part of this graph, and a graph that is made and called meanwhile.
  Changing graph([](Changing& g) {
    g.other.freeze();
    Changing inner([](Changing&) {});
    inner.eval();
    inner.fc.eval();
    EXPECT_TRUE(CallStatus(inner, {F32({1, 1}, {1})}).ok());
  });
  EXPECT_TRUE(CallStatus(graph, {F32({1, 1}, {1})}).ok());
  EXPECT_TRUE(graph.other.is_frozen());
}

TEST(InsideBuildOthers, TheBuildOfAnotherGraphIsNoWayOut) {
  Changing graph([](Changing& g) {
    Changing inner([&g](Changing&) { g.eval(); });
    (void)CallStatus(inner, {F32({1, 1}, {1})});
  });
  EXPECT_THAT(Message(CallStatus(graph, {F32({1, 1}, {1})})),
              HasSubstr("eval() was called inside build()"));
}

TEST(InsideBuildOthers, AGraphDoesNotCallItself) {
  absl::Status inner;
  Changing graph([&inner](Changing& g) { inner = CallStatus(g, {F32({1, 1}, {1})}); });
  EXPECT_TRUE(CallStatus(graph, {F32({1, 1}, {1})}).ok());
  EXPECT_EQ(inner.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(inner), "graph @graph was called inside its own build()");
}

// What is returned as a status is the error of the call too; state and configuration stay.
class StateInsideBuild : public ::testing::TestWithParam<
                             std::pair<const char*, std::function<absl::Status(Changing&)>>> {};

TEST_P(StateInsideBuild, F69IsAnErrorAndChangesNothing) {
  const auto& [function, change] = GetParam();
  absl::Status returned;
  Changing graph([&](Changing& g) { returned = change(g); });
  graph.sgd = graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.5}));
  const ScalerHandle scaler = graph.set_grad_scaler(amp::GradScaler({.init_scale = 8}));
  const StateDict before = *graph.state_dict();
  const absl::Status status = CallStatus(graph, {F32({1, 1}, {1})});
  EXPECT_EQ(returned.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr(Concat(function, "() was called inside build(), which")));
  EXPECT_EQ(graph.sgd.lr(), 0.5);
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_TRUE(graph.fc.weight.requires_grad());
  const StateDict after = *graph.state_dict();
  for (const auto& [name, value] : before) {
    EXPECT_EQ(after.at(name).ToVector(), value.ToVector()) << name;
  }
}

// The state with every number one more.
StateDict Other(const StateDict& state) {
  StateDict other;
  for (const auto& [name, value] : state) {
    other[name] = Tensor::Full(value.dtype(), value.shape(), value.at(0) + 1);
  }
  return other;
}

INSTANTIATE_TEST_SUITE_P(
    Functions, StateInsideBuild,
    ::testing::Values(
        std::pair("set_lr", [](Changing& g) { return g.sgd.set_lr(1); }),
        std::pair("set_lr", [](Changing& g) { return g.sgd.group(0).set_lr(1); }),
        std::pair("set_scale", [](Changing& g) { return g.grad_scaler().set_scale(1); }),
        std::pair("load_state_dict",
                  [](Changing& g) {
                    return g.grad_scaler().load_state_dict(*g.grad_scaler().state_dict());
                  }),
        std::pair("load_state_dict",
                  [](Changing& g) {
                    return g.load_state_dict(Other(*g.fc.state_dict()), false).status();
                  }),
        std::pair("load_state_dict",
                  [](Changing& g) {
                    return g.fc.load_state_dict(Other(*g.fc.state_dict())).status();
                  }),
        std::pair("set_value", [](Changing& g) { return g.fc.bias.set_value(F32({1}, {7})); }),
        std::pair("set_requires_grad", [](Changing& g) {
          g.fc.weight.set_requires_grad(false);
          return FailedPrecondition("none returned");
        })));

TEST(InsideBuildOthers, F69TheConfigurationStays) {
  using Change = std::function<void(GraphConfig&)>;
  for (const Change& change :
       {Change([](GraphConfig& c) { c.enable_amp(true, {.dtype = DType::kF16}); }),
        Change([](GraphConfig& c) { c.seed = 7; }),
        Change([](GraphConfig& c) { c.cache_size = 1; }),
        Change([](GraphConfig& c) { c.clip_grad_norm = 1; })}) {
    Changing graph([&](Changing& g) { change(g.config); });
    const GraphConfig before = graph.config;
    for (int call = 0; call < 2; ++call) {
      const absl::Status status = CallStatus(graph, {F32({1, 1}, {1})});
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(Message(status),
                "graph @graph: build() changed the configuration, though it only describes the "
                "step; expected the change before the call");
      EXPECT_TRUE(graph.config == before);
    }
    graph.change = [](Changing&) {};
    EXPECT_TRUE(CallStatus(graph, {F32({1, 1}, {1})}).ok());
  }
}

// Layers made while forward() runs, as some do in other frameworks.
class Lazy : public Module {
 public:
  Value forward(const Value& x) override {
    layers.push_back(std::make_unique<Linear>(1, 1));
    register_module("fc", *layers.back());
    return (*layers.back())(x);
  }
  std::vector<std::unique_ptr<Linear>> layers;
};

TEST(InsideBuildOthers, ModulesGetNoMembers) {
  Lazy lazy;
  FnGraph graph([&](const Values& in) -> Values { return {lazy(in[0])}; });
  graph.add_module("lazy", lazy);
  EXPECT_EQ(Message(CallStatus(graph, {F32({1, 1}, {1})})),
            Concat("inside_build_test.cc:", __LINE__ - 3,
                   ": register_module() was called inside build(), which only describes the step; "
                   "expected a call outside of it"));
  EXPECT_TRUE(lazy.children().empty());
}

// Only training makes the automatic scaler: where an evaluation asks for it, there is none.
TEST(InsideBuildOthers, TheAutomaticScalerIsNotMadeByAnEvaluation) {
  absl::Status asked;
  Changing graph([&asked](Changing& g) { asked = g.grad_scaler().state_dict().status(); });
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  graph.eval();
  EXPECT_THAT(Message(CallStatus(graph, {F32({1, 1}, {1})})),
              HasSubstr("set_grad_scaler() was called inside build(), which only"));
  EXPECT_EQ(Message(asked),
            "state_dict: graph @graph has no grad scaler; expected set_grad_scaler");
}

}  // namespace
}  // namespace halftone::nn
