#include "halftone/tests/support/random_elementwise.h"

#include <algorithm>
#include <array>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/rewrite/fuse.h"
#include "halftone/tests/support/graph_runner.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using ir::Expr;

class RandomElementwise {
 public:
  explicit RandomElementwise(uint64_t seed)
      : random_(seed), graph_(std::make_unique<ir::Graph>("g")), b_(graph_.get()) {
    static const std::array<Shape, 6> kShapes = {Shape{2500},         Shape{40, 64},
                                                 Shape{3, 2100},      Shape{700, 3},
                                                 Shape{2, 8, 12, 12}, Shape{5, 1, 7, 61}};
    shape_ = kShapes[random_.Below(kShapes.size())];
  }

  std::unique_ptr<ir::Graph> Make() {
    for (const char* name : {"x", "y", "z"})
      values_.push_back(b_.Input(name, {DType::kF32, shape_}));
    const auto dims = shape_.dims();
    rows_.push_back(b_.Input("row", {DType::kF32, Shape(dims.subspan(dims.size() / 2))}));
    rows_.push_back(b_.Input("one", {DType::kF32, Shape()}));
    const uint64_t steps = 6 + random_.Below(20);
    for (uint64_t i = 0; i < steps; ++i) Step();
    const uint64_t results = 1 + random_.Below(3);
    for (uint64_t i = 0; i < results; ++i) {
      graph_->outputs().push_back({"", values_[values_.size() - 1 - i].value()});
    }
    HT_CHECK(b_.status().ok(), "a random graph does not build");
    return std::move(graph_);
  }

 private:
  // Late values more often, so that chains get long.
  Expr Value() {
    const size_t late = std::min<size_t>(values_.size(), 1 + random_.Below(4));
    return random_.Below(3) == 0 ? values_[random_.Below(values_.size())]
                                 : values_[values_.size() - late];
  }
  Expr In(DType dtype, Expr x) { return b_.Cast(x, dtype); }
  void Keep(Expr value) { values_.push_back(value); }

  void Step() {
    static constexpr std::array<DType, 3> kDTypes = {DType::kF32, DType::kF16, DType::kBF16};
    static constexpr std::array<const char*, 10> kUnary = {
        "relu", "tanh", "sigmoid", "neg", "abs", "floor", "gelu", "silu", "softplus", "square"};
    static constexpr std::array<const char*, 5> kBinary = {"add", "sub", "mul", "maximum",
                                                           "minimum"};
    const Expr x = Value();
    const DType dtype = x.dtype();
    switch (random_.Below(9)) {
      case 0:
        return Keep(b_.Cast(x, kDTypes[random_.Below(3)]));
      case 1:
      case 2:
        return Keep(b_.Op(kUnary[random_.Below(kUnary.size())], {x}));
      case 3:
      case 4:
        return Keep(b_.Op(kBinary[random_.Below(kBinary.size())], {x, In(dtype, Value())}));
      case 5: {
        const Expr row = In(dtype, rows_[random_.Below(rows_.size())]);
        return Keep(random_.Below(2) == 0 ? b_.Op("sub", {row, x}) : b_.Op("mul", {x, row}));
      }
      case 6: {
        const Expr y = In(dtype, Value());
        return Keep(b_.Op("where", {b_.Op("less", {x, y}), x, b_.Op("neg", {y})}));
      }
      case 7:
        return Keep(b_.Op("relu_grad", {x, In(dtype, Value())}));
      default: {
        // Something that is not elementwise, so that operands wait.
        const Expr sum = b_.Op("sum", {In(DType::kF32, x)},
                               {{"axes", std::vector<int64_t>{0}}, {"keepdim", true}});
        return Keep(b_.Op("sub", {x, In(dtype, b_.Op("tanh", {sum}))}));
      }
    }
  }

  PhiloxStream random_;
  std::unique_ptr<ir::Graph> graph_;
  ir::Builder b_;
  Shape shape_;
  std::vector<Expr> values_, rows_;
};

struct FusionRun {
  std::vector<Tensor> outputs;
  int fused = 0;  // nodes of the op
};

