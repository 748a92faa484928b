// Mistakes in models: the call returns the first one, with the user's file and line.
#include <gtest/gtest.h>

#include "halftone/graph/nn/trace.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(Graph& graph, const std::vector<Tensor>& in) {
  return Message(CallStatus(graph, in));
}

TEST(ModelErrors, MatmulNamesFileLineAndBothTypes) {
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {matmul(in[0], in[1])};
  });
  const absl::Status status =
      CallStatus(graph, {Tensor::Zeros(DType::kF32, {8, 16}), Tensor::Zeros(DType::kF32, {4, 10})});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), At(line) +
                                 "matmul: inner sizes differ: f32[8,16] x f32[4,10]; expected "
                                 "[16, n]");
}

// What languages without std::source_location rely on.
TEST(ModelErrors, ALocatorReplacesThePlaceInTheSource) {
  FnGraph graph([](const Values& in) -> Values {
    internal::Trace::Current()->set_locate([] { return ir::SourceLocation{"model.py", 7}; });
    return {matmul(in[0], in[0])};
  });
  EXPECT_THAT(ErrorOf(graph, {Tensor::Zeros(DType::kF32, {2, 3})}),
              StartsWith("model.py:7: matmul: inner sizes differ"));
}

TEST(ModelErrors, StatusIsTheFirstMistakeOfTheConstructor) {
  class Wrong : public Graph {
   public:
    explicit Wrong(int64_t features) : fc_(features, 2) { add_module("fc", fc_); }
    Values build(const Values& in) override { return {fc_(in[0])}; }

   private:
    Linear fc_;
  };
  EXPECT_TRUE(Wrong(1).status().ok());
  const Wrong wrong(-1);
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(wrong.status()), HasSubstr("in_features is -1"));
}

TEST(ModelErrors, OperatorsTakeTheLocationToo) {
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    const Value bad = in[0] + in[1];
    return {bad};
  });
  const std::string error =
      ErrorOf(graph, {Tensor::Zeros(DType::kF32, {2, 3}), Tensor::Zeros(DType::kF32, {2, 4})});
  EXPECT_THAT(error, AllOf(StartsWith(At(line) + "add"), HasSubstr("[2,3]"), HasSubstr("[2,4]")));
}

TEST(ModelErrors, ModulesNameTheLineOfTheirCall) {
  Linear fc(4, 2);
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {fc(in[0])};
  });
  graph.add_module("fc", fc);
  const std::string error = ErrorOf(graph, {Tensor::Zeros(DType::kF32, {3, 5})});
  EXPECT_THAT(error, AllOf(StartsWith(At(line) + "linear"), HasSubstr("f32[3,5]")));
}

TEST(ModelErrors, ModulesInsideASequentialNameTheLineOfItsCall) {
  Sequential net(Linear(5, 4), ReLU(), Linear(3, 2));
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {net(in[0])};
  });
  graph.add_module("net", net);
  const std::string error = ErrorOf(graph, {Tensor::Zeros(DType::kF32, {3, 5})});
  EXPECT_THAT(error, AllOf(StartsWith(At(line) + "linear"), HasSubstr("f32[3,4]")));
}

TEST(ModelErrors, OnlyTheFirstErrorCountsAndPoisonIsHarmless) {
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    Value v = matmul(in[0], in[0]);
    // Reading extents of poison must not run over the end of a shape.
    v = reshape(v, {v.shape()[0], v.shape()[3], v.dim(-1)}) + 1.0 - v * in[0];
    v.backward();
    return {v, concat({v, v}, 0)};
  });
  const std::string error = ErrorOf(graph, {Tensor::Zeros(DType::kF32, {2, 3})});
  EXPECT_THAT(error, StartsWith(At(line) + "matmul"));
}

TEST(ModelErrors, InputsOutOfRange) {
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {relu(in[1])};
  });
  const absl::Status status = CallStatus(graph, {Tensor::Zeros(DType::kF32, {2})});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(status), At(line) + "values[1]: there are 1 values; expected 0..0");
}

TEST(ModelErrors, AxesOutOfRange) {
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {softmax(in[0], 5)};
  });
  const std::string error = ErrorOf(graph, {Tensor::Zeros(DType::kF32, {8, 16})});
  EXPECT_EQ(error, At(line) + "softmax: axis 5 out of range for f32[8,16]; expected -2..1");
}

