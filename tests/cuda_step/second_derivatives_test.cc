// Losses with the norm of their own gradient in them, trained on CUDA against the same on the CPU.
#include "halftone/tests/cuda_step/both_devices.h"

namespace halftone::nn {
namespace {

using halftone::testing::Follows;
using halftone::testing::RandomTensor;
using halftone::testing::SameState;
using halftone::testing::Train;
using halftone::testing::Trajectory;

// Convolution, norms, pooling and attention, whose gradients read what their forward passes keep.
class WithPenalty : public Graph {
 public:
  explicit WithPenalty(std::optional<DType> low)
      : conv_(2, 8, 3, {.padding = 1}), batch_(8), layer_({8}), attention_(8, 2), fc_(8, 3) {
    add_module("conv", conv_);
    add_module("batch", batch_);
    add_module("layer", layer_);
    add_module("attention", attention_);
    add_module("fc", fc_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.05}));
    if (low) config.enable_amp(true, {.dtype = low});
    if (low == DType::kF16) set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  }
  Values build(const Values& in) override {
    const Value h = max_pool2d(gelu(batch_(conv_(in[0]))), 2);  // [N,8,3,3]
    const Value rows = permute(flatten(h, 2), {2, 0, 1});       // [9,N,8]
    const Value seen = mean(attention_(layer_(rows)), 0);       // [N,8]
    const Value loss = cross_entropy(fc_(seen), in[1]);
    const Value gradient = gradients(loss, {in[0]})[0];
    const Value total = loss + sqrt(sum(gradient * gradient) + 1e-12);
    total.backward();
    return {total};
  }

 private:
  Conv2d conv_;
  BatchNorm2d batch_;
  LayerNorm layer_;
  MultiheadAttention attention_;
  Linear fc_;
};

std::vector<Tensor> PenaltyBatch(int step) {
  return {RandomTensor(DType::kF32, {6, 2, 6, 6}, 300 + static_cast<uint64_t>(step)),
          I64({6}, {0, 1, 2, 0, 1, 2})};
}

TEST(CudaSecondDerivatives, PenaltiesFollowTheCpu) {
  const std::pair<std::optional<DType>, double> settings[] = {{std::nullopt, 1e-4},
                                                              {DType::kF16, 2e-2}};
  for (const auto& [low, relative] : settings) {
    SCOPED_TRACE(low ? Name(*low) : "f32");
    WithPenalty cpu(low), cuda(low);
    const Trajectory want = Train(cpu, Device::Cpu(), 4, PenaltyBatch);
    const Trajectory got = Train(cuda, Device::Cuda(0), 4, PenaltyBatch);
    EXPECT_TRUE(Follows(got.losses, want.losses, relative));
    if (!low) {
      EXPECT_TRUE(SameState(got.state, want.state, 1e-3));
    }
  }
}

}  // namespace
}  // namespace halftone::nn
