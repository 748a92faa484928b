// Adagrad, Lion, NAdam and LAMB: against their formulas in double, step by step, and against what
// torch.optim gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

constexpr double kStart = 0.5;

double Gradient(int step, int i) { return std::sin(3.0 * step + i) + 0.25 * i; }

// Parameters of some sizes, whose gradients are the inputs: the loss is the sum of all w * c. All
// start at kStart.
template <typename O>
struct Weighted {
  Weighted(const std::vector<int64_t>& sizes, const typename O::Options& options) {
    graph.fn = [this](const Values& in) -> Values {
      Value loss = sum(parameters[0] * in[0]);
      for (size_t p = 1; p < parameters.size(); ++p) loss = loss + sum(parameters[p] * in[p]);
      loss.backward();
      return {loss};
    };
    for (size_t p = 0; p < sizes.size(); ++p) {
      parameters.emplace_back(Shape{sizes[p]},
                              ir::Initializer{ir::Initializer::Kind::kConstant, kStart, 0});
      graph.add_parameter(Concat("w", p), parameters[p]);
    }
    graph.add_optimizer(O(graph.parameters(), options));
  }
  // The gradients that it took, as they are in f32.
  std::vector<std::vector<double>> Step(int step) {
    std::vector<std::vector<double>> gradients;
    std::vector<Tensor> in;
    for (size_t p = 0; p < parameters.size(); ++p) {
      const int64_t size = parameters[p].value().num_elements();
      gradients.emplace_back();
      for (int64_t i = 0; i < size; ++i) {
        gradients[p].push_back(static_cast<float>(Gradient(step, static_cast<int>(10 * p + i))));
      }
      in.push_back(Tensor::Of(DType::kF32, {size}, gradients[p]));
    }
    Call(graph, in);
    return gradients;
  }
  std::vector<double> State(const std::string& name) {
    const absl::StatusOr<StateDict> state = graph.state_dict();
    return state.ok() && state->count(name) == 1 ? state->at(name).ToVector()
                                                 : std::vector<double>();
  }

  std::vector<Parameter> parameters;
  FnGraph graph;
};

void ExpectWithin(const std::vector<double>& got, const std::vector<double>& want, double error,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], error * std::max(1.0, std::abs(want[i]))) << what << " " << i;
  }
}

// 20 steps of two parameters beside `Want`, which holds what is kept of one of them: w, and what
// OfParameter() names.
template <typename O, typename Want>
void ExpectFollows(const typename O::Options& options, const Want& start) {
  const std::vector<int64_t> sizes = {5, 3};
  Weighted<O> weighted(sizes, options);
  std::vector<Want> want;
  for (const int64_t size : sizes) {
    want.push_back(start);
    want.back().Resize(static_cast<size_t>(size));
  }
  for (int step = 0; step < 20; ++step) {
    const auto gradients = weighted.Step(step);
    for (size_t p = 0; p < want.size(); ++p) want[p].Step(options, gradients[p], step + 1);
  }
  for (size_t p = 0; p < want.size(); ++p) {
    const std::string name = Concat("w", p);
    ExpectWithin(weighted.State(name), want[p].w, 2e-5, name);
    for (const auto& [state, values] : want[p].OfParameter()) {
      ExpectWithin(weighted.State("optimizer0." + name + "." + state), values, 2e-5, state);
    }
  }
}

using Doubles = std::vector<double>;
using Kept = std::vector<std::pair<std::string, Doubles>>;

struct AdagradWant {
  explicit AdagradWant(double initial = 0) : initial(initial) {}
  void Resize(size_t n) { w.assign(n, kStart), sum.assign(n, initial); }
  Kept OfParameter() const { return {{"sum", sum}}; }
  void Step(const optim::AdagradOptions& o, const Doubles& gradient, int t) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + o.weight_decay * w[i];
      sum[i] += g * g;
      w[i] -= o.lr / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(sum[i]) + o.eps);
    }
  }
  double initial;
  Doubles w, sum;
};

