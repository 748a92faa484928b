// Accumulated gradients on CUDA: the CPU's windows, without waiting for the device between calls.
#include "halftone/tests/cuda_step/both_devices.h"

namespace halftone::nn {
namespace {

using halftone::testing::Follows;
using halftone::testing::RandomTensor;
using halftone::testing::SameState;

std::vector<Tensor> SomeRows(int call, double label = 1) {
  return {RandomTensor(DType::kF32, {8, 6}, 70 + static_cast<uint64_t>(call)),
          Tensor::Full(DType::kI64, {8}, label)};
}

class Accumulating : public Graph {
 public:
  Accumulating(Device device, int splits, int calls, bool f16 = false) : fc1_(6, 16), fc2_(16, 3) {
    add_module("fc1", fc1_);
    add_module("fc2", fc2_);
    optimizer = add_optimizer(
        optim::Adam(parameters(), {.lr = 1e-2, .clip_norm = 1, .ema = optim::Ema{.decay = 0.5}}));
    scaler = set_grad_scaler(amp::GradScaler({.init_scale = 256, .growth_interval = 2}));
    if (f16) config.enable_amp(true, {.dtype = DType::kF16});
    config.set_gradient_accumulation_steps(splits);
    config.accumulate_calls(calls);
    to(device);
  }
  Values build(const Values& in) override {
    const Value logits = fc2_(tanh(fc1_(in[0])));
    const Value loss = cross_entropy(logits, in[1]);
    loss.backward();
    return {loss, logits};
  }
  // The losses of ten calls, read when all are under way, and of a short tail.
  std::vector<double> Losses() {
    std::vector<Tensor> outputs;
    for (int call = 0; call < 10; ++call) {
      const std::vector<Tensor> out = Call(*this, SomeRows(call));
      if (out.empty()) return {};
      if (call != 4) outputs.push_back(out[0]);  // that of 4, and all logits, go unread
    }
    EXPECT_TRUE(flush().ok());
    std::vector<double> losses;
    for (const Tensor& output : outputs) {
      for (const double loss : output.ToVector()) losses.push_back(loss);
    }
    return losses;
  }

  OptimizerHandle optimizer;
  ScalerHandle scaler;

 private:
  Linear fc1_, fc2_;
};

TEST(CudaAccumulation, FollowsTheCpu) {
  for (const bool f16 : {false, true}) {
    for (const auto& [splits, calls] : {std::pair{1, 3}, {4, 1}, {2, 3}}) {
      Accumulating on_cpu(Device::Cpu(), splits, calls, f16);
      Accumulating on_cuda(Device::Cuda(0), splits, calls, f16);
      const std::vector<double> want = on_cpu.Losses(), got = on_cuda.Losses();
      EXPECT_EQ(want.size(), 9u * static_cast<size_t>(splits));
      EXPECT_TRUE(Follows(got, want, f16 ? 2e-3 : 1e-4));
      EXPECT_TRUE(on_cuda.synchronize().ok());
      if (!f16) {
        EXPECT_TRUE(SameState(*on_cuda.state_dict(), *on_cpu.state_dict(), 1e-3));
      }
      EXPECT_EQ(on_cuda.scaler.scale(), on_cpu.scaler.scale());
      EXPECT_EQ(on_cuda.optimizer.applied_steps(), on_cpu.optimizer.applied_steps());
      EXPECT_NEAR(on_cuda.grad_norm(), on_cpu.grad_norm(), 2e-2 * on_cpu.grad_norm());
    }
  }
}

TEST(CudaAccumulation, AWindowMovesBetweenDevices) {
  Accumulating on_cpu(Device::Cpu(), 1, 4), moving(Device::Cuda(0), 1, 4);
  for (int call = 0; call < 4; ++call) {
    Call(on_cpu, SomeRows(call));
    Call(moving, SomeRows(call));
    moving.to(call % 2 == 0 ? Device::Cpu() : Device::Cuda(0));
  }
  EXPECT_TRUE(SameState(*moving.state_dict(), *on_cpu.state_dict(), 1e-4));
}

TEST(CudaAccumulation, WhatFailsIsNotCounted) {
  Accumulating graph(Device::Cuda(0), 1, 4);
  Call(graph, SomeRows(0));
  Call(graph, SomeRows(1, /*label=*/3));  // there are 0, 1 and 2
  EXPECT_EQ(graph.synchronize().code(), absl::StatusCode::kOutOfRange);
  Call(graph, SomeRows(2));
  EXPECT_TRUE(graph.flush().ok());
  Accumulating without(Device::Cuda(0), 1, 2);
  Call(without, SomeRows(0));
  Call(without, SomeRows(2));
  for (const char* name : {"fc1.weight", "fc2.bias"}) {
    EXPECT_TRUE(BitEqual(graph.state_dict()->at(name), without.state_dict()->at(name))) << name;
  }
}

}  // namespace
}  // namespace halftone::nn
