// Executables on graphs written as text: places of values, commits, faults.
#include "halftone/graph/runtime/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/compile.h"

namespace halftone::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Program {
  VariableStore store;
  std::shared_ptr<Arena> arena = std::make_shared<Arena>();
  std::unique_ptr<Executable> executable;

  explicit Program(const std::string& text) { Load(text); }
  void Load(const std::string& text) {
    auto graph = ir::Parse(text);
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    auto made = Executable::Create(*std::move(graph), Device::Cpu(), 0, store, arena);
    ASSERT_TRUE(made.ok()) << Message(made.status());
    executable = *std::move(made);
  }
  // Runs with f32 outputs of the executable's types.
  absl::Status Run(const std::vector<Tensor>& in, std::vector<Tensor>* out = nullptr) {
    std::vector<const void*> inputs;
    for (const Tensor& t : in) inputs.push_back(t.raw());
    std::vector<Tensor> tensors;
    std::vector<void*> outputs;
    for (const ir::ValueType& type : executable->output_types()) {
      tensors.push_back(Tensor::Zeros(type.dtype, type.shape));
      outputs.push_back(tensors.back().raw());
    }
    const absl::Status status = executable->Run(inputs.data(), outputs.data(), runs++);
    if (out != nullptr) *out = tensors;
    return status;
  }
  std::vector<double> Value(const std::string& name) {
    return store.Find(name)->value().ToVector();
  }
  uint64_t runs = 0;
};

TEST(Executable, VariablesExchangeTheirValues) {
  Program p(R"ht(graph @swap() {
    %a = variable "a" {init="constant(1)"} : f32[2]
    %b = variable "b" {init="constant(2)"} : f32[2]
    commit "a" = %b
    commit "b" = %a
    return %a
  })ht");
  std::vector<Tensor> out;
  ASSERT_TRUE(p.Run({}, &out).ok());
  EXPECT_THAT(p.Value("a"), ElementsAre(2, 2));
  EXPECT_THAT(p.Value("b"), ElementsAre(1, 1));
  EXPECT_THAT(out[0].ToVector(), ElementsAre(1, 1)) << "the value at the start of the step";
  ASSERT_TRUE(p.Run({}).ok());
  EXPECT_THAT(p.Value("a"), ElementsAre(1, 1));
}

TEST(Executable, OldValueIsReadByLaterNodes) {
  // The new value is ready before the old one is read for the last time.
  Program p(R"ht(graph @g(%x: f32[2]) {
    %a = variable "a" {init="constant(3)"} : f32[2]
    %next = add(%a, %x)
    %old = mul(%a, %next)
    commit "a" = %next
    return %old
  })ht");
  std::vector<Tensor> out;
  ASSERT_TRUE(p.Run({Tensor::Of(DType::kF32, {2}, {1, 2})}, &out).ok());
  EXPECT_THAT(out[0].ToVector(), ElementsAre(12, 15));
  EXPECT_THAT(p.Value("a"), ElementsAre(4, 5));
}

TEST(Executable, InputsGoStraightToOutputsAndVariables) {
  Program p(R"(graph @g(%x: f32[2]) {
    %a = variable "a" : f32[2]
    %c = constant {value=dense<f32[2]>(7, 8)} : f32[2]
    commit "a" = %x
    return %x, %c, %x
  })");
  std::vector<Tensor> out;
  ASSERT_TRUE(p.Run({Tensor::Of(DType::kF32, {2}, {1, 2})}, &out).ok());
  EXPECT_THAT(out[0].ToVector(), ElementsAre(1, 2));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(7, 8));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(1, 2));
  EXPECT_THAT(p.Value("a"), ElementsAre(1, 2));
}

TEST(Executable, ReshapesShareBytes) {
  Program p(R"(graph @g(%x: f32[4]) {
    %y = neg(%x)
    %z = reshape(%y) {shape=[2,2]}
    %s = sum(%z) {axes=[0]}
    return %s, %z
  })");
  std::vector<Tensor> out;
  ASSERT_TRUE(p.Run({Tensor::Of(DType::kF32, {4}, {1, 2, 3, 4})}, &out).ok());
  EXPECT_THAT(out[0].ToVector(), ElementsAre(-4, -6));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(-1, -2, -3, -4));
  EXPECT_EQ(p.executable->steps().size(), 2u);
}

TEST(Executable, FaultsChangeNoVariableWhateverTheOrder) {
  // The update is complete before the gather that faults.
  Program p(R"ht(graph @g(%x: f32[2], %i: i64[1]) {
    %a = variable "a" {init="constant(1)"} : f32[2]
    %next = add(%a, %x)
    commit "a" = %next
    %row = gather(%x, %i)
    return %row
  })ht");
  const Tensor x = Tensor::Of(DType::kF32, {2}, {1, 2});
  const uint64_t version = p.store.Find("a")->version();
  const absl::Status status = p.Run({x, Tensor::Of(DType::kI64, {1}, {2})});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("gather(%row)"));
  EXPECT_THAT(Message(status), HasSubstr("2"));
  EXPECT_THAT(Message(status), HasSubstr("0..1"));
  EXPECT_THAT(p.Value("a"), ElementsAre(1, 1));
  EXPECT_EQ(p.store.Find("a")->version(), version);
  ASSERT_TRUE(p.Run({x, Tensor::Of(DType::kI64, {1}, {1})}).ok());
  EXPECT_THAT(p.Value("a"), ElementsAre(2, 3));
  EXPECT_GT(p.store.Find("a")->version(), version);
}

