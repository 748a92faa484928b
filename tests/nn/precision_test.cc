// Mixed precision as a user of nn::Graph asks for it. On the reference device, which has a kernel
// of every dtype, so that decisions do not depend on the processor.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Dtypes of the compiled nodes of op `op`, in order.
std::vector<DType> DTypesOf(const Graph& graph, const std::string& op) {
  std::vector<DType> dtypes;
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->op().name == op) dtypes.push_back(node->output_type().dtype);
  }
  return dtypes;
}

class TwoLayers : public FnGraph {
 public:
  TwoLayers()
      : FnGraph([this](const Values& in) -> Values {
          const Value h = relu(body(in[0]));
          return {head(h)};
        }),
        body(64, 64),
        head(64, 64) {
    add_module("body", body);
    add_module("head", head);
    to(Device::Reference());
  }
  Linear body, head;
};

const Tensor& Input() {
  static const auto* const x = new Tensor(testing::RandomTensor(DType::kF32, {64, 64}, 1));
  return *x;
}

TEST(EnableAmp, LowersLinearLayersAndKeepsOutputTypes) {
  for (const DType low : {DType::kF16, DType::kBF16}) {
    TwoLayers graph;
    graph.config.enable_amp(true, {.dtype = low});
    const std::vector<Tensor> out = Call(graph, {Input()});
    EXPECT_THAT(DTypesOf(graph, "linear"), ElementsAre(low, low));
    EXPECT_EQ(out.at(0).dtype(), DType::kF32);
    EXPECT_THAT(graph.amp_summary(), HasSubstr("3 of 3 nodes in 16 bit"));
    EXPECT_THAT(graph.amp_table(), HasSubstr("head/linear_1"));
  }
}

TEST(EnableAmp, LowOutputs) {
  TwoLayers graph;
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  graph.config.amp_low_outputs = true;
  EXPECT_EQ(Call(graph, {Input()}).at(0).dtype(), DType::kBF16);
}

TEST(EnableAmp, OffIsF32) {
  TwoLayers graph;
  Call(graph, {Input()});
  EXPECT_THAT(DTypesOf(graph, "linear"), ElementsAre(DType::kF32, DType::kF32));
  EXPECT_THAT(DTypesOf(graph, "cast"), ElementsAre());
}

TEST(EnableAmp, DeviceWithoutALowTypeSaysSo) {
  TwoLayers graph;
  graph.config.enable_amp(true);
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(),
              ElementsAre("amp: f32 throughout: the reference device is for checking, "
                          "not for speed"));
}

TEST(UserWishes, PatternsModulesAndScopes) {
  TwoLayers pattern;
  pattern.config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"head/*"}});
  Call(pattern, {Input()});
  EXPECT_THAT(DTypesOf(pattern, "linear"), ElementsAre(DType::kBF16, DType::kF32));

  TwoLayers module;
  module.head.keep_fp32();
  module.config.enable_amp(true, {.dtype = DType::kBF16});
  Call(module, {Input()});
  EXPECT_THAT(DTypesOf(module, "linear"), ElementsAre(DType::kBF16, DType::kF32));

  TwoLayers scope;
  scope.fn = [&](const Values& in) -> Values {
    Value h;
    {
      KeepFp32 keep;
      h = relu(scope.body(in[0]));
    }
    return {scope.head(h)};
  };
  scope.config.enable_amp(true, {.dtype = DType::kBF16});
  Call(scope, {Input()});
  EXPECT_THAT(DTypesOf(scope, "linear"), ElementsAre(DType::kF32, DType::kBF16));

  // exp alone is denied.
  FnGraph allowed([](const Values& in) -> Values {
    AllowLow allow;
    return {exp(in[0])};
  });
  allowed.to(Device::Reference());
  allowed.config.enable_amp(true, {.dtype = DType::kBF16});
  Call(allowed, {Input()});
  EXPECT_THAT(DTypesOf(allowed, "exp"), ElementsAre(DType::kBF16));
}

