// Windows of accumulated gradients and what may come between: saved states, failing calls, changes.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

// All that moves: masks, norm statistics, moments, a schedule, averages, a scale.
struct AccumulatingModel {
  explicit AccumulatingModel(int calls = 3, int splits = 1) : fc1(4, 8), norm(8), fc2(8, 3) {
    graph.fn = [this](const Values& in) -> Values {
      const Value h = dropout(relu(norm(fc1(in[0]))), 0.5);
      const Value loss = cross_entropy(fc2(h), in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_module("fc1", fc1);
    graph.add_module("norm", norm);
    graph.add_module("fc2", fc2);
    graph.add_optimizer(optim::Adam(
        graph.parameters(),
        {.lr = 1e-2, .lr_schedule = optim::StepLR(2), .ema = optim::Ema{.decay = 0.9}}));
    graph.set_grad_scaler(amp::GradScaler({.init_scale = 256, .growth_interval = 2}));
    graph.config.accumulate_calls(calls);
    graph.config.set_gradient_accumulation_steps(splits);
  }
  // Calls first, first + 1, ..., each with a batch of its own; that of 4 is not finite.
  void Calls(int first, int count) {
    for (int i = first; i < first + count; ++i) {
      Tensor x = testing::RandomTensor(DType::kF32, {4, 4}, static_cast<uint64_t>(i));
      if (i == 4) x.set(0, testing::kInf);
      Call(graph,
           {x, testing::RandomTensor(DType::kI64, {4}, static_cast<uint64_t>(i) + 50, 0, 3)});
    }
  }
  StateDict State() { return *graph.state_dict(); }

  Linear fc1;
  BatchNorm1d norm;
  Linear fc2;
  FnGraph graph;
};

// amp_reference.md (f): saved and restored mid-window. Killed after any call, also one of a window
// that is to be skipped; resumed in a graph that has compiled nothing, and in one that is in the
// middle of another window.
TEST(AccumulationState, AResumedRunIsTheOneThatWasNeverKilled) {
  constexpr int kCalls = 8;
  for (const int splits : {1, 2}) {
    AccumulatingModel whole(3, splits);
    whole.Calls(0, kCalls);
    for (const int killed : {2, 3, 4, 5}) {
      AccumulatingModel before(3, splits), fresh(3, splits), other(3, splits);
      before.Calls(0, killed);
      const StateDict state = before.State();
      EXPECT_EQ(state.count("accumulation.micro_batches"), killed == 3 ? 0u : 1u);
      other.Calls(20, 2);
      for (AccumulatingModel* resumed : {&fresh, &other}) {
        ASSERT_TRUE(resumed->graph.load_state_dict(state).ok());
        EXPECT_EQ(resumed->graph.accumulated_micro_batches(),
                  static_cast<uint64_t>(killed % 3 * splits));
        ExpectSameBits(state, resumed->State());
        resumed->Calls(killed, kCalls - killed);
        ExpectSameBits(whole.State(), resumed->State());
      }
    }
  }
}

// Between windows a state is that of a graph that does not accumulate.
TEST(AccumulationState, OnlyAWindowUnderWayNeedsAGraphThatAccumulates) {
  AccumulatingModel accumulating, plain(1);
  accumulating.Calls(0, 3);
  ASSERT_TRUE(plain.graph.load_state_dict(accumulating.State()).ok());
  plain.Calls(3, 1);
  ASSERT_TRUE(accumulating.graph.load_state_dict(plain.State()).ok());
  accumulating.Calls(3, 1);
  const absl::Status status = plain.graph.load_state_dict(accumulating.State()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("unexpected: accumulation.micro_batches"));
  ASSERT_TRUE(plain.graph.load_state_dict(accumulating.State(), /*strict=*/false).ok());
  EXPECT_EQ(plain.graph.accumulated_micro_batches(), 0u);
  // A window without all of its sums is none.
  StateDict torn = accumulating.State();
  torn.erase("optimizer0.fc2.bias.grad_sum");
  EXPECT_THAT(Message(accumulating.graph.load_state_dict(torn).status()),
              HasSubstr("missing: optimizer0.fc2.bias.grad_sum"));
}

TEST(AccumulationState, FlushNeedsACompiledStep) {
  AccumulatingModel killed, resumed;
  killed.Calls(0, 2);
  ASSERT_TRUE(resumed.graph.load_state_dict(killed.State()).ok());
  const absl::Status status = resumed.graph.flush();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "flush: graph @graph has the gradients of 2 micro-batches and no compiled step to "
            "update by; expected a call or compile() before");
  ASSERT_TRUE(
      resumed.graph.compile({Tensor::Zeros(DType::kF32, {4, 4}), Tensor::Zeros(DType::kI64, {4})})
          .ok());
  ASSERT_TRUE(resumed.graph.flush().ok());
  ASSERT_TRUE(killed.graph.flush().ok());
  ExpectSameBits(killed.State(), resumed.State());
}

// A short last batch is a micro-batch of another shape.
TEST(AccumulationState, MicroBatchesOfSeveralShapesShareAWindow) {
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0});
  FnGraph graph([&](const Values& in) -> Values {
    mean(w * in[0]).backward();
    return {};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD({w}, {.lr = 1}));
  graph.config.accumulate_calls(2);
  Call(graph, {F32({3}, {1, 2, 3})});
  Call(graph, {F32({1}, {6})});
  EXPECT_EQ(w.value().item(), -4);
}