TEST(ModelErrors, ReshapeThatDoesNotFit) {
  FnGraph graph([&](const Values& in) -> Values { return {reshape(in[0], {4, -1})}; });
  EXPECT_THAT(ErrorOf(graph, {Tensor::Zeros(DType::kF32, {2, 3})}),
              HasSubstr("reshape: f32[2,3] to [4,-1]; expected at most one -1 and 6 elements"));
}

TEST(ModelErrors, DropoutProbability) {
  FnGraph graph([&](const Values& in) -> Values { return {dropout(in[0], 1.0)}; });
  EXPECT_THAT(ErrorOf(graph, {Tensor::Zeros(DType::kF32, {2})}),
              HasSubstr("dropout: p is 1; expected 0 <= p < 1"));
}

TEST(ModelErrors, BackwardNeedsAFloatScalar) {
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    in[0].backward();
    return {in[0]};
  });
  const std::string error = ErrorOf(graph, {Tensor::Zeros(DType::kF32, {2, 3})});
  EXPECT_EQ(error, At(line) + "backward: the loss is f32[2,3]; expected a floating-point scalar");
}

TEST(ModelErrors, BackwardWithAnUnknownScaler) {
  FnGraph graph([&](const Values& in) -> Values {
    in[0].backward({.scaler = "scaler7"});
    return {in[0]};
  });
  const absl::Status status = CallStatus(graph, {Tensor::Zeros(DType::kF32, {})});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("backward: this graph has no grad scaler \"scaler7\""));
}

TEST(ModelErrors, ModuleThatWasNotAdded) {
  Linear fc(2, 2);
  int line = 0;
  FnGraph graph([&](const Values& in) -> Values {
    line = __LINE__ + 1;
    return {fc(in[0])};
  });
  const std::string error = ErrorOf(graph, {Tensor::Zeros(DType::kF32, {1, 2})});
  EXPECT_EQ(error,
            At(line) +
                "Linear(2, 2) is not part of this graph; expected add_module, or register_module "
                "in a module that was added");
}

TEST(ModelErrors, ValueKeptFromAnEarlierBuild) {
  Value kept;
  FnGraph graph([&](const Values& in) -> Values {
    if (kept.valid()) ADD_FAILURE() << "a value of an earlier trace is valid";
    const Value y = in[0] + kept;
    return {y};
  });
  FnGraph first([&](const Values& in) -> Values {
    kept = relu(in[0]);
    EXPECT_TRUE(kept.valid());
    return {kept};
  });
  Call(first, {F32({1}, {2})});
  EXPECT_THAT(ErrorOf(graph, {F32({1}, {2})}),
              HasSubstr("an operand belongs to another call of build()"));
}

TEST(ModelErrors, OutputThatNoOpGave) {
  FnGraph graph([&](const Values&) -> Values { return {Value()}; });
  EXPECT_EQ(ErrorOf(graph, {}),
            "graph @graph: build() returned a value that no op of this call gave");
}

TEST(ModelErrors, ForwardThatIsNotWritten) {
  class Bare : public Module {};
  Bare bare;
  FnGraph graph([&](const Values& in) -> Values { return {bare(in[0])}; });
  graph.add_module("bare", bare);
  EXPECT_THAT(ErrorOf(graph, {F32({1}, {2})}), HasSubstr("Module has no forward(x)"));
}

TEST(ConstructorErrors, SurfaceAtTheFirstCall) {
  Linear bad(-3, 2);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("fc", bad);
  EXPECT_EQ(ErrorOf(graph, {F32({1}, {2})}),
            At(__LINE__ - 2) + "module \"fc\": Linear: in_features is -3; expected at least 1");
  EXPECT_EQ(Message(graph.state_dict().status()), ErrorOf(graph, {}));
  EXPECT_EQ(graph.builds, 0);
}

TEST(ConstructorErrors, NamesThatAreTaken) {
  Linear a(1, 1), b(1, 1);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("fc", a);
  graph.add_module("fc", b);
  EXPECT_EQ(ErrorOf(graph, {F32({1}, {2})}),
            At(__LINE__ - 2) + "two variables are named \"fc.weight\"");
}

