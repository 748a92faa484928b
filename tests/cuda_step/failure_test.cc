// Steps that fail: with a fault of their data, and at any of the calls that put them on the device.
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "halftone/graph/runtime/executable.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/tests/cuda/scoped_environment.h"
#include "halftone/tests/cuda_step/both_devices.h"

#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::nn {
namespace {

using halftone::testing::Follows;
using halftone::testing::RandomTensor;
using halftone::testing::SameState;
using halftone::testing::Train;

// Logits and labels, of which 3 is none.
std::vector<Tensor> Labelled(int step, double label = 1) {
  const Tensor x = RandomTensor(DType::kF32, {4, 6}, 50 + static_cast<uint64_t>(step));
  return {x, Tensor::Full(DType::kI64, {4}, label)};
}
constexpr double kBadLabel = 3;

// A classifier with dropout, which shows the run count.
class Classifier : public Graph {
 public:
  Classifier() : fc_(6, 3) {
    add_module("fc", fc_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
  }
  Values build(const Values& in) override {
    const Value loss = cross_entropy(fc_(in[0]), in[1]);
    loss.backward();
    return {loss, dropout(in[0], 0.5)};
  }

 private:
  Linear fc_;
};

TEST(CudaFailure, TheLastStepCountsNotTheOneThatFailedBefore) {
  Classifier graph;
  graph.to(Device::Cuda(0));
  Call(graph, Labelled(0));
  Call(graph, Labelled(1, kBadLabel));
  Call(graph, Labelled(2));
  EXPECT_FALSE(graph.last_step_skipped());
  EXPECT_FALSE(graph.synchronize().ok());
  EXPECT_FALSE(graph.last_step_skipped());
  Call(graph, Labelled(3));
  Call(graph, Labelled(4, kBadLabel));
  EXPECT_TRUE(graph.last_step_skipped());
  EXPECT_FALSE(graph.synchronize().ok());
  EXPECT_TRUE(graph.last_step_skipped());
}

TEST(CudaFailure, ACallThatTellsAnEarlierErrorIsNoStep) {
  Classifier graph;
  graph.to(Device::Cuda(0));
  Call(graph, Labelled(0));
  const std::vector<Tensor> bad = Call(graph, Labelled(1, kBadLabel));
  const std::vector<Tensor> good = Call(graph, Labelled(2));
  good[0].item();
  EXPECT_EQ(graph(Labelled(3)).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(graph.last_step_skipped());
}

TEST(CudaFailure, AnEvaluationThatFailsSkipsNoTrainingStep) {
  Classifier graph;
  graph.to(Device::Cuda(0));
  Call(graph, Labelled(0));
  graph.eval();
  Call(graph, Labelled(1, kBadLabel));
  EXPECT_FALSE(graph.last_step_skipped());
  EXPECT_FALSE(graph.synchronize().ok());
  EXPECT_FALSE(graph.last_step_skipped());
}

TEST(CudaFailure, DropoutMasksAreTheCpusAfterAFault) {
  Classifier on_cpu, on_cuda;
  on_cuda.to(Device::Cuda(0));
  for (int step = 0; step < 5; ++step) {
    const std::vector<Tensor> bad = Labelled(step, kBadLabel);
    const std::vector<Tensor> good = Labelled(step);
    EXPECT_FALSE(on_cpu(bad).ok());
    Call(on_cuda, bad)[0].item();
    EXPECT_FALSE(on_cuda(good).ok());  // tells of the one before
    EXPECT_EQ(on_cuda.run_count(), on_cpu.run_count());
    EXPECT_TRUE(BitEqual(Call(on_cuda, good)[1], Call(on_cpu, good)[1])) << "step " << step;
  }
}

TEST(CudaFailure, OtherThreadsReadWhileStepsGoOn) {
  Classifier graph;
  graph.to(Device::Cuda(0));
  std::mutex mutex;
  std::deque<Tensor> outputs;
  std::atomic<bool> ended = false;
  std::vector<double> read;
  std::thread reader([&] {
    while (true) {
      const bool is_last = ended;
      Tensor next;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (outputs.empty() && is_last) return;
        if (!outputs.empty()) {
          next = std::move(outputs.front());
          outputs.pop_front();
        }
      }
      if (next.defined()) read.push_back(next.item());
      std::this_thread::yield();
    }
  });
  Classifier on_cpu;
  std::vector<double> want;
  for (int step = 0; step < 40; ++step) {
    Tensor loss = Call(graph, Labelled(step))[0];
    want.push_back(Call(on_cpu, Labelled(step))[0].item());
    const std::lock_guard<std::mutex> lock(mutex);
    outputs.push_back(std::move(loss));
  }
  ended = true;
  reader.join();
  EXPECT_TRUE(Follows(read, want, 1e-4));
}

#if defined(HALFTONE_CUDA_EMULATED)

using DeviceCall = emulation::Call;

// Nothing of it can fault, so its variables are written in place where that is allowed.
class Regression : public Graph {
 public:
  explicit Regression(std::optional<DType> low) : fc1_(5, 4), norm_(4), fc2_(4, 2) {
    add_module("fc1", fc1_);
    add_module("norm", norm_);
    add_module("fc2", fc2_);
    add_optimizer(optim::Adam(parameters(), {.lr = 1e-2}));
    if (low) config.enable_amp(true, {.dtype = low});
  }
  Values build(const Values& in) override {
    const Value pixels = unsqueeze(unsqueeze(fc1_(in[0]), 2), 3);
    const Value loss = mse_loss(fc2_(flatten(relu(norm_(pixels)))), in[1]);
    loss.backward();
    return {loss};
  }

