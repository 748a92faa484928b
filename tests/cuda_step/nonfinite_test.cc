// Looking for the first non-finite node, and at gradients, on CUDA.
#include "halftone/tests/cuda_step/both_devices.h"

namespace halftone::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// in[0] * w * in[1] in f16, where the gradient of w is the scale times in[0] * in[1].
class ScaledProduct : public Graph {
 public:
  explicit ScaledProduct(const amp::GradScalerOptions& options)
      : w_(Shape{4}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("w", w_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.5}));
    scaler = set_grad_scaler(amp::GradScaler(options));
    config.enable_amp(true, {.dtype = DType::kF16, .allow = {"mul", "mul_1"}});
    to(Device::Cuda(0));
  }
  Values build(const Values& in) override {
    const Value loss = sum(relu(in[0] * w_ * in[1]));
    loss.backward();
    return {loss};
  }
  ScalerHandle scaler;

 private:
  Parameter w_;
};

std::vector<Tensor> FullOf(double x, double factor) {
  return {Tensor::Full(DType::kF32, {4}, x), Tensor::Full(DType::kF32, {4}, factor)};
}

TEST(CudaNonFinite, TooManySkipsNameTheNode) {
  ScaledProduct graph({.init_scale = 1, .max_consecutive_skips = 1});
  ASSERT_TRUE(graph(FullOf(300, 300)).ok());
  EXPECT_THAT(Message(graph(FullOf(300, 300)).status()),
              AllOf(HasSubstr("2 steps in a row were skipped"),
                    HasSubstr("first non-finite value: %mul_1 (mul) f16[4]"),
                    HasSubstr("magnitudes 300 to 300")));
}

TEST(CudaNonFinite, OfASkippedStepHasItsScaleWhereCallsWait) {
  ScaledProduct graph({.init_scale = 32768, .max_consecutive_skips = 5});
  ASSERT_TRUE(graph(FullOf(1, 0.5)).ok());
  ASSERT_TRUE(graph(FullOf(1, 3)).ok());
  ASSERT_TRUE(graph.last_step_skipped());
  EXPECT_EQ(graph.scaler.scale(), 16384);
  const auto found = graph.first_nonfinite_node(FullOf(1, 3));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->scales.at("scaler0"), 32768);
  EXPECT_NE((*found)->gradient_of, "");
  EXPECT_THAT(graph.scaler.scale_history(),
              ::testing::ElementsAre(
                  amp::ScaleChange{2, 32768, 16384, amp::ScaleChange::Cause::kOverflow}));
}

// Neither look changes the steps that follow, nor the casts of the weights that the device keeps.
TEST(CudaNonFinite, LooksChangeNothing) {
  ScaledProduct plain({.init_scale = 64}), looked_at({.init_scale = 64});
  for (int step = 0; step < 3; ++step) {
    const std::vector<Tensor> in = FullOf(1 + step, 0.25);
    const auto a = plain(in), b = looked_at(in);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    const auto found = looked_at.first_nonfinite_node(in);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->has_value());
    const auto report = looked_at.scaler.measure_gradients(in);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->parameters.size(), 1u);
    EXPECT_EQ(report->parameters[0].largest, 0.25 * (1 + step));
    EXPECT_EQ((*a)[0].item(), (*b)[0].item());
  }
  const StateDict a = *plain.state_dict(), b = *looked_at.state_dict();
  for (const auto& [name, value] : a) EXPECT_TRUE(BitEqual(b.at(name), value)) << name;
}

}  // namespace
}  // namespace halftone::nn
