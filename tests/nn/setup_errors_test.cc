// Mistakes in what a model is made of, names, parameters, operands, and calls of handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "halftone/graph/nn/trace.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& message) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(Message(status), message);
}

// What a module registers under names of the test's choice.
class Named : public Module {
 public:
  using Module::register_buffer;
  using Module::register_module;
  using Module::register_parameter;
};

// A module with a member, which its children point into.
class ParentModule : public Module {
 public:
  ParentModule() : fc_(1, 1) { register_module("fc", fc_); }

 private:
  Linear fc_;
};

Parameter Two() { return Parameter(Shape{2}, ir::Initializer{}); }

TEST(NameErrors, OfModules) {
  for (const char* name : {"", "a.b", "a/b", "a\"b"}) {
    Linear fc(1, 1);
    FnGraph graph;
    graph.add_module(name, fc);
    ExpectError(graph.status(), kInvalid,
                At(__LINE__ - 2) + "add_module: \"" + name +
                    "\" cannot name a module; expected a non-empty name without '.', '/' and '\"'");
  }
}

TEST(NameErrors, OfParameters) {
  for (const char* name : {"", "a/b", "a\"b"}) {
    FnGraph graph;
    graph.add_parameter(name, Two());
    ExpectError(graph.status(), kInvalid,
                At(__LINE__ - 2) + "add_parameter: \"" + name +
                    "\" cannot name a parameter; expected a non-empty name without '/' and '\"'");
  }
  FnGraph graph;
  graph.add_parameter("a.b", Two());
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  graph.add_parameter("w", Parameter());
  ExpectError(graph.status(), kInvalid,
              At(__LINE__ - 2) + "add_parameter: \"w\" is undefined; expected one with a shape");
}

TEST(NameErrors, OfMembers) {
  const std::string expected =
      "\" cannot name a member of a module; expected a non-empty name without '.', '/' and '\"'";
  Named parameter;
  parameter.register_parameter("a.b", Two());
  ExpectError(parameter.status(), kInvalid, "\"a.b" + expected);
  Named buffer;
  buffer.register_buffer("", Two());
  ExpectError(buffer.status(), kInvalid, "\"" + expected);
  Linear fc(1, 1);
  Named module;
  module.register_module("a/b", fc);
  ExpectError(module.status(), kInvalid, "\"a/b" + expected);
  Named twice;
  twice.register_parameter("fc", Two());
  twice.register_module("fc", fc);
  ExpectError(twice.status(), absl::StatusCode::kAlreadyExists,
              "a module has two members named \"fc\"");
}

TEST(ModuleErrors, MovedWithMembers) {
  ParentModule first;
  EXPECT_TRUE(first.status().ok());
  const ParentModule second(std::move(first));
  ExpectError(second.status(), kPrecondition,
              "a module with registered submodules was moved; construct it in place, for example "
              "with Sequential::emplace");
}

TEST(ModuleErrors, Extents) {
  ExpectError(Linear(3, 0).status(), kInvalid, "Linear: out_features is 0; expected at least 1");
  ExpectError(Embedding(0, 3).status(), kInvalid,
              "Embedding: num_embeddings is 0; expected at least 1");
  ExpectError(LayerNorm(std::vector<int64_t>{}).status(), kInvalid,
              "LayerNorm: normalized_shape is []; expected one or more extents of at least 1");
  ExpectError(LayerNorm(std::vector<int64_t>{2, 0}).status(), kInvalid,
              "LayerNorm: normalized_shape is [2,0]; expected one or more extents of at least 1");
}

TEST(SetupErrors, ASecondDefaultScaler) {
  FnGraph graph;
  graph.set_grad_scaler(amp::GradScaler());
  EXPECT_TRUE(graph.status().ok());
  graph.set_grad_scaler(amp::GradScaler());
  ExpectError(
      graph.status(), absl::StatusCode::kAlreadyExists,
      At(__LINE__ - 3) + "set_grad_scaler was called twice; add_scaler adds a further scaler");
}

// What a call says of a graph with this build().
absl::Status ErrorOfBuild(const FnGraph::Fn& build) {
  FnGraph graph(build);
  return CallStatus(graph, {F32({2}, {1, 2})});
}

TEST(OperandErrors, F54NumbersOnly) {
  const std::string rest =
      ": both operands are numbers; expected at least one value, for example constant() of one of "
      "them";
  absl::Status status = ErrorOfBuild([](const Values&) -> Values { return {maximum(1.0, 2.0)}; });
  ExpectError(status, kInvalid, At(__LINE__ - 1) + "maximum" + rest);
  status = ErrorOfBuild([](const Values& in) -> Values { return {where(in[0] > 1, 1.0, 0.0)}; });
  ExpectError(status, kInvalid, At(__LINE__ - 1) + "where" + rest);
}