 private:
  Linear fc1_;
  BatchNorm2d norm_;
  Linear fc2_;
};

std::vector<Tensor> Pairs(int step, int64_t n = 6) {
  const auto seed = static_cast<uint64_t>(step);
  return {RandomTensor(DType::kF32, {n, 5}, 10 + seed),
          RandomTensor(DType::kF32, {n, 2}, 20 + seed)};
}

StateDict StateOf(Graph& graph) {
  StateDict state = *graph.state_dict();
  state.erase("run_count");
  return state;
}

uint64_t CountOf(DeviceCall call) {
  const emulation::Statistics statistics = emulation::GetStatistics();
  return call == DeviceCall::kLaunch ? statistics.launches : statistics.library_calls;
}

// Which call fails, and in which dtype the step computes.
struct AnyCall : ::testing::TestWithParam<std::tuple<DeviceCall, std::optional<DType>>> {
  AnyCall() : options_(emulation::GetOptions()) {}
  emulation::ScopedOptions options_;  // undoes what FailCall asked for
  // A measurement would make calls of its own, and pass over those that fail.
  const halftone::testing::ScopedEnvironment unmeasured_{"HALFTONE_AUTOTUNE", "0"};
};

TEST_P(AnyCall, OfAFirstRunFailsAndNothingHasChanged) {
  const auto [call, low] = GetParam();
  // Two signatures: the state of the first run of the second is the device's.
  Regression whole(low);
  whole.to(Device::Cuda(0));
  std::vector<StateDict> want;
  std::vector<uint64_t> counts;
  for (int step = 0; step < 4; ++step) {
    emulation::ResetStatistics();
    nn::Call(whole, Pairs(step, step < 3 ? 6 : 3));
    counts.push_back(CountOf(call));
    want.push_back(StateOf(whole));
  }
  for (const int failing : {0, 3}) {
    const uint64_t count = counts[static_cast<size_t>(failing)];
    ASSERT_GT(count, 0u);
    for (uint64_t nth = 1; nth <= count; ++nth) {
      SCOPED_TRACE(Concat("step ", failing, ", call ", nth, " of ", count));
      Regression graph(low);
      graph.to(Device::Cuda(0));
      for (int step = 0; step < 4; ++step) {
        const std::vector<Tensor> batch = Pairs(step, step < 3 ? 6 : 3);
        if (step == failing) {
          ASSERT_TRUE(graph.compile(batch).ok());
          // Where it is does not matter for what follows.
          const StateDict before = step == 0 ? StateOf(graph) : want[2];
          emulation::FailCall(call, nth);
          ASSERT_FALSE(graph(batch).ok());
          ASSERT_TRUE(SameState(StateOf(graph), before, 0));
        }
        nn::Call(graph, batch);
      }
      ASSERT_TRUE(SameState(StateOf(graph), want[3], 0));
    }
  }
}

TEST_P(AnyCall, OfAFirstRunFailsAndTheNextIsNotRecorded) {
  const auto [call, low] = GetParam();
  Regression graph(low);
  graph.to(Device::Cuda(0));
  ASSERT_TRUE(graph.compile(Pairs(0)).ok());
  emulation::FailCall(call, 1);
  EXPECT_FALSE(graph(Pairs(0)).ok());
  emulation::ResetStatistics();
  nn::Call(graph, Pairs(0));
  EXPECT_EQ(emulation::GetStatistics().graph_launches, 0u);
  nn::Call(graph, Pairs(1));
  EXPECT_EQ(emulation::GetStatistics().graph_launches, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, AnyCall,
                         ::testing::Combine(::testing::Values(DeviceCall::kLaunch,
                                                              DeviceCall::kLibrary),
                                            ::testing::Values(std::nullopt, DType::kBF16)));

TEST(CudaFailure, ARecordingThatFailsChangesNothing) {
  const emulation::ScopedOptions options(emulation::GetOptions());
  Regression graph({});
  graph.to(Device::Cuda(0));
  nn::Call(graph, Pairs(0));
  const StateDict before = StateOf(graph);
  emulation::FailCall(DeviceCall::kLaunch, 2);
  EXPECT_FALSE(graph(Pairs(1)).ok());
  EXPECT_TRUE(SameState(StateOf(graph), before, 0));
  emulation::ResetStatistics();
  nn::Call(graph, Pairs(1));
  EXPECT_EQ(emulation::GetStatistics().graph_launches, 1u);
}

TEST(CudaFailure, ARecordingGetsTheMemoryThatTheCacheHolds) {
  const emulation::ScopedOptions options(emulation::GetOptions());
  kernels::DeviceBackend& backend = **kernels::OpenCuda(0);
  constexpr size_t kBytes = size_t{64} << 20;
  Regression graph({});
  graph.to(Device::Cuda(0));
  nn::Call(graph, Pairs(0));
  ASSERT_TRUE(backend.Allocate(kBytes).ok());  // and is given back
  ASSERT_GE(backend.memory_stats().cached_bytes, static_cast<int64_t>(kBytes));
  emulation::ResetStatistics();
  emulation::FailCall(DeviceCall::kInstantiateGraph, 1);
  nn::Call(graph, Pairs(1));
  EXPECT_EQ(emulation::GetStatistics().graph_launches, 1u);
  EXPECT_LT(backend.memory_stats().cached_bytes, static_cast<int64_t>(kBytes));
}

// A thread whose current device is another one.
TEST(CudaFailure, ASecondDeviceIsReachedFromAnyThread) {
  emulation::Options two = emulation::GetOptions();
  two.device_count = 2;
  const emulation::ScopedOptions options(two);
  const auto batch = [](int step) { return Pairs(step); };
  // Opening makes it the current device of its thread, which is another than the one that compiles.
  ASSERT_TRUE(kernels::OpenCuda(1).ok());
  Regression on_cpu({}), on_second({});
  const auto want = Train(on_cpu, Device::Cpu(), 3, batch);
  std::thread([&] {
    const auto got = Train(on_second, Device::Cuda(1), 3, batch);
    EXPECT_TRUE(Follows(got.losses, want.losses, 1e-4));
  }).join();
}

#endif  // HALFTONE_CUDA_EMULATED

}  // namespace
}  // namespace halftone::nn
