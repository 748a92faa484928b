// Gradients of several micro-batches for one update: within a call, and over calls.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "halftone/core/alloc_counter.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/allocation_hook.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::kInf;

// One parameter, which begins as 0 and has the input as its gradient.
struct ProbedSum {
  explicit ProbedSum(optim::SGDOptions options = {.lr = 1}) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]);
      loss.backward();
      return {loss};
    };
    graph.add_parameter("w", w);
    optimizer = graph.add_optimizer(optim::SGD({w}, options));
  }
  double After(double gradient) {
    Call(graph, {F32({1}, {gradient})});
    return w.value().item();
  }

  Parameter w = Parameter(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0});
  FnGraph graph;
  OptimizerHandle optimizer;
};

// Rows [first, first + count) of x and y.
std::vector<Tensor> RowsOf(const std::vector<Tensor>& of, int64_t first, int64_t count) {
  std::vector<Tensor> rows;
  for (const Tensor& whole : of) {
    std::vector<int64_t> dims(whole.shape().dims().begin(), whole.shape().dims().end());
    const int64_t row = whole.num_elements() / dims[0];
    dims[0] = count;
    Tensor part = Tensor::Empty(whole.dtype(), Shape(dims));
    for (int64_t i = 0; i < count * row; ++i) part.set(i, whole.at(first * row + i));
    rows.push_back(std::move(part));
  }
  return rows;
}

using MakeOptimizer = std::function<optim::Optimizer(const optim::ParameterList&)>;

struct SplitClassifier {
  explicit SplitClassifier(const MakeOptimizer& optimizer, bool scaled = false)
      : fc1(6, 16), fc2(16, 4) {
    graph.fn = [this](const Values& in) -> Values {
      const Value logits = fc2(tanh(fc1(in[0])));
      const Value loss = cross_entropy(logits, in[1]);
      loss.backward();
      return {loss, logits};
    };
    graph.add_module("fc1", fc1);
    graph.add_module("fc2", fc2);
    graph.config.seed = 3;
    graph.add_optimizer(optimizer(graph.parameters()));
    if (scaled) graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 2}));
  }
  std::vector<double> Parameters() const {
    std::vector<double> all;
    for (const auto& [name, parameter] : graph.named_parameters()) {
      for (const double value : parameter.value().ToVector()) all.push_back(value);
    }
    return all;
  }

  Linear fc1, fc2;
  FnGraph graph;
};

std::vector<Tensor> ClassifierBatch(uint64_t seed) {
  return {testing::RandomTensor(DType::kF32, {16, 6}, seed),
          testing::RandomTensor(DType::kI64, {16}, seed + 100, 0, 4)};
}

struct Equality {
  const char* name;
  MakeOptimizer optimizer;
};

class AccumulationEquals : public ::testing::TestWithParam<Equality> {};