TEST(OperandErrors, ANumberThatDoesNotFit) {
  const auto error = [](DType type, double number) {
    return ErrorOfBuild([=](const Values& in) -> Values { return {cast(in[0], type) + number}; });
  };
  const auto text = [](const std::string& number, const std::string& type) {
    return "add: the number " + number + " does not fit the other operand's type, " + type +
           "; expected one that does, or a cast of that operand";
  };
  EXPECT_EQ(error(DType::kI32, 0x1p31 - 1), absl::OkStatus());
  EXPECT_EQ(error(DType::kI32, -0x1p31), absl::OkStatus());
  EXPECT_THAT(Message(error(DType::kI32, 0x1p31)),
              ::testing::HasSubstr(text("2.14748e+09", "i32")));
  EXPECT_THAT(Message(error(DType::kI64, 0x1p63)),
              ::testing::HasSubstr(text("9.22337e+18", "i64")));
  EXPECT_THAT(Message(error(DType::kU8, 256)), ::testing::HasSubstr(text("256", "u8")));
  EXPECT_THAT(Message(error(DType::kU8, -1)), ::testing::HasSubstr(text("-1", "u8")));
  EXPECT_EQ(error(DType::kU8, 255), absl::OkStatus());
  EXPECT_THAT(Message(error(DType::kBool, 2)), ::testing::HasSubstr(text("2", "bool")));
  EXPECT_THAT(Message(error(DType::kI32, std::numeric_limits<double>::infinity())),
              ::testing::HasSubstr(text("inf", "i32")));
}

TEST(OperandErrors, NeverAssigned) {
  const absl::Status status = ErrorOfBuild([](const Values&) -> Values { return {relu(Value())}; });
  ExpectError(status, kPrecondition, At(__LINE__ - 1) + "an operand was never assigned a value");
}

TEST(OperandErrors, UndefinedConstant) {
  const absl::Status status =
      ErrorOfBuild([](const Values&) -> Values { return {constant(Tensor())}; });
  ExpectError(status, kInvalid,
              At(__LINE__ - 2) + "constant: an undefined tensor; expected one with a shape");
}

TEST(OperandErrors, ParametersOfNoModule) {
  const Parameter loose = Two(), none;
  const absl::Status other =
      ErrorOfBuild([&](const Values& in) -> Values { return {mul(in[0], loose)}; });
  ExpectError(other, kPrecondition,
              At(__LINE__ - 2) +
                  "a parameter of type f32[2] belongs to no module of this graph; expected "
                  "add_module or add_parameter before the first call");
  const absl::Status undefined =
      ErrorOfBuild([&](const Values& in) -> Values { return {mul(in[0], none)}; });
  ExpectError(undefined, kPrecondition, At(__LINE__ - 1) + "a parameter is undefined");
}

TEST(OperandErrors, UpdateOfAnotherType) {
  const Parameter count = Parameter::Buffer(Shape{2}, ir::Initializer{});
  FnGraph graph([&](const Values& in) -> Values {
    internal::Trace::Current()->Write(count.storage(), sum(in[0]), Loc::current());
    return {in[0]};
  });
  graph.add_parameter("count", count);
  ExpectError(CallStatus(graph, {F32({2}, {1, 2})}), kInvalid,
              At(__LINE__ - 5) + "update of \"count\": got f32[], expected f32[2]");
}

TEST(HandleErrors, OfNoGraph) {
  ExpectError(OptimizerHandle().set_lr(0.1), kPrecondition,
              "set_lr: the handle belongs to no graph");
  ScalerHandle scaler;
  ExpectError(scaler.set_scale(2), kPrecondition, "set_scale: the handle belongs to no graph");
  ExpectError(scaler.state_dict().status(), kPrecondition,
              "state_dict: the handle belongs to no graph");
  ExpectError(scaler.load_state_dict({}), kPrecondition,
              "load_state_dict: the handle belongs to no graph");
}

TEST(HandleErrors, AGraphWithoutScaler) {
  FnGraph graph;
  ScalerHandle scaler = graph.grad_scaler();
  EXPECT_EQ(scaler.name(), "");
  EXPECT_EQ(scaler.scale(), 1);
  ExpectError(scaler.set_scale(2), kPrecondition,
              "set_scale: graph @graph has no grad scaler; expected set_grad_scaler");
  ExpectError(scaler.state_dict().status(), kPrecondition,
              "state_dict: graph @graph has no grad scaler; expected set_grad_scaler");
}

TEST(HandleErrors, ADisabledScalerHasNoState) {
  FnGraph graph;
  ScalerHandle scaler = graph.add_scaler(amp::GradScaler({.enabled = false}));
  ExpectError(scaler.set_scale(2), kPrecondition, "graph @graph has no state \"scaler0.scale\"");
}

}  // namespace
}  // namespace halftone::nn
