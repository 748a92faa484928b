// Graph::first_nonfinite_node: where the infinities of a step began, seen by running it again.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kInf;
using testing::kNaN;
using FoundKind = NonFiniteNode::Kind;

ir::Initializer InitialValue(double value) { return {ir::Initializer::Kind::kConstant, value, 0}; }

// Exactly one finding; fails the test and gives an empty one otherwise.
NonFiniteNode FindNonFinite(Graph& graph, const std::vector<Tensor>& in) {
  const auto found = graph.first_nonfinite_node(in);
  if (found.ok() && found->has_value()) return **found;
  ADD_FAILURE() << (found.ok() ? "nothing found" : Message(found.status()));
  return {};
}

// The module "product" multiplies in f16 by in[1]: in[0] * w * in[1], the loss is the sum.
class F16Product : public Module {
 public:
  F16Product() : weight(Shape{4}, InitialValue(1)) { register_parameter("weight", weight); }
  Value operator()(const Value& x, const Value& factor) {
    const ModuleScope scope(*this);
    return x * weight * factor;
  }
  Parameter weight;
};

class ProductGraph : public FnGraph {
 public:
  explicit ProductGraph(amp::GradScalerOptions options)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(relu(product(in[0], in[1])));
          loss.backward();
          return {loss};
        }) {
    add_module("product", product);
    add_optimizer(optim::SGD(parameters(), {.lr = 1}));
    scaler = set_grad_scaler(amp::GradScaler(options));
    config.enable_amp(true, {.dtype = DType::kF16, .allow = {"product/*"}});
  }
  std::vector<Tensor> In(double x, double factor) {
    return {Tensor::Full(DType::kF32, {4}, x), Tensor::Full(DType::kF32, {4}, factor)};
  }
  F16Product product;
  ScalerHandle scaler;
};

TEST(FirstNonFiniteNode, TooManySkipsNameTheForwardNode) {
  ProductGraph graph({.init_scale = 1, .dynamic = false, .max_consecutive_skips = 1});
  const std::vector<Tensor> in = graph.In(300, 300);  // 90,000 is infinite in f16
  Call(graph, in);
  EXPECT_TRUE(graph.last_step_skipped());
  const absl::Status status = CallStatus(graph, in);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      Message(status),
      AllOf(HasSubstr("2 steps in a row were skipped; limit 1"),
            HasSubstr("first non-finite gradient: product.weight"),
            HasSubstr("first non-finite value: %mul_1 (mul, product) f16[4] at "),
            HasSubstr("nonfinite_node_test.cc"), HasSubstr("4 of 4 elements are not finite"),
            HasSubstr("magnitudes 300 to 300"), HasSubstr("scaler0 at 1")));
}

TEST(FirstNonFiniteNode, HasWhatIsKnownOfTheNode) {
  ProductGraph graph({.init_scale = 1});
  const NonFiniteNode found = FindNonFinite(graph, graph.In(300, 300));
  EXPECT_EQ(found.kind, FoundKind::kComputed);
  EXPECT_EQ(found.node, "mul_1");
  EXPECT_EQ(found.op, "mul");
  EXPECT_EQ(found.module, "product");
  EXPECT_EQ(found.dtype, DType::kF16);
  EXPECT_EQ(found.type, "f16[4]");
  EXPECT_EQ(found.gradient_of, "");
  EXPECT_THAT(found.why, AllOf(HasSubstr("f16"), HasSubstr("product/*")));
  EXPECT_EQ(found.range.non_finite, 4);
  ASSERT_EQ(found.operands.size(), 2u);
  EXPECT_EQ(found.operands[0].range.largest, 300);
  EXPECT_EQ(found.operands[1].range.largest, 300);
}