TEST(UserWishes, MarksOfOneValue) {
  TwoLayers black;
  black.fn = [&](const Values& in) -> Values {
    return {black.head(amp_black(relu(black.body(in[0]))))};
  };
  black.config.enable_amp(true, {.dtype = DType::kF16});
  Call(black, {Input()});
  EXPECT_THAT(DTypesOf(black, "relu"), ElementsAre(DType::kF32));
  EXPECT_THAT(DTypesOf(black, "linear"), ElementsAre(DType::kF16, DType::kF16));

  FnGraph white([](const Values& in) -> Values { return {amp_white(exp(in[0])), exp(in[1])}; });
  white.to(Device::Reference());
  white.config.enable_amp(true, {.dtype = DType::kBF16});
  Call(white, {F32({2}, {0, 1}), F32({2}, {0, 1})});
  EXPECT_THAT(DTypesOf(white, "exp"), ElementsAre(DType::kBF16, DType::kF32));

  FnGraph wrong([](const Values& in) -> Values { return {amp_black(in[0])}; });
  const int line = __LINE__ - 1;
  EXPECT_THAT(Message(wrong({Input()}).status()),
              ::testing::AllOf(::testing::StartsWith(At(line)),
                               HasSubstr("amp_black: %in0 is computed by nothing: mark what is "
                                         "computed from it")));
}

TEST(UserWishes, LevelsHoldForWhatNobodyNames) {
  TwoLayers graph;
  graph.config.enable_amp(true, {.dtype = DType::kBF16, .level = amp::Level::kOnlyMatmul});
  Call(graph, {Input()});
  EXPECT_THAT(DTypesOf(graph, "linear"), ElementsAre(DType::kBF16, DType::kBF16));
  EXPECT_THAT(DTypesOf(graph, "relu"), ElementsAre(DType::kF32));
}

TEST(UserWishes, F40APatternThatMatchesNothingIsANote) {
  TwoLayers graph;
  graph.config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"haed/*"}});
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(),
              ElementsAre(HasSubstr("amp policy: deny \"haed/*\" matches no node and is no op; "
                                    "nearest: ")));
  EXPECT_THAT(DTypesOf(graph, "linear"), ElementsAre(DType::kBF16, DType::kBF16));
}

// A graph whose loss, in the scope "loss", is built in training only.
class TrainsWithLoss : public TwoLayers {
 public:
  TrainsWithLoss() : loss(64, 1) {
    fn = [this](const Values& in) -> Values {
      const Value y = head(relu(body(in[0])));
      if (!is_training()) return {y};
      const Value l = mean(loss(y));
      l.backward();
      return {l};
    };
    add_module("loss", loss);
    add_optimizer(optim::SGD(parameters(), {.lr = 0}));
    config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"loss/*"}});
  }
  Linear loss;
};

TEST(UserWishes, F40APatternThatAnotherModeNeeds) {
  TrainsWithLoss evaluated_first;
  evaluated_first.eval();
  Call(evaluated_first, {Input()});
  EXPECT_THAT(evaluated_first.notes(), ElementsAre());
  evaluated_first.train();
  Call(evaluated_first, {Input()});
  EXPECT_THAT(evaluated_first.notes(), ElementsAre());
  EXPECT_THAT(DTypesOf(evaluated_first, "linear"),
              ElementsAre(DType::kBF16, DType::kBF16, DType::kF32));

  TrainsWithLoss trained_first;
  Call(trained_first, {Input()});
  trained_first.eval();
  Call(trained_first, {Input()});
  EXPECT_THAT(trained_first.notes(), ElementsAre());
}

TEST(UserWishes, F40APatternThatOnlyEvaluationNeeds) {
  TrainsWithLoss graph;
  graph.fn = [&](const Values& in) -> Values {
    const Value y = graph.head(relu(graph.body(in[0])));
    if (!graph.is_training()) return {graph.loss(y)};
    const Value l = mean(y);
    l.backward();
    return {l};
  };
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(), ::testing::Contains(HasSubstr("deny \"loss/*\"")));
  graph.eval();
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(), Not(::testing::Contains(HasSubstr("deny \"loss/*\""))))
      << "taken back";
}

TEST(UserWishes, F40APatternThatNoModeNeeds) {
  TrainsWithLoss graph;
  graph.config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"lsos/*"}});
  graph.eval();
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(), ElementsAre()) << "training may need it";
  graph.train();
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(), ElementsAre(HasSubstr("deny \"lsos/*\" matches no node")));
  Call(graph, {Tensor::Zeros(DType::kF32, {8, 64})});
  EXPECT_EQ(graph.notes().size(), 1u) << "once";
}

TEST(UserWishes, F40ALossThatEvaluationBuildsButDoesNotReturn) {
  TrainsWithLoss graph;
  graph.fn = [&](const Values& in) -> Values {
    const Value y = graph.head(relu(graph.body(in[0])));
    const Value l = mean(graph.loss(y));
    l.backward();
    return graph.is_training() ? Values{l} : Values{y};
  };
  graph.eval();
  Call(graph, {Input()});
  EXPECT_THAT(graph.notes(), ElementsAre());
}