TEST(Adagrad, DefaultsArePyTorchs) {
  const optim::AdagradOptions o;
  EXPECT_EQ(o.lr, 1e-2);
  EXPECT_EQ(o.lr_decay, 0);
  EXPECT_EQ(o.weight_decay, 0);
  EXPECT_EQ(o.initial_accumulator_value, 0);
  EXPECT_EQ(o.eps, 1e-10);
}

TEST(Adagrad, FollowsItsFormula) {
  ExpectFollows<optim::Adagrad>({}, AdagradWant());
  ExpectFollows<optim::Adagrad>({.lr = 0.1,
                                 .lr_decay = 0.5,
                                 .weight_decay = 0.25,
                                 .initial_accumulator_value = 2,
                                 .eps = 0.5},
                                AdagradWant(2));
}

// Each group has an initial value of its own.
TEST(Adagrad, GroupsStartAsTheySay) {
  Parameter a(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0}),
      b(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(a * in[0]) + sum(b * in[0]);
    loss.backward();
    return {loss};
  });
  graph.add_parameter("a", a);
  graph.add_parameter("b", b);
  graph.add_optimizer(
      optim::Adagrad({{{a}, {}}, {{b}, {.initial_accumulator_value = 12}}}, {.lr = 1, .eps = 0}));
  Call(graph, {F32({1}, {2})});
  EXPECT_EQ(a.value().at(0), 0);    // 1 - 2 / sqrt(4)
  EXPECT_EQ(b.value().at(0), 0.5);  // 1 - 2 / sqrt(12 + 4)
}

struct LionWant {
  void Resize(size_t n) { w.assign(n, kStart), m.assign(n, 0); }
  Kept OfParameter() const { return {{"exp_avg", m}}; }
  void Step(const optim::LionOptions& o, const Doubles& g, int /*t*/) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double c = o.betas[0] * m[i] + (1 - o.betas[0]) * g[i];
      const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
      w[i] -= o.lr * (sign + o.weight_decay * w[i]);
      m[i] = o.betas[1] * m[i] + (1 - o.betas[1]) * g[i];
    }
  }
  Doubles w, m;
};

TEST(Lion, FollowsAlgorithm2) {
  const optim::LionOptions defaults;
  EXPECT_EQ(defaults.lr, 1e-4);
  EXPECT_EQ(defaults.betas, (std::array<double, 2>{0.9, 0.99}));
  EXPECT_EQ(defaults.weight_decay, 0);
  ExpectFollows<optim::Lion>({}, LionWant());
  ExpectFollows<optim::Lion>({.lr = 0.05, .betas = {0.5, 0.75}, .weight_decay = 0.5}, LionWant());
}