TEST(ConstructorErrors, NamesThatCannotBe) {
  Linear a(1, 1);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("a.b", a);
  EXPECT_THAT(ErrorOf(graph, {F32({1}, {2})}), HasSubstr("\"a.b\" cannot name a module"));
}

TEST(ConstructorErrors, OptimizerBeforeItsModule) {
  Linear fc(1, 1);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_optimizer(optim::SGD({fc.weight.storage()}));
  EXPECT_THAT(ErrorOf(graph, {F32({1}, {2})}),
              HasSubstr("optimizer0: a parameter belongs to no module of this graph"));
}

TEST(ConstructorErrors, OptimizerOptions) {
  Linear fc(1, 1);
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = -1}));
  EXPECT_THAT(ErrorOf(graph, {F32({1}, {2})}),
              StartsWith(At(__LINE__ - 2) + "optimizer0: SGD: lr = -1"));
}

TEST(ConstructorErrors, ScalerOptions) {
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  graph.set_grad_scaler(amp::GradScaler({.growth_factor = 1}));
  EXPECT_THAT(ErrorOf(graph, {F32({1}, {2})}),
              StartsWith(At(__LINE__ - 2) + "scaler0: GradScaler: growth_factor = 1"));
}

TEST(ConstructorErrors, OptimizerWithAnUnknownScaler) {
  Linear fc(1, 1);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.scaler = "s"}));
  EXPECT_EQ(ErrorOf(graph, {F32({1, 1}, {2})}),
            At(__LINE__ - 2) + "optimizer0: this graph has no grad scaler \"s\"");
}

TEST(CallErrors, UndefinedTensor) {
  FnGraph graph([&](const Values& in) -> Values { return {in[0]}; });
  EXPECT_EQ(ErrorOf(graph, {Tensor()}), "graph @graph: input 0 is an undefined tensor");
}

TEST(CallErrors, OutputsOfRun) {
  FnGraph graph([&](const Values& in) -> Values { return {relu(in[0]), neg(in[0])}; });
  const std::vector<Tensor> in = {F32({2}, {-1, 3})};
  std::vector<Tensor> one = {F32({2}, {0, 0})};
  EXPECT_EQ(Message(graph.Run(in, absl::MakeSpan(one))),
            "graph @graph: got 1 output tensors, expected 2");
  std::vector<Tensor> wrong = {F32({2}, {0, 0}), I64({2}, {0, 0})};
  EXPECT_EQ(Message(graph.Run(in, absl::MakeSpan(wrong))),
            "graph @graph: output 1: got i64[2], expected f32[2]");
  std::vector<Tensor> same = {F32({2}, {0, 0}), in[0]};
  EXPECT_EQ(Message(graph.Run(in, absl::MakeSpan(same))),
            "graph @graph: output 1 (f32[2]) shares its memory with an input or another output");
  std::vector<Tensor> right = {F32({2}, {0, 0}), F32({2}, {0, 0})};
  ASSERT_TRUE(graph.Run(in, absl::MakeSpan(right)).ok());
  EXPECT_THAT(right[0].ToVector(), ElementsAre(0, 3));
  EXPECT_THAT(right[1].ToVector(), ElementsAre(1, -3));
}

TEST(CallErrors, DeviceThatThisBuildLacks) {
  FnGraph graph([&](const Values& in) -> Values { return {relu(in[0])}; });
  graph.to(Device::Cuda(99));
  const absl::Status status = CallStatus(graph, {F32({1}, {2})});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), StartsWith("device cuda:99: "));
  graph.to(Device::Reference());
  EXPECT_THAT(Call1(graph, {F32({1}, {-2})}), ElementsAre(0));
}

TEST(CallErrors, PrecisionThatIsNotLow) {
  FnGraph graph([&](const Values& in) -> Values { return {relu(in[0])}; });
  graph.config.enable_amp(true, {.dtype = DType::kF64});
  EXPECT_EQ(ErrorOf(graph, {F32({1}, {2})}), "enable_amp: dtype is f64; expected f16, bf16 or f8");
}

}  // namespace
}  // namespace halftone::nn
