// A graph, exported and imported, computes what it did.
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/onnx/onnx_graphs.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::onnx {
namespace {

using ::testing::HasSubstr;

// Bodies of graphs over %x: f32[2,3], %w: f32[3,3], %i: i64[2] of 0..1, %m: f32[1,2,4,4].
constexpr const char* kBodies[] = {
    "%y = matmul(%w, %w) {transpose_b=true}",
    "%y = linear(%x, %w)",
    "%r = reshape(%x) {shape=[1, 2, 3]}\n  %y = linear(%r, %w)",
    "%a = mul(%x, %x)\n  %b = sub(%a, %x)\n  %y = maximum(%b, %x)",
    "%a = gelu(%x)\n  %b = silu(%a)\n  %c = mish(%b)\n  %d = selu(%c)\n  %y = elu(%d) {alpha=0.5}",
    "%a = hardtanh(%x) {min_val=-0.5}\n  %b = hardswish(%x)\n  %c = hardsigmoid(%x)\n"
    "  %d = add(%a, %b)\n  %y = add(%c, %d)",
    "%a = gelu(%x) {approximate=\"tanh\"}\n  %b = logsigmoid(%x)\n  %c = relu6(%x)\n"
    "  %d = add(%a, %b)\n  %y = add(%c, %d)",
    "%a = square(%x)\n  %b = log1p(%a)\n  %c = expm1(%b)\n  %y = rsqrt(%c)",
    "%a = softmax(%x)\n  %y = log_softmax(%a) {axis=0}",
    "%a = greater(%x, %x)\n  %b = not_equal(%x, %x)\n  %c = isfinite(%x)\n"
    "  %d = logical_or(%a, %b)\n  %e = logical_and(%c, %d)\n  %y = where(%e, %x, %x)",
    "%a = sum(%x) {axes=[1]}\n  %b = mean(%x) {axes=[-1]}\n  %c = max(%x) {axes=[1]}\n"
    "  %d = prod(%x) {axis=1}\n  %e = add(%a, %b)\n  %f = add(%c, %d)\n  %y = add(%e, %f)",
    "%y = argmax(%x) {axis=1, keepdim=true}",
    "%y = cumsum(%x) {axis=1, reverse=true}",
    "%y, %k = sort(%x) {axis=1, descending=true, k=2}",
    "%a = transpose(%x) {perm=[1, 0]}\n  %b = slice(%a) {starts=[0, 0], limits=[3, 2], strides=[2, 1]}\n"
    "  %c = flip(%b) {axes=[1]}\n  %d = concat(%c, %b) {axis=0}\n"
    "  %y = pad(%d) {before=[1, 0], after=[0, 1], value=7}",
    "%y = pad(%w) {before=[1, 0], after=[0, 1], mode=\"reflect\"}",
    "%y = embedding(%w, %i)",
    "%a = gather(%w, %i) {axis=1}\n  %b = reshape(%i) {shape=[1, 2]}\n"
    "  %c = take_along_dim(%a, %b) {axis=0}\n  %y = broadcast_to(%c) {shape=[4, 1, 2]}",
    "%y = cast(%x) {to=i32}",
    "%k = variable \"k\" : f32[4,1,3,3]\n"
    "  %y = conv2d(%m, %k) {padding=[1, 1], stride=[2, 1], groups=2}",
    "%k = variable \"k\" : f32[2,3,3,3]\n"
    "  %y = conv2d_grad_input(%m, %k) {stride=[2, 2], padding=[1, 1], shape=[1, 3, 8, 8]}",
    "%y, %k = max_pool2d(%m) {kernel=[3, 3], stride=[2, 2], padding=[1, 1]}",
    "%y = avg_pool2d(%m) {kernel=[2, 2], stride=[1, 1], padding=[1, 1], count_include_pad=false}",
    "%y = upsample2d(%m) {size=[8, 8]}",
    "%y = upsample2d(%m) {size=[7, 9], mode=\"bilinear\"}",
    "%g = variable \"g\" : f32[3]\n  %b = variable \"b\" : f32[3]\n"
    "  %y = layer_norm(%x, %g, %b)",
    "%g = variable \"g\" : f32[2]\n  %v = square(%g)\n"
    "  %y = batch_norm_inference(%m, %g, %g, %g, %v)",
    "%q = reshape(%m) {shape=[1, 4, 2, 4]}\n  %k = reshape(%m) {shape=[1, 2, 4, 4]}\n"
    "  %y = scaled_dot_product_attention(%q, %k, %k) {scale=0.5, is_causal=true}",
    "%z = constant {value=splat<f32[4,4]>(-inf)}\n"
    "  %y = scaled_dot_product_attention(%m, %m, %m, %z) {scale=0.5}",
    "%r = reshape(%m) {shape=[2, 2, 8]}\n  %v = variable \"v\" : f32[8,8]\n"
    "  %b = variable \"b\" : f32[8]\n  %u = variable \"u\" : f32[8,2]\n"
    "  %s = variable \"s\" : f32[2,2]\n  %t = linear(%r, %v, %b)\n"
    "  %h, %n, %c, %g = lstm(%t, %u, %s, %s)\n  %y = add(%h, %n)",
    "%r = reshape(%m) {shape=[2, 2, 8]}\n  %u = variable \"u\" : f32[8,2]\n"
    "  %s = variable \"s\" : f32[2,2]\n  %z = variable \"z\" : f32[2,2]\n"
    "  %h, %n, %c, %g = lstm(%r, %u, %s, %z) {reverse=true}\n  %y = sub(%h, %n)",
    "%r = reshape(%m) {shape=[4, 2, 4]}\n  %v = variable \"v\" : f32[6,4]\n"
    "  %b = variable \"b\" : f32[6]\n  %u = variable \"u\" : f32[6,2]\n"
    "  %s = variable \"s\" : f32[2,2]\n  %t = linear(%r, %v, %b)\n"
    "  %y, %g, %k = gru(%t, %u, %s, %b) {reverse=true}",
    "%r = reshape(%m) {shape=[1, 2, 16]}\n  %q = slice(%r) {starts=[0, 0, 0], limits=[1, 2, 12], strides=[1, 1, 1]}\n"
    "  %u = variable \"u\" : f32[12,4]\n  %s = variable \"s\" : f32[2,4]\n"
    "  %y, %g, %k = gru(%q, %u, %s)",
    "%y = cross_entropy(%x, %i) {ignore_index=1, reduction=\"sum\"}",
    "%y = mse_loss(%x, %x)",
};

TEST(OnnxRoundTrip, GraphsComputeWhatTheyDid) {
  for (const char* body : kBodies) {
    const std::string text =
        std::string("graph @g(%x: f32[2,3], %i: i64[2], %m: f32[1,2,4,4]) {\n") +
        "  %w = variable \"w\" : f32[3,3]\n  " + body + "\n  return %y\n}\n";
    SCOPED_TRACE(text);
    const auto graph = ir::Parse(text);
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    testing::GraphFeeds feeds = testing::RandomFeeds(**graph, {.lo = -1.5, .hi = 1.5}, 1);
    const std::vector<Tensor> before = Outputs(**graph, feeds);
    const auto bytes = ToOnnxBytes(**graph, feeds.variables);
    ASSERT_TRUE(bytes.ok()) << Message(bytes.status());
    const auto imported = FromOnnxBytes(*bytes);
    ASSERT_TRUE(imported.ok()) << Message(imported.status());
    feeds.variables = imported->variables;
    const std::vector<Tensor> after = Outputs(*imported->graph, feeds);
    ASSERT_EQ(before.size(), 1u);
    ASSERT_EQ(after.size(), 1u);
    EXPECT_EQ(after[0].TypeString(), before[0].TypeString());
    EXPECT_THAT(after[0].ToVector(), ::testing::Pointwise(::testing::NanSensitiveDoubleNear(1e-5),
                                                          before[0].ToVector()));
  }
}

// A network in training mode, exported: evaluation, with the names of its parameters.
TEST(OnnxRoundTrip, ExportIsOfEvaluation) {
  nn::Linear fc(3, 2);
  nn::FnGraph graph([&fc](const nn::Values& in) -> nn::Values {
    nn::Value y = fc(nn::dropout(in[0], 0.9));
    nn::sum(y).backward();
    return {y};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  const testing::TempDir dir;
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const absl::Status written = graph.export_onnx(dir.Path("m.onnx"), {x});
  ASSERT_TRUE(written.ok()) << Message(written);
  EXPECT_TRUE(graph.is_training());
  const auto imported = ReadOnnx(dir.Path("m.onnx"));
  ASSERT_TRUE(imported.ok()) << Message(imported.status());
  EXPECT_TRUE(imported->variables.contains("fc.weight"));
  graph.eval();
  const std::vector<Tensor> expected = nn::Call(graph, {x});
  const std::string input = imported->graph->inputs()[0]->attrs().GetString("name");
  const std::vector<Tensor> got = Outputs(*imported->graph, {{{input, x}}, imported->variables});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_THAT(got[0].ToVector(),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), expected[0].ToVector()));
}

TEST(OnnxExportErrors, NameTheNode) {
  const auto message = [](const std::string& body) {
    const auto graph = ir::Parse("graph @g(%x: f32[2,3]) {\n" + body + "}\n");
    return Message(graph.ok() ? ToOnnxBytes(**graph, {}).status() : graph.status());
  };
  EXPECT_EQ(message("  %y = dropout(%x) {p=0.5, seed=1}\n  return %y\n"),
            "onnx: graph @g: node dropout(%y): dropout draws random numbers; expected a graph of "
            "evaluation");
  EXPECT_EQ(message("  %y = bernoulli(%x) {seed=1}\n  return %y\n"),
            "onnx: graph @g: node bernoulli(%y): ONNX does not say which numbers are drawn, so "
            "values would differ");
  EXPECT_EQ(message("  %w = variable \"fc.w\" : f32[3]\n  %y = add(%x, %w)\n  return %y\n"),
            "onnx: graph @g: node variable(%w): variable \"fc.w\" has no value; expected one");
  EXPECT_EQ(Message(ToOnnxBytes(ir::Graph("g"), {}).status()),
            "onnx: graph @g: the graph has no output; expected one");
}

}  // namespace
}  // namespace halftone::onnx