// Four micro-batches give the update of one batch four times as large: split within a call, over
// calls, and two calls of two each; with and without a scaler.
TEST_P(AccumulationEquals, OneLargeBatch) {
  for (const bool scaled : {false, true}) {
    SplitClassifier whole(GetParam().optimizer, scaled), split(GetParam().optimizer, scaled),
        calls(GetParam().optimizer, scaled), both(GetParam().optimizer, scaled);
    split.graph.config.set_gradient_accumulation_steps(4);
    calls.graph.config.accumulate_calls(4);
    both.graph.config.set_gradient_accumulation_steps(2);
    both.graph.config.accumulate_calls(2);
    for (uint64_t step = 0; step < 5; ++step) {
      const std::vector<Tensor> batch = ClassifierBatch(step);
      Call(whole.graph, batch);
      Call(split.graph, batch);
      for (int64_t i = 0; i < 4; ++i) Call(calls.graph, RowsOf(batch, 4 * i, 4));
      for (int64_t i = 0; i < 2; ++i) Call(both.graph, RowsOf(batch, 8 * i, 8));
    }
    const std::vector<double> expected = whole.Parameters();
    for (const SplitClassifier* other : {&split, &calls, &both}) {
      EXPECT_THAT(other->Parameters(), ::testing::Pointwise(::testing::DoubleNear(1e-6), expected));
    }
    if (!scaled) continue;
    // Five finite updates of a growth interval of two.
    for (SplitClassifier* each : {&whole, &split, &calls, &both}) {
      EXPECT_EQ(each->graph.grad_scaler().scale(), 4096);
      EXPECT_EQ(each->graph.grad_scaler().total_steps(), 5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, AccumulationEquals,
    ::testing::Values(
        Equality{"sgd",
                 [](const auto& p) {
                   return optim::SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
                 }},
        Equality{"clipped",
                 [](const auto& p) {
                   return optim::SGD(
                       p, {.lr = 0.5, .lr_schedule = optim::StepLR(2), .clip_norm = 0.1});
                 }},
        Equality{"adam_with_averages",
                 [](const auto& p) {
                   return optim::Adam(p, {.lr = 1e-2,
                                          .eps = 1e-3,
                                          .clip_value = 0.05,
                                          .ema = optim::Ema{.decay = 0.9}});
                 }},
        Equality{"groups",
                 [](const optim::ParameterList& p) {
                   return optim::AdamW({{{p[0], p[1]}, {}}, {{p[2], p[3]}, {.lr = 1e-3}}},
                                       {.lr = 1e-2, .eps = 1e-3});
                 }}),
    [](const auto& test) { return test.param.name; });

TEST(Accumulation, TakesTheMemoryOfAMicroBatch) {
  const auto sgd = [](const optim::ParameterList& p) { return optim::SGD(p); };
  SplitClassifier small(sgd, true), split(sgd, true), whole(sgd, true);
  const std::vector<Tensor> batch = {testing::RandomTensor(DType::kF32, {256, 6}, 1),
                                     testing::RandomTensor(DType::kI64, {256}, 2, 0, 4)};
  Call(small.graph, RowsOf(batch, 0, 32));
  Call(whole.graph, batch);
  split.graph.config.set_gradient_accumulation_steps(8);
  Call(split.graph, batch);
  EXPECT_LE(split.graph.arena_bytes(), small.graph.arena_bytes());
  EXPECT_GT(whole.graph.arena_bytes(), 4 * small.graph.arena_bytes());
}

TEST(Accumulation, DividesByTheTrueLengthOfTheWindow) {
  ProbedSum p;
  p.graph.config.accumulate_calls(3);
  EXPECT_EQ(p.After(1), 0);
  EXPECT_EQ(p.After(2), 0);
  EXPECT_EQ(p.graph.accumulated_micro_batches(), 2u);
  EXPECT_EQ(p.After(6), -3);
  EXPECT_EQ(p.graph.accumulated_micro_batches(), 0u);
  // A short tail, of two and of one; then nothing is left to flush.
  p.After(5);
  p.After(7);
  ASSERT_TRUE(p.graph.flush().ok());
  EXPECT_EQ(p.w.value().item(), -9);
  p.After(4);
  ASSERT_TRUE(p.graph.flush().ok());
  EXPECT_EQ(p.w.value().item(), -13);
  ASSERT_TRUE(p.graph.flush().ok());
  EXPECT_EQ(p.w.value().item(), -13);
  EXPECT_EQ(p.optimizer.applied_steps(), 3);
  // A window after a flush is whole again.
  p.After(3);
  p.After(3);
  EXPECT_EQ(p.w.value().item(), -13);
  EXPECT_EQ(p.After(3), -16);
  EXPECT_EQ(p.graph.run_count(), 9u);
}

// Outputs of a split call are joined: single numbers as a vector, others along dimension 0.
TEST(Accumulation, JoinsTheOutputsOfASplitCall) {
  FnGraph graph;
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD({w}, {.lr = 1}));
  graph.fn = [&](const Values& in) -> Values {
    const Value y = in[0] * w * in[1];  // a number goes to each micro-batch
    const Value loss = mean(y);
    loss.backward();
    return {loss, y};
  };
  graph.config.set_gradient_accumulation_steps(2);
  const std::vector<Tensor> in = {F32({4, 1}, {1, 3, 5, 7}), F32({}, {10})};
  const std::vector<Tensor> out = Call(graph, in);
  EXPECT_EQ(out[0].shape(), Shape({2}));
  EXPECT_THAT(out[0].ToVector(), ElementsAre(20, 60));
  EXPECT_EQ(out[1].shape(), Shape({4, 1}));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(10, 30, 50, 70));
  EXPECT_EQ(w.value().item(), 1 - 40);
  // Evaluation is whole.
  graph.eval();
  EXPECT_EQ(Call(graph, in)[0].shape(), Shape{});
}

// amp_reference.md (f): accumulation with inf in a middle micro-batch.
TEST(Accumulation, OneMicroBatchThatIsNotFiniteSkipsTheWindow) {
  for (const double bad : {kInf, -kInf, std::nan("")}) {
    for (int at = 0; at < 3; ++at) {
      ProbedSum p;
      p.graph.config.accumulate_calls(3);
      const ScalerHandle scaler = p.graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
      for (int i = 0; i < 3; ++i) {
        p.After(i == at ? bad : 1);
        EXPECT_EQ(scaler.scale(), i < 2 ? 1024 : 512);  // frozen over the window
      }
      EXPECT_EQ(p.w.value().item(), 0);
      EXPECT_TRUE(p.graph.last_step_skipped());
      EXPECT_EQ(p.graph.first_nonfinite_param(), "w");
      EXPECT_EQ(p.optimizer.applied_steps(), 0);
      EXPECT_EQ(scaler.total_steps(), 1);
      // The next window begins anew.
      for (const double gradient : {1, 2, 3}) p.After(gradient);
      EXPECT_EQ(p.w.value().item(), -2);
      EXPECT_FALSE(p.graph.last_step_skipped());
    }
  }
}

TEST(Accumulation, SkipsWithoutAScalerWhereAsked) {
  ProbedSum p({.lr = 1, .skip_nonfinite = true});
  p.graph.config.accumulate_calls(2);
  p.After(kInf);
  EXPECT_EQ(p.After(1), 0);
  p.After(1);
  EXPECT_EQ(p.After(3), -2);
}

// Each micro-batch is unscaled by the scale that it had.
TEST(Accumulation, AScaleMayBeSetWithinAWindow) {
  ProbedSum p;
  p.graph.config.accumulate_calls(2);
  ScalerHandle scaler = p.graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  p.After(3);
  ASSERT_TRUE(scaler.set_scale(8).ok());
  EXPECT_EQ(p.After(5), -4);
}

TEST(Accumulation, ClipsTheMeanOnce) {
  ProbedSum p({.lr = 1, .clip_norm = 1});
  p.graph.config.accumulate_calls(2);
  p.After(10);
  p.After(-4);
  EXPECT_NEAR(p.w.value().item(), -1, 1e-6);
  EXPECT_EQ(p.optimizer.grad_norm(), 3);
}

TEST(Accumulation, OneNormOverTwoOptimizers) {
  Parameter a(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0});
  Parameter b(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(a * in[0]) + sum(b * in[1]);
    loss.backward();
    return {};
  });
  graph.add_parameter("a", a);
  graph.add_parameter("b", b);
  graph.add_optimizer(optim::SGD({a}, {.lr = 1}));
  graph.add_optimizer(optim::SGD({b}, {.lr = 1}));
  graph.config.clip_grad_norm = 1;
  graph.config.accumulate_calls(2);
  Call(graph, {F32({1}, {6}), F32({1}, {0})});
  Call(graph, {F32({1}, {0}), F32({1}, {8})});
  EXPECT_EQ(graph.grad_norm(), 5);
  EXPECT_NEAR(a.value().item(), -0.6, 1e-6);
  EXPECT_NEAR(b.value().item(), -0.8, 1e-6);
}