TEST(Lion, StaysWhereThereIsNoGradient) {
  Parameter w(Shape{2}, {ir::Initializer::Kind::kConstant, kStart, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(w * in[0]);
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::Lion({w}, {.lr = 0.25}));
  Call(graph, {F32({2}, {0, -1e-30})});
  EXPECT_EQ(w.value().at(0), 0.5);
  EXPECT_EQ(w.value().at(1), 0.75);
}

struct NAdamWant {
  void Resize(size_t n) { w.assign(n, kStart), m.assign(n, 0), v.assign(n, 0); }
  Kept OfParameter() const { return {{"exp_avg", m}, {"exp_avg_sq", v}}; }
  void Step(const optim::NAdamOptions& o, const Doubles& gradient, int t) {
    const auto [beta1, beta2] = o.betas;
    const auto mu = [&](int s) { return beta1 * (1 - 0.5 * std::pow(0.96, s * o.momentum_decay)); };
    product *= mu(t);
    for (size_t i = 0; i < w.size(); ++i) {
      double g = gradient[i];
      if (o.decoupled_weight_decay) {
        w[i] *= 1 - o.lr * o.weight_decay;
      } else {
        g += o.weight_decay * w[i];
      }
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double root = std::sqrt(v[i] / (1 - std::pow(beta2, t))) + o.eps;
      w[i] -= o.lr * (1 - mu(t)) / (1 - product) * g / root;
      w[i] -= o.lr * mu(t + 1) / (1 - product * mu(t + 1)) * m[i] / root;
    }
  }
  double product = 1;
  Doubles w, m, v;
};

TEST(NAdam, DefaultsArePyTorchs) {
  const optim::NAdamOptions o;
  EXPECT_EQ(o.lr, 2e-3);
  EXPECT_EQ(o.betas, (std::array<double, 2>{0.9, 0.999}));
  EXPECT_EQ(o.eps, 1e-8);
  EXPECT_EQ(o.weight_decay, 0);
  EXPECT_EQ(o.momentum_decay, 4e-3);
  EXPECT_FALSE(o.decoupled_weight_decay);
}

// The product of the momenta, which is computed in closed form, is multiplied up here.
TEST(NAdam, FollowsItsFormula) {
  ExpectFollows<optim::NAdam>({}, NAdamWant());
  ExpectFollows<optim::NAdam>({.lr = 0.1, .betas = {0, 0.9}, .eps = 0.1}, NAdamWant());
  ExpectFollows<optim::NAdam>({.lr = 0.01, .betas = {0.9999, 0.9}, .eps = 0.1}, NAdamWant());
  for (const double momentum_decay : {0.0, 1e-12, 0.25, 3.0, 1e4}) {
    for (const bool decoupled : {false, true}) {
      ExpectFollows<optim::NAdam>({.lr = 0.05,
                                   .betas = {0.75, 0.9},
                                   .eps = 0.1,
                                   .weight_decay = 0.5,
                                   .momentum_decay = momentum_decay,
                                   .decoupled_weight_decay = decoupled},
                                  NAdamWant());
    }
  }
}

struct LAMBWant {
  void Resize(size_t n) { w.assign(n, kStart), m.assign(n, 0), v.assign(n, 0); }
  Kept OfParameter() const { return {{"exp_avg", m}, {"exp_avg_sq", v}}; }
  void Step(const optim::LAMBOptions& o, const Doubles& g, int t) {
    const auto [beta1, beta2] = o.betas;
    double param = 0, direction = 0;
    Doubles r(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      r[i] =
          m[i] / (1 - std::pow(beta1, t)) / (std::sqrt(v[i] / (1 - std::pow(beta2, t))) + o.eps) +
          o.weight_decay * w[i];
      param += w[i] * w[i];
      direction += r[i] * r[i];
    }
    for (size_t i = 0; i < w.size(); ++i) w[i] -= o.lr * std::sqrt(param / direction) * r[i];
  }
  Doubles w, m, v;
};

TEST(LAMB, FollowsAlgorithm2) {
  const optim::LAMBOptions defaults;
  EXPECT_EQ(defaults.lr, 1e-3);
  EXPECT_EQ(defaults.betas, (std::array<double, 2>{0.9, 0.999}));
  EXPECT_EQ(defaults.eps, 1e-6);
  EXPECT_EQ(defaults.weight_decay, 0.01);
  ExpectFollows<optim::LAMB>({}, LAMBWant());
  ExpectFollows<optim::LAMB>({.lr = 0.05, .betas = {0.5, 0.75}, .eps = 0.125, .weight_decay = 0.5},
                             LAMBWant());
  ExpectFollows<optim::LAMB>({.lr = 0.05, .weight_decay = 0}, LAMBWant());
}

// |w| = 0 takes the direction as it is: at step 1 that is the sign of the gradient.
TEST(LAMB, ARatioWithoutNormIsOne) {
  Parameter zero(Shape{4}, {ir::Initializer::Kind::kConstant, 0, 0});
  Parameter idle(Shape{4}, {ir::Initializer::Kind::kConstant, 3, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(zero * in[0]) + sum(idle * in[1]);
    loss.backward();
    return {loss};
  });
  graph.add_parameter("zero", zero);
  graph.add_parameter("idle", idle);
  graph.add_optimizer(optim::LAMB(graph.parameters(), {.lr = 0.25, .weight_decay = 0}));
  Call(graph, {F32({4}, {2, -3, 5, -7}), F32({4}, {0, 0, 0, 0})});
  ExpectWithin(zero.value().ToVector(), {-0.25, 0.25, -0.25, 0.25}, 1e-6, "zero");
  EXPECT_EQ(idle.value().ToVector(), (Doubles{3, 3, 3, 3}));  // no direction, no step
}

TEST(LAMB, HasTheSameBitsWithAnyNumberOfThreads) {
  const int before = NumThreads();
  std::vector<Tensor> results;
  for (const int threads : {1, 2, 3}) {
    SetNumThreads(threads);
    Weighted<optim::LAMB> weighted({100'003, 1, 8192}, {.lr = 0.1});
    for (int step = 0; step < 3; ++step) weighted.Step(step);
    results.push_back(weighted.parameters[0].value());
    EXPECT_TRUE(BitEqual(results.back(), results[0])) << threads;
  }
  SetNumThreads(before);
}

// torch 2.15 in float64: 10 steps from 0.5 with gradient sin(3 step + i) + i / 4, steps from 0:
//   w = torch.full((4,), 0.5); o = torch.optim.Adagrad([w]); w.grad = ...; o.step()
template <typename O>
void ExpectAfterTenSteps(const typename O::Options& options, const Doubles& want) {
  Weighted<O> weighted({4}, options);
  for (int step = 0; step < 10; ++step) weighted.Step(step);
  ExpectWithin(weighted.State("w0"), want, 1e-6, O::Options::kTitle);
}

TEST(Adagrad, AgreesWithPyTorch) {
  ExpectAfterTenSteps<optim::Adagrad>({}, {0.492425716, 0.479088316, 0.477487251, 0.459569494});
  ExpectAfterTenSteps<optim::Adagrad>({.lr = 0.1,
                                       .lr_decay = 0.25,
                                       .weight_decay = 0.5,
                                       .initial_accumulator_value = 0.125,
                                       .eps = 0.01},
                                      {0.342879386, 0.326928364, 0.321592658, 0.237169933});
}

TEST(NAdam, AgreesWithPyTorch) {
  ExpectAfterTenSteps<optim::NAdam>({}, {0.498006101, 0.492938014, 0.492661927, 0.48732816});
  ExpectAfterTenSteps<optim::NAdam>(
      {.lr = 0.1, .betas = {0.8, 0.9}, .eps = 0.01, .weight_decay = 0.5, .momentum_decay = 0.5},
      {0.116422139, -0.00379440472, 0.0265322802, -0.189839843});
  ExpectAfterTenSteps<optim::NAdam>(
      {.lr = 0.1, .weight_decay = 0.5, .momentum_decay = 0, .decoupled_weight_decay = true},
      {0.2182394, 0.0144665336, 0.0129721402, -0.193855471});
}

template <typename O>
std::string Refusal(const typename O::Options& options) {
  return Message(O({Parameter(Shape{1}, {}).storage()}, options).Validate());
}

TEST(OptimizerErrors, NameOptionAndRange) {
  EXPECT_EQ(Refusal<optim::Adagrad>({.lr_decay = -1}),
            "Adagrad: lr_decay = -1; expected a number >= 0 that is finite in f32");
  EXPECT_EQ(Refusal<optim::Adagrad>({.initial_accumulator_value = -0.5}),
            "Adagrad: initial_accumulator_value = -0.5; expected a number >= 0 that is finite in "
            "f32");
  EXPECT_EQ(Refusal<optim::Lion>({.betas = {0.9, 1}}), "Lion: beta2 = 1; expected 0 <= beta < 1");
  EXPECT_EQ(Refusal<optim::NAdam>({.momentum_decay = -4e-3}),
            "NAdam: momentum_decay = -0.004; expected a number >= 0 that is finite in f32");
  EXPECT_EQ(Refusal<optim::LAMB>({.eps = 0}),
            "LAMB: eps = 0; expected a number > 0 that f32 can hold");
  EXPECT_EQ(Refusal<optim::LAMB>({.eps = 1e-60}),
            "LAMB: eps = 1e-60; expected a number > 0 that f32 can hold");
}

// Of every optimizer, whatever it is, but SparseAdam, which is for tables alone: sparse_embedding_test.
class EveryOptimizer : public ::testing::Test {
 protected:
  // visit(optimizer's type) for each.
  template <typename Visit>
  static void ForEach(const Visit& visit) {
    optim::ForEachOptions([&visit](const auto& options) {
      using Options = std::decay_t<decltype(options)>;
      if constexpr (!std::is_same_v<Options, optim::SparseAdam::Options>) {
        SCOPED_TRACE(Options::kTitle);
        visit(options);
      }
    });
  }
};

template <typename Options>
struct Trained {
  explicit Trained(Options options) : fc(4, 3), head(3, 2) {
    options.clip_norm = 0.5;
    options.lr = 0.01;
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = cross_entropy(head(relu(fc(in[0]))), in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_module("fc", fc);
    graph.add_module("head", head);
    using O = optim::OptimizerWith<Options>;
    const auto [biases, weights] = graph.split_parameters({"*.bias"});
    optimizer = graph.add_optimizer(O({{weights, {}}, {biases, {.lr = 0.02}}}, options));
    graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
    graph.config.enable_amp(true, {.dtype = DType::kF16});
  }
  void Step(int step, double factor = 1) {
    Tensor x = testing::RandomTensor(DType::kF32, {6, 4}, 10 + step);
    for (int i = 0; i < 24; ++i) x.set(i, factor * x.at(i));
    Call(graph, {x, I64({6}, {0, 1, 0, 1, 1, 0})});
  }

  Linear fc, head;
  FnGraph graph;
  OptimizerHandle optimizer;
};

void ExpectSameState(const StateDict& got, const StateDict& want, const std::string& but = "") {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    if (name == "run_count" || name == "optimizer0.first_nonfinite") continue;
    if (!but.empty() && name.rfind(but, 0) == 0) continue;
    EXPECT_TRUE(BitEqual(got.at(name), tensor)) << name;
  }
}

TEST_F(EveryOptimizer, KeepsItsStateInASkippedStep) {
  ForEach([](const auto& options) {
    Trained model(options), twin(options);
    for (int step = 0; step < 3; ++step) model.Step(step), twin.Step(step);
    const StateDict before = *model.graph.state_dict();
    model.Step(3, std::numeric_limits<double>::infinity());
    EXPECT_TRUE(model.optimizer.last_step_skipped());
    ExpectSameState(*model.graph.state_dict(), before, "scaler");
    // And the next step is the one that would have come.
    model.Step(4), twin.Step(4);
    ExpectSameState(*model.graph.state_dict(), *twin.graph.state_dict(), "scaler");
  });
}

TEST_F(EveryOptimizer, GoesOnFromItsState) {
  ForEach([](const auto& options) {
    Trained whole(options), first(options), second(options);
    for (int step = 0; step < 6; ++step) whole.Step(step);
    for (int step = 0; step < 3; ++step) first.Step(step);
    ASSERT_TRUE(second.graph.load_state_dict(*first.graph.state_dict()).ok());
    for (int step = 3; step < 6; ++step) second.Step(step);
    ExpectSameState(*second.graph.state_dict(), *whole.graph.state_dict());
  });
}

TEST_F(EveryOptimizer, MovesEveryParameter) {
  ForEach([](const auto& options) {
    Trained model(options);
    model.Step(0);
    const StateDict before = *model.graph.state_dict();
    model.Step(1);
    const StateDict after = *model.graph.state_dict();
    for (const char* name : {"fc.weight", "fc.bias", "head.weight", "head.bias"}) {
      EXPECT_FALSE(BitEqual(before.at(name), after.at(name))) << name;
    }
  });
}

}  // namespace
}  // namespace halftone::nn