// The gradient of the weight is the scale times in[0] * in[1], 1.5.
TEST(FirstNonFiniteNode, OfASkippedStepHasItsScale) {
  ProductGraph graph({.init_scale = 65536});
  const std::vector<Tensor> in = graph.In(1, 1.5);
  Call(graph, in);
  ASSERT_TRUE(graph.last_step_skipped());
  ASSERT_EQ(graph.scaler.scale(), 32768);
  const NonFiniteNode found = FindNonFinite(graph, in);  // 98,304 is infinite, 49,152 is not
  EXPECT_EQ(found.scales.at("scaler0"), 65536);
  EXPECT_NE(found.gradient_of, "");
  EXPECT_EQ(found.dtype, DType::kF16);
  EXPECT_EQ(graph.scaler.scale(), 32768);
  Call(graph, in);
  ASSERT_FALSE(graph.last_step_skipped());
  EXPECT_FALSE(graph.first_nonfinite_node(in)->has_value());
}

TEST(FirstNonFiniteNode, OfASkippedStepHasItsRandomMasks) {
  Parameter w(Shape{256}, InitialValue(1));
  FnGraph graph([&](const Values& in) -> Values {
    const Value kept = dropout(w * in[0], 0.5);  // 0 or 60,000
    const Value loss = sum(kept * 2.0);
    loss.backward();
    return {loss, kept};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 1, .dynamic = false}));
  graph.config.enable_amp(true, {.dtype = DType::kF16, .allow = {"mul", "mul_1", "dropout"}});
  const std::vector<Tensor> in = {Tensor::Full(DType::kF32, {256}, 30000)};
  for (int step = 0; step < 4; ++step) {
    const std::vector<Tensor> out = Call(graph, in);
    ASSERT_TRUE(graph.last_step_skipped()) << graph.amp_table();
    int64_t kept = 0;
    for (const double value : out[1].ToVector()) kept += value != 0;
    const uint64_t run_count = graph.run_count();
    const NonFiniteNode found = FindNonFinite(graph, in);
    EXPECT_EQ(found.op, "mul");
    EXPECT_EQ(found.range.non_finite, kept) << "step " << step;
    EXPECT_EQ(found.operands.at(0).range.elements - found.operands.at(0).range.zeros, kept);
    EXPECT_EQ(graph.run_count(), run_count);
  }
}

TEST(FirstNonFiniteNode, ChangesNothing) {
  Linear fc(4, 4);
  BatchNorm1d norm(4);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = mean(dropout(norm(fc(in[0])), 0.25));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_module("norm", norm);
  graph.add_optimizer(optim::Adam(graph.parameters(), {.lr = 0.1, .ema = optim::Ema{}}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 8}));
  const std::vector<Tensor> in = {testing::RandomTensor(DType::kF32, {8, 4}, 1)};
  Call(graph, in);
  const StateDict before = *graph.state_dict();
  const size_t arena = graph.arena_bytes();
  const auto found = graph.first_nonfinite_node(in);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->has_value());
  ASSERT_TRUE(graph.grad_scaler().measure_gradients(in).ok());
  const StateDict after = *graph.state_dict();
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, value] : before) EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
  EXPECT_EQ(graph.arena_bytes(), arena);
  EXPECT_EQ(graph.run_count(), 1u);
}

TEST(FirstNonFiniteNode, SaysThatAnInputIsNotFinite) {
  ProductGraph graph({.init_scale = 1});
  for (const double bad : {kInf, kNaN}) {
    std::vector<Tensor> in = graph.In(1, 1);
    in[1].set(2, bad);
    const NonFiniteNode found = FindNonFinite(graph, in);
    EXPECT_EQ(found.kind, FoundKind::kInput);
    EXPECT_EQ(found.node, "in1");
    EXPECT_EQ(found.range.non_finite, 1);
    EXPECT_EQ(runtime::ToString(found).find("input in1 f32[4]: 1 of 4 elements are not finite"), 0u)
        << runtime::ToString(found);
  }
}

