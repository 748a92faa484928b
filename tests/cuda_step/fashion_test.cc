// Fashion-MNIST in f16 with a scaler, batch 16, against the CPU's f16 run.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "halftone/core/alloc_counter.h"
#include "halftone/examples/support/dataset.h"
#include "halftone/tests/cuda/scoped_environment.h"
#include "halftone/tests/cuda_step/both_devices.h"

#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::nn {
namespace {

using halftone::testing::Follows;

constexpr int64_t kBatch = 16;
constexpr uint32_t kImages = 2000;

// The layers of examples/fashion_mnist.cc with `channels` and `2 channels`.
class FashionCnn : public Graph {
 public:
  explicit FashionCnn(int64_t channels)
      : Graph("fashion_cnn"),
        net_(Conv2d(1, channels, 3, {.padding = 1}), ReLU(),
             Conv2d(channels, 2 * channels, 3, {.padding = 1}), ReLU(), MaxPool2d(2), Flatten(),
             Linear(2 * channels * 14 * 14, 128), ReLU(), Linear(128, 10)) {
    add_module("net", net_);
    optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 1e-3}));
    // Overflows at first, and grows again: the trajectory has something to show.
    scaler = set_grad_scaler(amp::GradScaler({.init_scale = 16777216.0, .growth_interval = 6}));
    config.enable_amp(true, {.dtype = DType::kF16});
  }
  Values build(const Values& in) override {
    const Value pixels = unsqueeze(cast(in[0], DType::kF32) / 255.0, 1);
    const Value logits = net_(pixels);
    const Value loss = cross_entropy(logits, in[1]);
    loss.backward();
    return {loss, sum(cast(equal(argmax(logits, 1), in[1]), DType::kF32))};
  }

  OptimizerHandle optimizer;
  ScalerHandle scaler;

 private:
  Sequential net_;
};

// From $HALFTONE_FASHION_MNIST, or where Debian's package has it.
example::Dataset Images() {
  const char* const folder = std::getenv("HALFTONE_FASHION_MNIST");
  auto data = example::Dataset::Load(
      folder != nullptr ? folder : "/usr/share/datasets/fashion-mnist", "train", kImages);
  HT_CHECK(data.ok(), "Fashion-MNIST is installed");
  return *std::move(data);
}

// Losses and scales of `steps` steps, the learning rate another in each.
struct Record {
  std::vector<double> losses, scales;
};
Record TrainFashion(FashionCnn& model, const example::Dataset& data, Device device, int steps,
                    int64_t batch = kBatch) {
  model.to(device);
  Record run;
  for (int step = 0; step < steps; ++step) {
    EXPECT_TRUE(model.optimizer.set_lr(1e-3 / (1 + 0.1 * step)).ok());
    const std::vector<Tensor> out =
        Call(model, data.Batch((step * batch) % (kImages - batch), batch));
    if (out.empty()) return run;
    run.losses.push_back(out[0].item());
    run.scales.push_back(model.scaler.scale());
  }
  return run;
}

TEST(CudaFashion, TwentyStepsInF16FollowTheCpu) {
  const example::Dataset data = Images();
#if defined(HALFTONE_CUDA_EMULATED) && defined(__SANITIZE_ADDRESS__)
  const int steps = 2;  // the sanitizers see the same code in each
#else
  const int steps = 20;
#endif
  FashionCnn on_cpu(8), on_cuda(8);
  const Record want = TrainFashion(on_cpu, data, Device::Cpu(), steps);
  const Record got = TrainFashion(on_cuda, data, Device::Cuda(0), steps);
#if defined(HALFTONE_CUDA_EMULATED)
  EXPECT_TRUE(Follows(got.losses, want.losses, 1e-3));
  EXPECT_EQ(got.scales, want.scales);
#else
  // Twenty steps of Adam make much of how a card's libraries round: on_device.sh collects what is printed.
  const auto follows = Follows(got.losses, want.losses, 1e-3);
  if (!follows || got.scales != want.scales) {
    std::printf("distance: twenty steps in f16: %s; scales %s\n", follows.message(),
                got.scales == want.scales ? "equal" : "differ");
  }
  EXPECT_TRUE(Follows(got.losses, want.losses, 3e-2));
#endif
  EXPECT_LT(want.scales[1], want.scales[0]);  // it did overflow
}