// A product, a cast that the user wrote, and arithmetic that 16 bit cannot do: 4096 + 0.25 - 4096.
std::vector<double> AroundACast(const amp::Policy& policy, const std::function<Value(Value)>& keep,
                                const std::vector<std::string>& ops = {}) {
  FnGraph graph([&](const Values& in) -> Values {
    const Value product = keep(matmul(in[0], in[1]));
    return {matmul((product + 0.25) - 4096.0, in[1])};
  });
  graph.to(Device::Reference());
  graph.config.enable_amp(true, policy);
  const std::vector<double> y = Call1(graph, {F32({1, 1}, {4096}), F32({1, 1}, {1})});
  for (const std::string& op : ops) {
    EXPECT_THAT(DTypesOf(graph, op), ::testing::Each(DType::kF32)) << op;
  }
  return y;
}

Value ToF32(Value x) { return cast(x, DType::kF32); }

TEST(UserCasts, F28ACastThatChangesNoTypeWhenTracedStays) {
  for (const bool trim : {false, true}) {
    EXPECT_THAT(AroundACast({.dtype = DType::kF16, .trim = trim}, ToF32, {"add", "sub"}),
                ElementsAre(0.25));
  }
  EXPECT_THAT(AroundACast({.dtype = DType::kBF16, .trim = false}, ToF32), ElementsAre(0.25));
  // Without the cast it is 16 bit between the products.
  EXPECT_THAT(AroundACast({.dtype = DType::kF16, .trim = false}, [](Value x) { return x; }),
              ElementsAre(0));
}

TEST(UserCasts, F28ChainsAndRepetitions) {
  const amp::Policy f16{.dtype = DType::kF16, .trim = false};
  EXPECT_THAT(AroundACast(f16, [](Value x) { return ToF32(ToF32(x)); }), ElementsAre(0.25));
  EXPECT_THAT(AroundACast(f16, [](Value x) { return ToF32(cast(x, DType::kF64)); }),
              ElementsAre(0.25));
  EXPECT_THAT(AroundACast(f16,
                          [](Value x) {
                            return ToF32(reshape(x, {1, 1}));
                          }),
              ElementsAre(0.25));
  EXPECT_THAT(AroundACast(f16,
                          [](Value x) {
                            return reshape(ToF32(x), {1, 1});
                          }),
              ElementsAre(0.25));
}

TEST(UserCasts, F28GradientsPass) {
  Parameter w(Shape{1, 1}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(cast(matmul(in[0], w), DType::kF32) * 3.0);
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 8}));
  graph.config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
  graph.to(Device::Reference());
  EXPECT_THAT(Call1(graph, {F32({1, 1}, {2})}), ElementsAre(6));
  EXPECT_EQ(w.value().item(), 1 - 6);
}

TEST(UserCasts, F28WhatIsRedundantInTheEndGoes) {
  const auto casts = [](const std::optional<amp::Policy>& policy) {
    FnGraph graph([](const Values& in) -> Values {
      return {cast(relu(cast(in[0], DType::kF32)), DType::kF32)};
    });
    graph.to(Device::Reference());
    if (policy.has_value()) graph.config.enable_amp(true, *policy);
    Call(graph, {F32({1}, {1})});
    return DTypesOf(graph, "cast").size();
  };
  EXPECT_EQ(casts({}), 0u);
  EXPECT_EQ(casts(amp::Policy{.dtype = DType::kF16}), 0u);
}

TEST(UserWishes, F45TheTrimLeavesAllowedNodesAlone) {
  // An island of one small node: its casts move more than it saves.
  const auto type_of_relu = [](const amp::Policy& policy, bool allow_low) {
    FnGraph graph([&](const Values& in) -> Values {
      std::optional<AllowLow> scope;
      if (allow_low) scope.emplace();
      return {relu(in[0])};
    });
    graph.to(Device::Reference());
    graph.config.enable_amp(true, policy);
    Call(graph, {F32({4}, {1, 2, 3, 4})});
    return DTypesOf(graph, "relu").at(0);
  };
  EXPECT_EQ(type_of_relu({.dtype = DType::kBF16}, false), DType::kF32);
  EXPECT_EQ(type_of_relu({.dtype = DType::kBF16, .allow = {"relu"}}, false), DType::kBF16);
  EXPECT_EQ(type_of_relu({.dtype = DType::kBF16}, true), DType::kBF16);
}