TEST(Executable, SurvivesAnArenaThatMoves) {
  const auto text = [](int n) {
    const std::string type = "f32[" + std::to_string(n) + "]";
    return "graph @g(%x: " + type + ") {\n %y = exp(%x)\n %s = sum(%y) {axes=[]}\n return %s\n}";
  };
  Program p(text(10));
  std::unique_ptr<Executable> small = std::move(p.executable);
  const void* before = p.arena->data();
  p.Load(text(100000));
  EXPECT_NE(p.arena->data(), before);
  std::vector<Tensor> out;
  ASSERT_TRUE(p.Run({Tensor::Zeros(DType::kF32, {100000})}, &out).ok());
  EXPECT_EQ(out[0].item(), 100000);
  p.executable = std::move(small);
  ASSERT_TRUE(p.Run({Tensor::Zeros(DType::kF32, {10})}, &out).ok());
  EXPECT_EQ(out[0].item(), 10);
}

TEST(Executable, ProfileSeesEveryKernel) {
  Program p("graph @g(%x: f32[2]) {\n %y = exp(%x)\n %s = sum(%y) {axes=[]}\n return %s\n}");
  std::vector<std::string> seen;
  p.executable->set_profile([&](const ir::Node& node, const kernels::Kernel&, double seconds) {
    EXPECT_GE(seconds, 0);
    seen.push_back(node.name());
  });
  ASSERT_TRUE(p.Run({Tensor::Zeros(DType::kF32, {2})}).ok());
  EXPECT_THAT(seen, ElementsAre("y", "s"));
  p.executable->set_profile(nullptr);
  ASSERT_TRUE(p.Run({Tensor::Zeros(DType::kF32, {2})}).ok());
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Compile, TrainsAGraphFromText) {
  // w - lr * x, the gradient of w * x.
  auto graph = ir::Parse(R"ht(graph @g(%x: f32[]) {
    %w = variable "w" {init="constant(1)"} : f32[]
    %loss = mul(%w, %x)
    backward(%loss)
    %norm, %applied = optimizer() {rule="sgd", params=["w"], lr=0.5}
    return %loss, %norm, %applied
  })ht");
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  VariableStore store;
  CompileOptions options;
  const auto executable = Compile(*std::move(graph), options, store, std::make_shared<Arena>());
  ASSERT_TRUE(executable.ok()) << Message(executable.status());
  const float x = 3;
  float loss = 0;
  float norm = 0;
  bool applied = false;
  const void* in[] = {&x};
  void* out[] = {&loss, &norm, &applied};
  ASSERT_TRUE((*executable)->Run(in, out, 0).ok());
  EXPECT_EQ(loss, 3);
  EXPECT_EQ(norm, 3);
  EXPECT_TRUE(applied);
  EXPECT_EQ(store.Find("w")->value().item(), -0.5);
}

TEST(Compile, DevicesOfThisBuild) {
  EXPECT_EQ((*TargetOf(Device::Reference()))->name(), "reference");
  EXPECT_THAT((*TargetOf(Device::Cpu()))->name(), ::testing::StartsWith("cpu-"));
  // Whether or not there is CUDA here; tests/programs/cuda_module_test.cc has the texts.
  const absl::Status status = TargetOf(Device::Cuda(99)).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), ::testing::StartsWith("device cuda:99: "));
}

// A program that says of an operand that it stays, and gives another in every step.
TEST(Executable, RefusesToPackWhatDoesNotStay) {
  VariableStore store;
  for (const char* body : {"  %y = linear(%x, %v) {packed=true}\n  return %y\n}\n",
                           "  %y = linear(%x, %w) {packed=true}\n  %n = add(%w, %v)\n"
                           "  commit \"w\" = %n\n  return %y\n}\n"}) {
    auto graph =
        ir::Parse(Concat("graph @g(%x: f32[3,64], %v: f32[32,64]) {\n"
                         "  %w = variable \"w\" : f32[32,64]\n",
                         body));
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    const absl::Status refused =
        Executable::Create(*std::move(graph), Device::Cpu(), 0, store, std::make_shared<Arena>())
            .status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(refused),
                HasSubstr("packed is true; expected an input 1 that no step writes"));
  }
}

// Batches of two sizes read one copy, which goes with the last executable.
TEST(Executable, PackedWeightsAreShared) {
  VariableStore store;
  const auto arena = std::make_shared<Arena>();
  const auto make = [&](int rows) {
    auto graph = ir::Parse(Concat("graph @g(%x: f32[", rows,
                                  ",4096]) {\n"
                                  "  %w = variable \"w\" : f32[1024,4096]\n"
                                  "  %y = linear(%x, %w) {packed=true}\n  return %y\n}\n"));
    EXPECT_TRUE(graph.ok()) << Message(graph.status());
    auto made = Executable::Create(*std::move(graph), Device::Cpu(), 0, store, arena);
    EXPECT_TRUE(made.ok()) << Message(made.status());
    return *std::move(made);
  };
  constexpr int64_t kBytes = int64_t{1024} * 4096 * 4;
  const int64_t before = BufferStats().live_bytes;
  std::unique_ptr<Executable> two = make(2);
  const int64_t with_variable = BufferStats().live_bytes - before;
  std::unique_ptr<Executable> three = make(3);
  EXPECT_LT(BufferStats().live_bytes - before - with_variable, kBytes / 2);
  two.reset();
  three.reset();
  EXPECT_LE(BufferStats().live_bytes - before, kBytes + (int64_t{1} << 20));
}

}  // namespace
}  // namespace halftone::runtime