// Gradients rounded once more are no other training: losses, and the steps that the scaler skips.
TEST(CudaFashion, LowWeightGradientsFollowTheDefault) {
  const example::Dataset data = Images();
#if defined(HALFTONE_CUDA_EMULATED) && defined(__SANITIZE_ADDRESS__)
  const int steps = 3;
#else
  const int steps = 12;
#endif
  FashionCnn usual(4), low(4);
  low.config.allow_low_weight_gradients = true;
  const Record want = TrainFashion(usual, data, Device::Cuda(0), steps);
  const Record got = TrainFashion(low, data, Device::Cuda(0), steps);
  int in_16_bit = 0;
  for (const auto& node : low.compiled_graph()->nodes()) {
    if (node->op().name != "conv2d_grad_weight") continue;
    EXPECT_EQ(node->output_type().dtype, DType::kF16);
    ++in_16_bit;
  }
  EXPECT_EQ(in_16_bit, 2);
  EXPECT_TRUE(Follows(got.losses, want.losses, 1e-2));
  EXPECT_LT(got.scales[1], got.scales[0]);  // it did overflow
}

TEST(CudaFashion, TheWholeNetworkTakesAStep) {
#if defined(HALFTONE_CUDA_EMULATED) && defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "minutes of products, by the kernels of the test above";
#endif
  const example::Dataset data = Images();
  FashionCnn on_cpu(32), on_cuda(32);
  const int steps = 2;
  const int64_t batch = 2;  // the emulated device takes a second for 10^8 products
  const Record want = TrainFashion(on_cpu, data, Device::Cpu(), steps, batch);
  const Record got = TrainFashion(on_cuda, data, Device::Cuda(0), steps, batch);
  EXPECT_TRUE(Follows(got.losses, want.losses, 1e-3));
  EXPECT_EQ(got.scales, want.scales);
}

#if defined(HALFTONE_CUDA_EMULATED)

// Nothing is done before somebody waits: a learning rate or an input that the next step overwrites
// too early, or a copy that no event orders, changes the losses.
TEST(CudaFashion, LazyStreamsSeeTheLearningRateOfTheirStep) {
  const example::Dataset data = Images();
  emulation::Options options = emulation::GetOptions();
  const auto losses = [&](bool lazy) {
    options.lazy = lazy;
    const emulation::ScopedOptions scoped(options);
    FashionCnn model(2);
    model.to(Device::Cuda(0));
    std::vector<Tensor> outputs;
    for (int step = 0; step < 8; ++step) {
      EXPECT_TRUE(model.optimizer.set_lr(1e-3 * (1 + step)).ok());
      outputs.push_back(Call(model, data.Batch(step * kBatch, kBatch))[0]);
    }
    EXPECT_TRUE(model.synchronize().ok());
    std::vector<double> values;
    for (const Tensor& loss : outputs) values.push_back(loss.item());
    return values;
  };
  EXPECT_EQ(losses(true), losses(false));
}

TEST(CudaFashion, AStepThatMayNotBeRecordedGivesTheSame) {
  const example::Dataset data = Images();
  // A measurement replays graphs of its own.
  const halftone::testing::ScopedEnvironment unmeasured("HALFTONE_AUTOTUNE", "0");
  const auto run = [&](const char* setting) {
    const halftone::testing::ScopedEnvironment recording("HALFTONE_CUDA_GRAPH", setting);
    emulation::ResetStatistics();
    FashionCnn model(2);
    const Record record = TrainFashion(model, data, Device::Cuda(0), 3);
    return std::pair(record.losses, emulation::GetStatistics().graph_launches);
  };
  const auto [one_by_one, none] = run("0");
  const auto [recorded, some] = run("1");
  EXPECT_EQ(one_by_one, recorded);
  EXPECT_EQ(none, 0u);
  EXPECT_EQ(some, 2u);  // all but the first
}

TEST(CudaFashion, AStepNeitherWaitsNorAllocates) {
  const example::Dataset data = Images();
  FashionCnn model(2);
  model.to(Device::Cuda(0));
  const std::vector<Tensor> in = data.Batch(0, kBatch);
  std::vector<Tensor> out = {Tensor::Scalar(DType::kF32, 0), Tensor::Scalar(DType::kF32, 0)};
  // The first runs kernel by kernel, the second records the step.
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(model.Run(in, absl::MakeSpan(out)).ok());
  ASSERT_TRUE(model.synchronize().ok());
  emulation::ResetStatistics();
  const AllocationCounter allocations;
  for (int step = 0; step < 10; ++step) {
    ASSERT_TRUE(model.Run(in, absl::MakeSpan(out)).ok());
  }
  EXPECT_EQ(allocations.count(), 0);
  const emulation::Statistics statistics = emulation::GetStatistics();
  EXPECT_EQ(statistics.host_synchronisations, 0u);
  EXPECT_EQ(statistics.device_allocations, 0u);
  EXPECT_EQ(statistics.pinned_allocations, 0u);
  EXPECT_EQ(statistics.graph_launches, 10u);
  EXPECT_EQ(statistics.copies, 20u);   // inputs and state in, state and outputs back
  EXPECT_EQ(statistics.launches, 0u);  // all work is in the recorded step
  EXPECT_TRUE(model.synchronize().ok());
}

#endif

}  // namespace
}  // namespace halftone::nn