TEST(AutomaticScaler, IsMadeForF16AndDroppedForBf16) {
  for (const DType low : {DType::kF16, DType::kBF16}) {
    TwoLayers graph;
    graph.fn = [&](const Values& in) -> Values {
      const Value loss = mean(graph.head(relu(graph.body(in[0]))));
      loss.backward();
      return {loss};
    };
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
    graph.config.enable_amp(true, {.dtype = low});
    Call(graph, {Input()});
    const auto state = graph.state_dict();
    ASSERT_TRUE(state.ok());
    EXPECT_EQ(state->count("scaler0.scale"), low == DType::kF16 ? 1u : 0u);
    EXPECT_EQ(graph.grad_scaler().scale(), low == DType::kF16 ? 65536 : 1);
  }
}

TEST(SkippedSteps, BuffersStayUnlessAskedOtherwise) {
  for (const bool update : {false, true}) {
    BatchNorm2d norm(1);
    Parameter w(Shape{}, {ir::Initializer::Kind::kConstant, 1, 0});
    FnGraph graph([&](const Values& in) -> Values {
      norm(in[0]);
      const Value loss = w * in[1];
      loss.backward();
      return {loss};
    });
    graph.add_module("norm", norm);
    graph.add_parameter("w", w);
    graph.add_optimizer(optim::SGD({w.storage()}));
    graph.set_grad_scaler(amp::GradScaler());
    graph.config.update_buffers_on_skip = update;
    Call(graph, {F32({2, 1}, {1, 3}), F32({}, {INFINITY})});
    EXPECT_TRUE(graph.last_step_skipped());
    EXPECT_EQ(norm.num_batches_tracked.value().item(), update ? 1 : 0);
    EXPECT_NEAR(norm.running_mean.value().item(), update ? 0.2 : 0, 1e-6);
    Call(graph, {F32({2, 1}, {1, 3}), F32({}, {1})});
    EXPECT_EQ(norm.num_batches_tracked.value().item(), update ? 2 : 1);
  }
}

TEST(GradNorm, IsComputedWhereItIsNeededOrAskedFor) {
  enum class Need { kNothing, kTracking, kClipping, kScaler };
  for (const Need need : {Need::kNothing, Need::kTracking, Need::kClipping, Need::kScaler}) {
    Parameter w(Shape{}, {ir::Initializer::Kind::kConstant, 1, 0});
    FnGraph graph([&](const Values& in) -> Values {
      const Value loss = w * in[0];
      loss.backward();
      return {loss};
    });
    graph.add_parameter("w", w);
    OptimizerHandle optimizer = graph.add_optimizer(
        optim::SGD(graph.parameters(), {.lr = 1, .clip_norm = need == Need::kClipping ? 8.0 : 0}));
    if (need == Need::kScaler) graph.set_grad_scaler(amp::GradScaler());
    graph.config.track_grad_norm = need == Need::kTracking;
    EXPECT_TRUE(std::isnan(optimizer.grad_norm()));
    Call(graph, {F32({}, {3})});
    EXPECT_EQ(w.value().item(), -2);
    if (need == Need::kNothing) {
      EXPECT_TRUE(std::isnan(optimizer.grad_norm()));
      EXPECT_THAT(graph.compiled_text(), Not(HasSubstr("grad_stats")));
    } else {
      EXPECT_EQ(optimizer.grad_norm(), 3);
    }
  }
}

TEST(Dumps, TextAfterEachPass) {
  const std::filesystem::path dir =
      std::filesystem::path(::testing::TempDir()) / Concat("nn_dumps_", getpid());
  std::filesystem::remove_all(dir);
  TwoLayers graph;
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  graph.config.dump_dir = dir.string();
  Call(graph, {Input()});
  bool found = false;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir)) {
    found = found || file.path().filename().string().find("insert-amp-casts") != std::string::npos;
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(std::filesystem::exists(dir / "graph_0"));
  std::filesystem::remove_all(dir);

  // The same by the environment; another graph of the name has a folder of its own.
  ASSERT_EQ(setenv("HALFTONE_DUMP", dir.c_str(), 1), 0);
  TwoLayers by_environment;
  Call(by_environment, {Input()});
  unsetenv("HALFTONE_DUMP");
  EXPECT_TRUE(std::filesystem::exists(dir / "graph_1"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace halftone::nn
