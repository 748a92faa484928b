// Graphs and threads, fork, and memory that runs out.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "halftone/core/threads.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

// Each step takes 1 from every element of w.
struct Down : FnGraph {
  explicit Down(const Parameter& w)
      : FnGraph([w](const Values&) -> Values {
          const Value loss = sum(Value(w));
          loss.backward();
          return {loss};
        }) {
    add_parameter("w", w);
    add_optimizer(optim::SGD({w.storage()}, {.lr = 1}));
  }
};

Parameter Zeros(int64_t size) {
  return Parameter(Shape{size}, {ir::Initializer::Kind::kConstant, 0, 0});
}

bool AllEqual(const Tensor& value, double to) {
  const std::vector<double> elements = value.ToVector();
  return std::all_of(elements.begin(), elements.end(), [to](double x) { return x == to; });
}

TEST(Threads, F03GraphsThatShareAParameterTakeTurns) {
  constexpr int kGraphs = 4, kSteps = 50;
  const Parameter w = Zeros(1000);
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const Tensor value = w.value();
      if (!AllEqual(value, value.at(0))) ++wrong;
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kGraphs; ++i) {
    threads.emplace_back([&] {
      Down graph(w);
      for (int step = 0; step < kSteps; ++step) {
        if (!CallStatus(graph, {}).ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0) << "half of a step was seen, or a call failed";
  EXPECT_TRUE(AllEqual(w.value(), -kGraphs * kSteps));
}

TEST(Threads, F03OneGraphForSeveralThreads) {
  const Parameter w = Zeros(8);
  Down graph(w);
  constexpr int kThreads = 4, kSteps = 25;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int step = 0; step < kSteps; ++step) {
        // Nobody comes between the step and what is read of it.
        const runtime::StateLock lock = graph.Lock();
        const uint64_t before = graph.run_count();
        const auto out = graph({});
        const bool right = out.ok() && (*out)[0].item() == -8.0 * static_cast<double>(before) &&
                           graph.run_count() == before + 1;
        if (!right || graph.state_dict()->at("w").at(0) != -static_cast<double>(before + 1)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(graph.run_count(), static_cast<uint64_t>(kThreads * kSteps));
}

TEST(Threads, F03GraphsWithNothingInCommonDoNotWait) {
  Down one(Zeros(1)), other(Zeros(1));
  const runtime::StateLock lock = one.Lock();
  bool free = false, taken = true;
  std::thread([&] {
    free = other.TryLock().held();
    taken = one.TryLock().held();
  }).join();
  EXPECT_TRUE(free);
  EXPECT_FALSE(taken);
}

TEST(Threads, F03AGraphIsNotCalledInsideItsOwnBuild) {
  FnGraph graph;
  absl::Status inner;
  graph.fn = [&](const Values& in) -> Values {
    inner = CallStatus(graph, {F32({1}, {2})});
    return {in[0] + 1.0};
  };
  EXPECT_EQ(Call1(graph, {F32({1}, {2})}), std::vector<double>{3});
  EXPECT_EQ(inner.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(inner.message(), "graph @graph was called inside its own build()");
}

// A child's exit status; -1 if a signal ended it.
int InChild(const std::function<int()>& fn) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // hanging was the fault
    _exit(fn());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, F02TheChildGoesOnWithTheParentsBits) {
  SetNumThreads(2);
  // Large enough for all threads, in our kernels and in the library's.
  const Tensor x = Tensor::Full(DType::kF32, {512, 512}, 0.37);
  const auto build = [](const Values& in) -> Values {
    return {relu(matmul(in[0], in[0])) + in[0]};
  };
  FnGraph graph(build);
  Call(graph, {x});
  const Tensor expected = Call(graph, {x})[0];
  EXPECT_EQ(InChild([&] {
              FnGraph another(build);
              for (FnGraph* g : {&graph, &another}) {
                const auto out = (*g)({x});
                if (!out.ok() || !BitEqual((*out)[0], expected)) return 1;
              }
              return 0;
            }),
            0);
  // The parent's team is as it was.
  EXPECT_TRUE(BitEqual(Call(graph, {x})[0], expected));
}

TEST(Fork, F02AGraphThatAnotherThreadWasCallingIsAnError) {
  std::atomic<bool> inside{false}, go_on{false};
  FnGraph graph([&](const Values& in) -> Values {
    inside = true;
    while (!go_on) std::this_thread::yield();
    return {in[0]};
  });
  std::thread caller([&] { Call(graph, {F32({1}, {2})}); });
  while (!inside) std::this_thread::yield();
  EXPECT_EQ(InChild([&] {
              const absl::Status status = CallStatus(graph, {F32({1}, {2})});
              if (!absl::IsFailedPrecondition(status)) return 1;
              return Message(status) ==
                             "a call was under way in another thread at the time of fork(), "
                             "which leaves that thread behind: the graph's state is half written; "
                             "fork while no call is under way, "
                             "or load a checkpoint into a new graph"
                         ? 0
                         : 2;
            }),
            0);
  go_on = true;
  caller.join();
}

// Restores the absence of a limit.
struct NoMoreBuffers {
  NoMoreBuffers() { SetBufferLimit(BufferStats().live_bytes + 1000); }
  ~NoMoreBuffers() { SetBufferLimit(0); }
};

TEST(Memory, F58StateThatDoesNotFitIsAnError) {
  const Parameter w = Zeros(10000);
  Down graph(w);
  Call(graph, {});
  const std::string path = ::testing::TempDir() + "/halftone_memory_f58";
  {
    const NoMoreBuffers limit;
    for (const absl::Status& status :
         {w.get_value().status(), graph.state_dict().status(), graph.save_checkpoint(path)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(Message(status), HasSubstr("cannot allocate 40000 bytes"));
    }
  }
  EXPECT_TRUE(AllEqual(w.value(), -1)) << "nothing was lost";
  Call(graph, {});
  EXPECT_TRUE(AllEqual(w.value(), -2));
}

TEST(Memory, F58CopiesOfTensors) {
  const Tensor x = Tensor::Full(DType::kF32, {1000}, 3);
  EXPECT_TRUE(BitEqual(*x.Copy(), x));
  EXPECT_EQ(x.Convert(DType::kI32)->at(7), 3);
  const NoMoreBuffers limit;
  EXPECT_EQ(x.Copy().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(x.Convert(DType::kF64).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Memory, F58ConstantsOfASize) {
  const Tensor large = Tensor::Full(DType::kF32, {1000}, 3);
  FnGraph graph([&](const Values& in) -> Values { return {in[0] + constant(large)}; });
  const Tensor x = F32({1}, {4});
  {
    const NoMoreBuffers limit;
    const absl::Status status = CallStatus(graph, {x});
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Message(status), HasSubstr("cannot allocate 4000 bytes"));
    EXPECT_THAT(Message(status), HasSubstr("processes_test.cc:"));
  }
  EXPECT_TRUE(AllEqual(Call(graph, {x})[0], 7));
}

}  // namespace
}  // namespace halftone::nn