// Two losses with scalers of their own: the window is skipped, and only the scaler backs off whose
// loss it was.
TEST(Accumulation, EachScalerHearsOfItsOwnWindow) {
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0});
  FnGraph graph;
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD({w}, {.lr = 1}));
  const amp::GradScalerOptions options{.init_scale = 64, .growth_interval = 1};
  const ScalerHandle s0 = graph.set_grad_scaler(amp::GradScaler(options));
  const ScalerHandle s1 = graph.add_scaler(amp::GradScaler(options));
  graph.fn = [&](const Values& in) -> Values {
    sum(w * in[0]).backward({.scaler = s0});
    sum(w * in[1]).backward({.scaler = s1});
    return {};
  };
  graph.config.accumulate_calls(2);
  const auto call = [&](double g0, double g1) { Call(graph, {F32({1}, {g0}), F32({1}, {g1})}); };
  call(1, kInf);
  call(1, 1);
  EXPECT_EQ(w.value().item(), 0);
  EXPECT_EQ(s0.scale(), 128);
  EXPECT_EQ(s1.scale(), 32);
  call(1, 10);
  call(3, 20);
  EXPECT_EQ(w.value().item(), -17);
  EXPECT_EQ(s0.scale(), 256);
  EXPECT_EQ(s1.scale(), 64);
}

// 2049 gradients of 1 from f16: a sum in f16 ends at 2048.
TEST(Accumulation, SumsInF32) {
  Linear fc(1, 1, false);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 1}));
  graph.config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
  graph.config.accumulate_calls(4096);
  ASSERT_TRUE(graph.initialize().ok());
  const double before = fc.weight.value().item();
  for (int i = 0; i < 2049; ++i) Call(graph, {F32({1, 1}, {1})});
  ASSERT_TRUE(graph.flush().ok());
  EXPECT_NEAR(fc.weight.value().item(), before - 1, 1e-6);
}

TEST(Accumulation, AllocatesNothingAfterTheFirstUpdate) {
  if (!testing::AllocationHookInstalled()) GTEST_SKIP() << "this build does not count allocations";
  SplitClassifier c([](const auto& p) { return optim::Adam(p); }, true);
  c.graph.config.set_gradient_accumulation_steps(2);
  c.graph.config.accumulate_calls(2);
  const std::vector<Tensor> batch = ClassifierBatch(1);
  std::vector<Tensor> out = {Tensor::Zeros(DType::kF32, {2}), Tensor::Zeros(DType::kF32, {16, 4})};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(c.graph.Run(batch, absl::MakeSpan(out)).ok());
  const AllocationCounter counter;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(c.graph.Run(batch, absl::MakeSpan(out)).ok());
  EXPECT_EQ(counter.count(), 0);
}

TEST(Accumulation, PrintsBothSteps) {
  ProbedSum p;
  p.graph.config.accumulate_calls(2);
  p.After(1);
  EXPECT_THAT(p.graph.traced_text(), HasSubstr("accumulation() {part=\"accumulate\"}"));
  const std::string text = p.graph.compiled_text();
  EXPECT_THAT(text, HasSubstr("gradient_sum_update(%optimizer0.w.grad_sum"));
  EXPECT_THAT(text, HasSubstr("graph @graph_update()"));
  EXPECT_LT(text.find("gradient_sum_update"), text.find("sgd_update"));
}

}  // namespace
}  // namespace halftone::nn