// Ends the test program on an error.
FusionRun RunWithFusion(const ir::Graph& graph, const Device& device, const GraphFeeds& feeds,
                        bool fuse) {
  std::unique_ptr<ir::Graph> own = graph.Clone();
  if (!fuse) passes::ForbidFusion(*own);
  runtime::VariableStore store;
  runtime::CompileOptions options;
  options.device = device;
  auto executable =
      runtime::Compile(std::move(own), options, store, std::make_shared<runtime::Arena>());
  HT_CHECK(executable.ok(), "a random graph does not compile");
  FusionRun ran;
  for (const auto& node : (*executable)->graph().nodes()) ran.fused += node->op().name == "fused";
  std::vector<const void*> inputs;
  for (const ir::Node* input : graph.inputs()) {
    inputs.push_back(feeds.inputs.at(input->attrs().GetString("name")).raw());
  }
  std::vector<void*> outputs;
  for (const ir::ValueType& type : (*executable)->output_types()) {
    ran.outputs.push_back(Tensor::Full(type.dtype, type.shape, 0));
    outputs.push_back(ran.outputs.back().raw());
  }
  HT_CHECK((*executable)->Run(inputs.data(), outputs.data(), 0).ok(), "a run failed");
  return ran;
}

// The first output that differs; empty: none does. Adds to `fused` the nodes of the op.
std::string FirstDifference(const ir::Graph& graph, const Device& device, uint64_t seed,
                            int& fused) {
  const GraphFeeds feeds = RandomFeeds(graph, {}, seed);
  const FusionRun want = RunWithFusion(graph, device, feeds, /*fuse=*/false);
  const FusionRun got = RunWithFusion(graph, device, feeds, /*fuse=*/true);
  if (want.fused > 0) return "fused although forbidden\n" + graph.ToString();
  fused += got.fused;
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    if (BitEqual(got.outputs[i], want.outputs[i])) continue;
    return Concat("seed ", seed, ", output ", i, "\n", graph.ToString());
  }
  return "";
}

}  // namespace

std::string CompareFusion(const Device& device, uint64_t first, int count) {
  int fused = 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const std::string difference =
        FirstDifference(*RandomElementwise(seed).Make(), device, seed, fused);
    if (!difference.empty()) return difference;
  }
  return fused > count ? "" : Concat("the graphs give the pass little to do: ", fused, " nodes");
}

std::string CompareFusedBatchNorms(const Device& device) {
  constexpr char kImages[] =
      "graph @g(%x: f32[2,3,24,24], %w: f32[8,3,3,3], %v: f32[8,3,1,1], %g: f32[8], %b: f32[8], "
      "%m: f32[8], %s: f32[8]) {\n"
      "  %c = conv2d(%x, %w) {padding=[1, 1]}\n"
      "  %d = conv2d(%x, %v)\n"
      "  %p, %p#1, %p#2, %p#3, %p#4 = batch_norm(%c, %g, %b, %m, %s)\n"
      "  %q, %q#1, %q#2, %q#3, %q#4 = batch_norm(%d, %g, %b, %m, %s)\n"
      "  %a = add(%p, %q)\n"
      "  %r = relu(%a)\n"
      "  return %r, %p#1, %p#2, %p#3, %p#4, %q#3\n"
      "}\n";
  // Blocks of channels on a CPU that has them: of several tiles, and of less than one.
  const auto blocks = [](int height) {
    return Concat("graph @g(%x: f32[2,3,", height, ",24], %w: f32[32,3,3,3], %v: f32[48,32,3,3], ",
                  "%g: f32[32], %b: f32[32], %m: f32[32], %s: f32[32], %k: f32[1,32,1,1]) {\n"
                  "  %c = conv2d(%x, %w) {padding=[1, 1]}\n"
                  "  %p, %p#1, %p#2, %p#3, %p#4 = batch_norm(%c, %g, %b, %m, %s)\n"
                  "  %r = relu(%p)\n"
                  "  %t = mul(%r, %k)\n"
                  "  %d = conv2d(%t, %v) {padding=[1, 1]}\n"
                  "  return %d, %p#1, %p#2, %p#3, %p#4\n"
                  "}\n");
  };
  constexpr char kFeatures[] =
      "graph @g(%x: f32[70,33], %g: f32[33], %b: f32[33], %m: f32[33], %s: f32[33]) {\n"
      "  %l = cast(%x) {to=bf16}\n"
      "  %p, %p#1, %p#2, %p#3, %p#4 = batch_norm(%l, %g, %b, %m, %s)\n"
      "  %r = gelu(%p)\n"
      "  return %r, %p#1, %p#2, %p#3, %p#4\n"
      "}\n";
  for (const std::string& text :
       {std::string(kImages), blocks(24), blocks(2), std::string(kFeatures)}) {
    const auto graph = ir::Parse(text);
    HT_CHECK(graph.ok(), "a graph does not parse");
    int fused = 0;
    const std::string difference = FirstDifference(**graph, device, /*seed=*/1, fused);
    if (!difference.empty()) return difference;
    if (fused != 1) return Concat(fused, " fused nodes; expected 1\n", text);
  }
  return "";
}

}  // namespace halftone::testing
