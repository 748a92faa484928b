// Evaluating changes no later training step: random masks follow training steps, not calls.
#include <gtest/gtest.h>

#include "halftone/graph/nn/op.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using testing::RandomTensor;

// What an evaluation between training steps may be.
enum class Between : uint8_t { kNothing, kEval, kOtherBatch, kFails, kMany };

class EvaluatedModel : public FnGraph {
 public:
  explicit EvaluatedModel(Device device = {}, int cache_size = 8)
      : FnGraph([this](const Values& in) -> Values {
          const Value y = last(drop(first(in[0])));
          const Value loss = mean(gather(y * y, in[1]));
          loss.backward();
          return {loss};
        }),
        first(8, 8),
        drop(0.5),
        last(8, 1) {
    to(device);
    config.cache_size = cache_size;
    add_module("first", first);
    add_module("drop", drop);
    add_module("last", last);
    add_optimizer(optim::Adam(parameters(), {.lr = 0.05}));
  }
  Linear first;
  Dropout drop;
  Linear last;
};

std::vector<Tensor> RowsAndLabels(int64_t rows) {
  return {RandomTensor(DType::kF32, {rows, 8}, 1), Tensor::Zeros(DType::kI64, {rows})};
}

void Evaluate(EvaluatedModel& model, Between between) {
  model.eval();
  if (between == Between::kEval) Call(model, RowsAndLabels(4));
  if (between == Between::kOtherBatch) Call(model, RowsAndLabels(7));
  if (between == Between::kFails) {
    std::vector<Tensor> in = RowsAndLabels(4);
    in[1] = Tensor::Full(DType::kI64, {4}, 99);
    EXPECT_FALSE(CallStatus(model, in).ok());
  }
  if (between == Between::kMany) {
    for (int i = 0; i < 5; ++i) Call(model, RowsAndLabels(4 + i % 2));
  }
  model.train();
}

// Six steps, with evaluations after steps 2 and 4.
StateDict Train(Between between, Device device = {}, int cache_size = 8) {
  EvaluatedModel model(device, cache_size);
  for (int step = 1; step <= 6; ++step) {
    Call(model, RowsAndLabels(4));
    if (step == 2 || step == 4) Evaluate(model, between);
  }
  EXPECT_EQ(model.run_count(), 6u);
  return *model.state_dict();
}

void ExpectSame(const StateDict& got, const StateDict& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, value] : expected) EXPECT_TRUE(BitEqual(got.at(name), value)) << name;
}

TEST(Evaluation, F04ChangesNoLaterTrainingStep) {
  const StateDict expected = Train(Between::kNothing);
  for (const Between between :
       {Between::kEval, Between::kOtherBatch, Between::kFails, Between::kMany}) {
    SCOPED_TRACE(static_cast<int>(between));
    ExpectSame(Train(between), expected);
    ExpectSame(Train(between, {}, /*cache_size=*/1), expected);
  }
}

TEST(Evaluation, F04OnTheReferenceDevice) {
  const Device device{Device::Kind::kReference, 0};
  ExpectSame(Train(Between::kMany, device), Train(Between::kNothing, device));
}

// Masks move on with every training step that began, also where it changed nothing.
TEST(Evaluation, FailedAndSkippedStepsCountEvaluationsDoNot) {
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(gather(w * in[0], in[1]));
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD(graph.parameters()));
  graph.set_grad_scaler(amp::GradScaler());
  const Tensor inf = F32({1}, {std::numeric_limits<double>::infinity()}), one = F32({1}, {1});
  Call(graph, {inf, I64({1}, {0})});
  EXPECT_TRUE(graph.last_step_skipped());
  EXPECT_EQ(graph.run_count(), 1u);
  EXPECT_FALSE(CallStatus(graph, {one, I64({1}, {5})}).ok());
  EXPECT_EQ(graph.run_count(), 2u);
  EXPECT_FALSE(CallStatus(graph, {F32({2, 2}, {1, 1, 1, 1})}).ok()) << "does not begin";
  EXPECT_EQ(graph.run_count(), 2u);
  graph.eval();
  Call(graph, {one, I64({1}, {0})});
  EXPECT_FALSE(CallStatus(graph, {one, I64({1}, {5})}).ok());
  EXPECT_EQ(graph.run_count(), 2u);
}

// A graph whose dropout is an op of the user's own, on in any mode.
TEST(Evaluation, RandomOpsOfAnEvaluationHaveACountOfTheirOwn) {
  FnGraph graph([](const Values& in) -> Values {
    return {Op("dropout", {in[0]}, {{"p", 0.5}, {"seed", int64_t{3}}}, Loc::current())};
  });
  const Tensor x = Tensor::Full(DType::kF32, {64}, 1);
  const std::vector<double> train0 = Call1(graph, {x});
  const std::vector<double> train1 = Call1(graph, {x});
  EXPECT_NE(train0, train1);
  FnGraph other(graph.fn);
  EXPECT_EQ(Call1(other, {x}), train0);
  other.eval();
  const std::vector<double> eval0 = Call1(other, {x});
  EXPECT_NE(Call1(other, {x}), eval0) << "each evaluation draws anew";
  other.train();
  EXPECT_EQ(Call1(other, {x}), train1);
}

}  // namespace
}  // namespace halftone::nn
