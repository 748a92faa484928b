// Ten models that somebody gets wrong: the message names the line of the model that is to be
// mended. (More mistakes: errors_test.cc.)
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::StartsWith;

Tensor Images() { return Tensor::Zeros(DType::kF32, {4, 3, 8, 8}); }
Tensor FourRows() { return Tensor::Zeros(DType::kF32, {4, 6}); }

// The error of a graph that has `module` as "m" and runs `fn`.
std::string ErrorOf(Module& module, const FnGraph::Fn& fn, const std::vector<Tensor>& in) {
  FnGraph graph(fn);
  graph.add_module("m", module);
  const absl::Status status = CallStatus(graph, in);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return Message(status);
}

TEST(WrongModels, ChannelsOfAConvolution) {
  Conv2d m(1, 8, 3);
  int line = 0;
  const auto build = [&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {m(in[0])};
  };
  const std::string error = ErrorOf(m, build, {Images()});
  EXPECT_EQ(error,
            At(line) + "conv2d: w is [8,1,3,3] for x [4,3,8,8] in 1 groups; expected [8,3,kh,kw]");
}

TEST(WrongModels, ImagesIntoALinearLayer) {
  Linear m(192, 8);
  int line = 0;
  const auto build = [&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {m(in[0])};
  };
  const std::string error = ErrorOf(m, build, {Images()});
  EXPECT_EQ(
      error,
      At(line) +
          "linear: inner sizes differ: x f32[4,3,8,8], w f32[8,192]; expected w to be [out, 8]");
}

TEST(WrongModels, ChannelsOfANorm) {
  BatchNorm2d m(5);
  int line = 0;
  const auto build = [&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {m(in[0])};
  };
  const std::string error = ErrorOf(m, build, {Images()});
  EXPECT_THAT(error, StartsWith(At(line) + "batch_norm: "));
}

TEST(WrongModels, FloatLabels) {
  Linear m(6, 2);
  int line = 0;
  const auto build = [&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {cross_entropy(m(in[0]), in[0])};
  };
  const std::string error = ErrorOf(m, build, {FourRows()});
  EXPECT_EQ(error, At(line) + "cross_entropy: input 1 (target) is f32[4,6]; expected i64 i32");
}

TEST(WrongModels, LabelsOfAnotherBatch) {
  Linear m(6, 2);
  int line = 0;
  const auto build = [&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {cross_entropy(m(in[0]), in[1])};
  };
  const std::string error = ErrorOf(m, build, {FourRows(), Tensor::Zeros(DType::kI64, {5})});
  EXPECT_EQ(
      error,
      At(line) +
          "cross_entropy: target is i64[5]; expected i64[4] (logits f32[4,2] without axis 1)");
}

TEST(WrongModels, FloatIds) {
  Embedding m(10, 4);
  int line = 0;
  const auto build = [&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {m(in[0])};
  };
  const std::string error = ErrorOf(m, build, {FourRows()});
  EXPECT_THAT(error, StartsWith(At(line) + "embedding: "));
}

TEST(WrongModels, ValueOfAnotherGraph) {
  Value kept;
  FnGraph first([&](const Values& in) -> Values {
    kept = relu(in[0]);
    return {kept};
  });
  Call(first, {FourRows()});
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {concat({in[0], kept}, 0)};
  });
  const std::string error = Message(CallStatus(graph, {FourRows()}));
  EXPECT_EQ(error, At(line) + "an operand belongs to another call of build()");
}

TEST(WrongModels, NoLoss) {
  Linear fc(6, 2);
  FnGraph graph([&](const Values& in) -> Values { return {fc(in[0])}; });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  const int line = __LINE__ - 1;
  const absl::Status status = CallStatus(graph, {FourRows()});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status), At(line) +
                                 "optimizer0: build() called no backward(); expected "
                                 "loss.backward(), or eval() to run without training");
  graph.eval();
  EXPECT_TRUE(CallStatus(graph, {FourRows()}).ok());
}

TEST(WrongModels, ParameterUsedByTwoOptimizers) {
  Linear fc(6, 2);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = mean(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  graph.add_optimizer(optim::Adam({fc.weight.storage()}, {.lr = 0.1}));
  const int line = __LINE__ - 1;
  EXPECT_EQ(Message(CallStatus(graph, {FourRows()})),
            At(line) +
                "optimizer1: parameter \"fc.weight\" is already changed by optimizer0; expected "
                "one optimizer a parameter");
}

TEST(WrongModels, ParameterThatIsNotUsed) {
  Linear fc(6, 2), head(6, 2);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = mean(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_module("head", head);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  EXPECT_TRUE(CallStatus(graph, {FourRows()}).ok());
  EXPECT_THAT(graph.notes(),
              ::testing::ElementsAre("optimizer0: build() does not use \"head.weight\", "
                                     "\"head.bias\"; they stay as they are"));
}

TEST(WrongModels, ParameterOfAnotherModel) {
  Linear fc(6, 2), other(6, 2);
  FnGraph graph([&](const Values& in) -> Values { return {fc(in[0])}; });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD({other.weight.storage()}, {.lr = 0.1}));
  const int line = __LINE__ - 1;
  EXPECT_EQ(Message(CallStatus(graph, {FourRows()})),
            At(line) +
                "optimizer0: a parameter belongs to no module of this graph; expected add_module "
                "before add_optimizer");
}

}  // namespace
}  // namespace halftone::nn
