// What docs/guide/coming_from.md says of Halftone and no other test holds: where it differs from
// other frameworks on purpose, and what their options become here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two layers of which mixed precision takes one each, with a loss.
class TwoKinds : public FnGraph {
 public:
  TwoKinds() : conv(1, 8, 3, {.padding = 1}), fc(8 * 8 * 8, 4) {
    fn = [this](const Values& in) -> Values {
      const Value logits = fc(flatten(relu(conv(in[0])), 1));
      const Value loss = cross_entropy(logits, in[1]);
      loss.backward();
      return {logits, loss};
    };
    add_module("conv", conv);
    add_module("fc", fc);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
    to(Device::Reference());
  }
  std::vector<Tensor> Run() {
    return Call(*this, {Tensor::Full(DType::kF32, {4, 1, 8, 8}, 0.5), I64({4}, {0, 1, 2, 3})});
  }
  // Of the operands of the forward node of this op.
  DType Operands(const std::string& op) const {
    for (const auto& node : compiled_graph()->nodes()) {
      if (node->op().name == op) return node->input_type(0).dtype;
    }
    ADD_FAILURE() << "no " << op;
    return DType::kF64;
  }
  Conv2d conv;
  Linear fc;
};

TEST(ComingFrom, MixedPrecisionHoldsInEvaluation) {
  TwoKinds graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  graph.eval();
  graph.Run();
  EXPECT_EQ(graph.Operands("conv2d"), DType::kF16);
  EXPECT_EQ(graph.Operands("linear"), DType::kF16);
  graph.config.enable_amp(false);
  graph.Run();
  EXPECT_EQ(graph.Operands("conv2d"), DType::kF32);
}

TEST(ComingFrom, OnlyConvolutionsIsAPolicy) {
  TwoKinds graph;
  graph.config.allow_fusion = false;
  graph.config.enable_amp(
      true, {.dtype = DType::kF16,
             .deny = {"matmul", "linear", "scaled_dot_product_attention", "lstm", "gru"},
             .level = amp::Level::kOnlyMatmul});
  graph.Run();
  EXPECT_EQ(graph.Operands("conv2d"), DType::kF16);
  EXPECT_EQ(graph.Operands("relu"), DType::kF32);
  EXPECT_EQ(graph.Operands("linear"), DType::kF32);
}

// Paddle's O2 with master weights, and every other level: what moves is f32, whatever reads it.
TEST(ComingFrom, ParametersAreF32AtEveryLevel) {
  for (const amp::Level level : {amp::Level::kBalanced, amp::Level::kForce}) {
    TwoKinds graph;
    graph.config.enable_amp(true, {.dtype = DType::kF16, .level = level});
    graph.Run();
    EXPECT_EQ(graph.Operands("linear"), DType::kF16);
    const auto state = graph.fc.state_dict();
    ASSERT_TRUE(state.ok()) << state.status();
    const Tensor& weight = state->at("weight");
    ASSERT_EQ(weight.dtype(), DType::kF32);
    int64_t beyond_f16 = 0;  // numbers that f16 does not have
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      const double w = weight.at(i);
      const double ulp = std::ldexp(1.0, std::max(std::ilogb(w), -14) - 10);
      beyond_f16 += std::fmod(w, ulp) != 0;
    }
    EXPECT_GT(beyond_f16, weight.num_elements() / 2);
  }
}

// There is no pass that takes casts out again: a graph is described without them, and compiled anew.
TEST(ComingFrom, CastsGoWithTheConfiguration) {
  TwoKinds graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  graph.Run();
  EXPECT_THAT(graph.compiled_text(), HasSubstr("cast("));
  graph.config.enable_amp(false);
  graph.Run();
  EXPECT_THAT(graph.compiled_text(), Not(HasSubstr("cast(")));
}

TEST(ComingFrom, LabelsAreARowOfNumbers) {
  TwoKinds graph;
  const Tensor x = Tensor::Zeros(DType::kF32, {4, 1, 8, 8});
  EXPECT_THAT(Message(CallStatus(graph, {x, I64({4, 1}, {0, 1, 2, 3})})),
              HasSubstr("target is i64[4,1]; expected i64[4]"));
}

// MXNet and OneFlow keep lr times the gradient in it: mom = 0.5 mom - lr g.
TEST(ComingFrom, MomentumHoldsNoLearningRate) {
  Parameter w(Shape{}, {ir::Initializer::Kind::kConstant, 0, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = w * in[0];
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  OptimizerHandle optimizer =
      graph.add_optimizer(optim::SGD({w.storage()}, {.lr = 0.5, .momentum = 0.5}));
  Call(graph, {F32({}, {1})});
  EXPECT_EQ(w.value().item(), -0.5);
  ASSERT_TRUE(optimizer.set_lr(0.25).ok());
  Call(graph, {F32({}, {1})});
  // The buffer is 0.5 * 1 + 1 = 1.5; the other way w would move by 0.5 * 0.5 + 0.25 = 0.5.
  EXPECT_EQ(w.value().item(), -0.5 - 0.25 * 1.5);
  const auto state = graph.state_dict();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->at("optimizer0.w.momentum_buffer").item(), 1.5);
}

// Growth beyond the largest scale is dropped; a clamp would give a scale that is no power of two.
TEST(ComingFrom, GrowthStopsInsteadOfBeingClamped) {
  TwoKinds graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  const ScalerHandle scaler = graph.set_grad_scaler(
      amp::GradScaler({.init_scale = 256, .growth_interval = 1, .max_scale = 1000}));
  for (const double scale : {512, 512, 512}) {
    graph.Run();
    EXPECT_EQ(scaler.scale(), scale);
  }
}

TEST(ComingFrom, AStaticScaler) {
  const amp::StaticGradScaler scaler(512);
  EXPECT_EQ(scaler.options().init_scale, 512);
  EXPECT_STREQ(scaler.mode(), "static");
  TwoKinds graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  const ScalerHandle handle = graph.set_grad_scaler(scaler);
  for (int i = 0; i < 3; ++i) graph.Run();
  EXPECT_EQ(handle.scale(), 512);
}

// MMEngine's loss_scale: "dynamic", a number, or a table with the arguments of torch's GradScaler.
TEST(ComingFrom, LossScaleAsATable) {
  TwoKinds graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  const ScalerHandle scaler = graph.set_grad_scaler(
      amp::GradScaler({.init_scale = 64, .growth_factor = 4, .growth_interval = 2}));
  for (const double scale : {64, 256, 256, 1024}) {
    graph.Run();
    EXPECT_EQ(scaler.scale(), scale);
  }
}

// OneFlow's fusions are how every step runs: an update reads the 16-bit path's gradient scaled as it
// is, and the inverse of the scale; nothing unscales in between.
TEST(ComingFrom, UpdatesUnscaleThemselves) {
  TwoKinds graph;
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  graph.config.allow_fuse_model_update_ops();
  graph.config.allow_fuse_cast_scale();
  graph.Run();
  std::vector<std::string> makers;
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->op().name == "sgd_update") makers.push_back(node->input(1).node->op().name);
  }
  EXPECT_EQ(makers.size(), 4u);
  EXPECT_THAT(makers, ::testing::Each(::testing::AnyOf(HasSubstr("conv2d_grad"), "linear", "matmul",
                                                       "sum", "sum_to_shape")));
}

}  // namespace
}  // namespace halftone::nn