TEST(FirstNonFiniteNode, SaysThatAParameterIsNotFinite) {
  ProductGraph graph({.init_scale = 1});
  ASSERT_TRUE(graph.product.weight.set_value(F32({4}, {1, kNaN, 1, 1})).ok());
  const NonFiniteNode found = FindNonFinite(graph, graph.In(1, 1));
  EXPECT_EQ(found.kind, FoundKind::kVariable);
  EXPECT_EQ(found.node, "product.weight");
}

// 1 / sqrt(0) in the gradient of sqrt: nothing of it is 16-bit.
TEST(FirstNonFiniteNode, NamesAGradientInF32) {
  Parameter w(Shape{2}, InitialValue(0));
  FnGraph graph([&](const Values&) -> Values {
    const Value loss = sum(sqrt(w));
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 1}));
  const NonFiniteNode found = FindNonFinite(graph, {});
  EXPECT_EQ(found.gradient_of, "sqrt");
  EXPECT_EQ(found.dtype, DType::kF32);
  EXPECT_EQ(found.why, "");
}

// Scores masked by -inf, from a constant and from an input: harmless while a row has one left, and
// the softmax's fault where it has none.
TEST(FirstNonFiniteNode, InfinitiesThatAreMeantAreNotNamed) {
  Parameter w(Shape{2, 3}, InitialValue(0.5));
  FnGraph graph([&](const Values& in) -> Values {
    const Value masked = where(in[0] > 0, w * 2.0, -kInf) + in[1];
    const Value loss = sum(square(softmax(masked, -1)));
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  graph.set_grad_scaler(amp::GradScaler({.init_scale = 1}));
  const Tensor none = F32({2, 3}, {0, 0, 0, 0, 0, 0});
  const Tensor one = F32({2, 3}, {0, -kInf, 0, 0, 0, 0});
  EXPECT_FALSE(graph.first_nonfinite_node({F32({2, 3}, {1, 0, 1, 1, 1, 1}), none})->has_value());
  EXPECT_FALSE(graph.first_nonfinite_node({F32({2, 3}, {1, 1, 0, 1, 1, 1}), one})->has_value());
  for (const Tensor& mask : {none, one}) {
    const NonFiniteNode found = FindNonFinite(graph, {F32({2, 3}, {0, 0, 0, 1, 1, 1}), mask});
    EXPECT_EQ(found.op, "softmax");
    EXPECT_EQ(found.range.nans, 3);
  }
}

TEST(FirstNonFiniteNode, LooksAtEveryMicroBatch) {
  ProductGraph graph({.init_scale = 1, .max_consecutive_skips = 1});
  graph.config.set_gradient_accumulation_steps(2);
  const Tensor scale = Tensor::Full(DType::kF32, {}, 300);
  Tensor x = Tensor::Full(DType::kF32, {8}, 1);
  EXPECT_FALSE(graph.first_nonfinite_node({x, scale})->has_value());
  x.set(6, 300);
  EXPECT_EQ(FindNonFinite(graph, {x, scale}).node, "mul_1");
  Call(graph, {x, scale});
  EXPECT_TRUE(graph.last_step_skipped());
  EXPECT_EQ(FindNonFinite(graph, {x, scale}).range.non_finite, 1);
  EXPECT_THAT(Message(CallStatus(graph, {x, scale})), HasSubstr("first non-finite value: %mul_1"));
}

TEST(FirstNonFiniteNode, OfAnEvaluationIsWhatReachesItsOutputs) {
  ProductGraph graph({.init_scale = 1});
  graph.eval();
  EXPECT_EQ(FindNonFinite(graph, graph.In(300, 300)).node, "mul_1");
  EXPECT_FALSE(graph.first_nonfinite_node(graph.In(1, 1))->has_value());
}

TEST(FirstNonFiniteNode, GivesTheErrorsOfACall) {
  ProductGraph graph({.init_scale = 1});
  const auto wrong = graph.first_nonfinite_node({F32({3}, {1, 2, 3}), F32({}, {1})});
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace halftone::nn