TEST(AccumulationState, AFailingCallAddsNothing) {
  for (const int splits : {1, 2}) {
    AccumulatingModel e(2, splits);
    e.Calls(0, 2);
    const StateDict before = e.State();
    const Tensor x = testing::RandomTensor(DType::kF32, {4, 4}, 1);
    // The last label is out of range: with two parts the first has been added by then.
    EXPECT_EQ(CallStatus(e.graph, {x, I64({4}, {0, 1, 2, 3})}).code(),
              absl::StatusCode::kOutOfRange);
    EXPECT_EQ(e.graph.accumulated_micro_batches(), 0u);
    for (const char* kept : {"fc1.weight", "fc2.bias", "optimizer0.fc1.weight.exp_avg"}) {
      EXPECT_TRUE(BitEqual(before.at(kept), e.State().at(kept))) << kept;
    }
    e.Calls(2, 1);
    EXPECT_EQ(e.graph.accumulated_micro_batches(), static_cast<uint64_t>(splits));
  }
}

TEST(AccumulationState, ABadBatchInAWindowLeavesTheOthers) {
  AccumulatingModel clean, disturbed;
  clean.Calls(0, 3);
  disturbed.Calls(0, 2);
  EXPECT_EQ(
      CallStatus(disturbed.graph, {Tensor::Zeros(DType::kF32, {4, 4}), I64({4}, {0, 1, 2, 3})})
          .code(),
      absl::StatusCode::kOutOfRange);
  EXPECT_EQ(disturbed.graph.accumulated_micro_batches(), 2u);
  // Masks go on with the count of calls.
  StateDict state = disturbed.State();
  state["run_count"] = I64({}, {2});
  ASSERT_TRUE(disturbed.graph.load_state_dict(state).ok());
  disturbed.Calls(2, 1);
  ExpectSameBits(clean.State(), disturbed.State());
}

TEST(AccumulationState, EvaluationsDoNotTouchAWindow) {
  AccumulatingModel clean, evaluated;
  clean.Calls(0, 3);
  evaluated.Calls(0, 2);
  evaluated.graph.eval();
  evaluated.Calls(7, 1);
  evaluated.graph.train();
  evaluated.Calls(2, 1);
  ExpectSameBits(clean.State(), evaluated.State());
}

// What of a window would be lost is an error that names the way out.
TEST(AccumulationState, ChangesWithinAWindow) {
  AccumulatingModel e;
  e.Calls(0, 1);
  e.graph.config.accumulate_calls(1);
  const std::vector<Tensor> batch = {Tensor::Zeros(DType::kF32, {4, 4}), I64({4}, {0, 1, 2, 0})};
  absl::Status status = CallStatus(e.graph, batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "a step that does not accumulate, after 1 micro-batches that wait for their update; "
            "expected flush() before");
  ASSERT_TRUE(e.graph.flush().ok());
  EXPECT_TRUE(CallStatus(e.graph, batch).ok());

  e.graph.config.accumulate_calls(3);
  e.Calls(0, 1);
  e.fc1.freeze();
  status = CallStatus(e.graph, batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "a step whose gradients are those of other parameters than the 1 micro-batches have "
            "that wait for their update; expected flush() before");
  ASSERT_TRUE(e.graph.flush().ok());
  EXPECT_TRUE(CallStatus(e.graph, batch).ok());
  // Another length is another configuration, and may be.
  e.graph.config.accumulate_calls(2);
  EXPECT_TRUE(CallStatus(e.graph, batch).ok());
  EXPECT_EQ(e.graph.accumulated_micro_batches(), 0u);
}

TEST(AccumulationState, Mistakes) {
  AccumulatingModel e(1, 3);
  absl::Status status =
      CallStatus(e.graph, {Tensor::Zeros(DType::kF32, {4, 4}), Tensor::Zeros(DType::kI64, {4})});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "graph @graph: input 0 is f32[4,4]; expected a dimension 0 that divides into 3 "
            "micro-batches (config.set_gradient_accumulation_steps)");
  e.graph.config.set_gradient_accumulation_steps(0);
  status = CallStatus(e.graph, {Tensor::Zeros(DType::kF32, {4, 4}), I64({4}, {0, 0, 0, 0})});
  EXPECT_EQ(Message(status), "config.set_gradient_accumulation_steps(0); expected 1 or more");
  e.graph.config.set_gradient_accumulation_steps(1);
  e.graph.config.accumulate_calls(-2);
  status = CallStatus(e.graph, {Tensor::Zeros(DType::kF32, {4, 4}), I64({4}, {0, 0, 0, 0})});
  EXPECT_EQ(Message(status), "config.accumulate_calls(-2); expected 1 or more");
}

// Statistics move with every micro-batch whose gradients are finite, in a skipped window too.
TEST(AccumulationState, NormStatisticsAreThoseOfMicroBatches) {
  AccumulatingModel e(2);
  e.Calls(2, 1);
  const Tensor one = e.State().at("norm.running_mean");
  e.Calls(4, 1);  // not finite
  EXPECT_TRUE(BitEqual(one, e.State().at("norm.running_mean")));
  EXPECT_TRUE(e.graph.last_step_skipped());
  e.Calls(3, 1);
  EXPECT_FALSE(BitEqual(one, e.State().at("norm.running_mean")));
}

}  // namespace
}  // namespace halftone::nn
