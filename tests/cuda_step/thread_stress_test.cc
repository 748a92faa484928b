// Eight threads with a graph each, threads that read their outputs, and one that looks at the
// graphs while they run; for ThreadSanitizer, on the emulated device and, without OpenMP, on the
// CPU.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "halftone/halftone.h"

namespace halftone {
namespace {

constexpr int kGraphs = 8, kReaders = 2, kSteps = 12;

class Model : public nn::Graph {
 public:
  explicit Model(Device device) : fc1_(6, 16), fc2_(16, 3) {
    add_module("fc1", fc1_);
    add_module("fc2", fc2_);
    optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 0.01}));
    scaler = set_grad_scaler(amp::GradScaler());
    to(device);
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value logits = fc2_(nn::dropout(nn::relu(fc1_(in[0])), 0.25));
    const nn::Value loss = nn::cross_entropy(logits, in[1]);
    loss.backward();
    return {loss, logits};
  }
  // Two signatures in turn.
  absl::StatusOr<std::vector<Tensor>> Step(int step) {
    const int64_t rows = step % 2 == 0 ? 4 : 7;
    Tensor x = Tensor::Zeros(DType::kF32, {rows, 6});
    for (int64_t i = 0; i < x.num_elements(); ++i)
      x.set(i, static_cast<double>((i + step) % 5) - 2);
    Tensor labels = Tensor::Zeros(DType::kI64, {rows});
    for (int64_t i = 0; i < rows; ++i) labels.set(i, static_cast<double>((i + step) % 3));
    return (*this)({x, labels});
  }
  nn::OptimizerHandle optimizer;
  nn::ScalerHandle scaler;

 private:
  nn::Linear fc1_, fc2_;
};

// Losses on their way from the threads that make them to those that read them.
class Mailbox {
 public:
  struct Letter {
    int step;
    Tensor loss, logits;
  };
  void Put(Letter letter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    letters_.push_back(std::move(letter));
  }
  std::optional<Letter> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (letters_.empty()) return std::nullopt;
    Letter letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }

 private:
  std::mutex mutex_;
  std::deque<Letter> letters_;
};

class ThreadStress : public ::testing::TestWithParam<Device> {};

TEST_P(ThreadStress, GraphsOfTheirOwnAndReadersOfTheirOutputs) {
  const Device device = GetParam();
  // What a graph gives alone.
  std::vector<std::vector<Tensor>> expected;
  {
    Model alone(device);
    for (int step = 0; step < kSteps; ++step) {
      auto out = alone.Step(step);
      ASSERT_TRUE(out.ok()) << out.status();
      expected.push_back(*std::move(out));
    }
  }

  Mailbox mailbox;
  std::atomic<int> wrong{0}, read{0}, at_work{kGraphs};
  std::deque<Model> models;
  for (int i = 0; i < kGraphs; ++i) models.emplace_back(device);
  std::vector<std::thread> threads;
  for (Model& model : models) {
    threads.emplace_back([&] {
      for (int step = 0; step < kSteps; ++step) {
        auto out = model.Step(step);
        if (!out.ok()) {
          ++wrong;
          break;
        }
        mailbox.Put({step, (*out)[0], (*out)[1]});
      }
      --at_work;
    });
  }
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        const bool last = at_work == 0;
        const std::optional<Mailbox::Letter> letter = mailbox.Take();
        if (letter) {
          const std::vector<Tensor>& right = expected[static_cast<size_t>(letter->step)];
          if (!BitEqual(letter->loss, right[0]) || !BitEqual(letter->logits, right[1])) ++wrong;
          ++read;
        } else if (last) {
          return;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (at_work != 0) {
      for (Model& model : models) {
        const bool plausible = model.run_count() <= kSteps && model.optimizer.lr() > 0 &&
                               model.optimizer.applied_steps() <= kSteps &&
                               model.scaler.scale() > 0 && model.state_dict().ok();
        if (!plausible) ++wrong;
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(read, kGraphs * kSteps);
}

INSTANTIATE_TEST_SUITE_P(Devices, ThreadStress, ::testing::Values(Device::Cpu(), Device::Cuda(0)),
                         [](const auto& device) {
                           return std::string(device.param.kind == Device::Kind::kCpu ? "Cpu"
                                                                                      : "Cuda");
                         });

}  // namespace
}  // namespace halftone
