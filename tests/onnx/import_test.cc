// Models by hand, with results that a reader can check.
#include "halftone/tests/onnx/onnx_graphs.h"

namespace halftone::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kX = Floats({2, 3}, {1, -2, 3, -4, 5, -6});

std::vector<double> ValuesOf(const Model& model) {
  const std::vector<Tensor> out = Outputs(model, {{"x", kX}});
  return out.empty() ? std::vector<double>() : out[0].ToVector();
}

struct OpRow {
  const char* name;
  Node node;
  std::vector<NamedTensor> initializers;
  std::vector<double> y;  // row-major
  int64_t opset = kWrittenOpset;
};

TEST(OnnxImport, OperatorsGiveTheirValues) {
  const std::vector<OpRow> rows = {
      {"one operand", {"Relu", "", "", {"x"}, {"y"}, {}}, {}, {1, 0, 3, 0, 5, 0}},
      {"a float attribute",
       {"LeakyRelu", "", "", {"x"}, {"y"}, {{"alpha", 0.5}}},
       {},
       {1, -1, 3, -2, 5, -3}},
      {"a default that is not ours",
       {"HardSigmoid", "", "", {"x"}, {"y"}, {}},
       {},
       {0.7, 0.1, 1, 0, 1, 0}},
      {"broadcasting",
       {"Add", "", "", {"x", "b"}, {"y"}, {}},
       {{"b", Floats({3}, {10, 20, 30})}},
       {11, 18, 33, 6, 25, 24}},
      {"a matrix, transposed, with factors",
       {"Gemm",
        "",
        "",
        {"x", "b", "c"},
        {"y"},
        {{"alpha", 2.0}, {"beta", 3.0}, {"transB", int64_t{1}}}},
       {{"b", Floats({1, 3}, {1, 1, 1})}, {"c", Floats({1}, {1})}},
       {7, -7}},
      {"axes as an attribute",
       {"ReduceMax", "", "", {"x"}, {"y"}, {{"axes", std::vector<int64_t>{1}}}},
       {},
       {3, 5}},
      {"axes as an operand, from opset 18 on",
       {"ReduceMin", "", "", {"x", "a"}, {"y"}, {{"keepdims", int64_t{0}}}},
       {{"a", Longs({1}, {-1})}},
       {-2, -6},
       18},
      {"softmax of old, over all that follow the axis",
       {"Softmax", "", "", {"x"}, {"y"}, {{"axis", int64_t{0}}}},
       {},
       {0.0158618, 0.000789711, 0.117204, 0.000106876, 0.866024, 1.44641e-05},
       11},
      {"a slice from the end",
       {"Slice", "", "", {"x", "s", "e", "a", "t"}, {"y"}, {}},
       {{"s", Longs({1}, {-1})},
        {"e", Longs({1}, {-4})},
        {"a", Longs({1}, {1})},
        {"t", Longs({1}, {-2})}},
       {3, 1, -6, -4}},
      {"indices from the end",
       {"Gather", "", "", {"x", "i"}, {"y"}, {{"axis", int64_t{1}}}},
       {{"i", Longs({2}, {-1, 0})}},
       {3, 1, -6, -4}},
      {"a shape with -1 and 0",
       {"Reshape", "", "", {"x", "s"}, {"y"}, {}},
       {{"s", Longs({3}, {0, -1, 1})}},
       {1, -2, 3, -4, 5, -6}},
      {"a sum without the element itself",
       {"CumSum", "", "", {"x", "a"}, {"y"}, {{"exclusive", int64_t{1}}}},
       {{"a", Longs({}, {1})}},
       {0, 1, -1, 0, -4, 1}},
      {"places that are set",
       {"ScatterElements", "", "", {"x", "i", "u"}, {"y"}, {{"axis", int64_t{1}}}},
       {{"i", Longs({1, 1}, {2})}, {"u", Floats({1, 1}, {9})}},
       {1, -2, 9, -4, 5, -6}},
  };
  for (const OpRow& row : rows) {
    SCOPED_TRACE(row.name);
    Model model = ModelOf({row.node}, row.initializers);
    model.opset = row.opset;
    EXPECT_THAT(ValuesOf(model), ::testing::Pointwise(::testing::DoubleNear(1e-5), row.y));
  }
}

// y = reshape(x, concat(shape(x)[1:], -1)): PyTorch's way to say a shape.
TEST(OnnxImport, ShapesAreComputed) {
  const Model model = ModelOf({{"Shape", "", "", {"x"}, {"s"}, {}},
                               {"Gather", "", "", {"s", "one"}, {"last"}, {}},
                               {"Concat", "", "", {"last", "rest"}, {"t"}, {{"axis", int64_t{0}}}},
                               {"Reshape", "r", "", {"x", "t"}, {"y"}, {}}},
                              {{"one", Longs({1}, {1})}, {"rest", Longs({1}, {-1})}});
  const auto imported = Import(model);
  ASSERT_TRUE(imported.ok()) << Message(imported.status());
  EXPECT_EQ(imported->graph->ToString(),
            "graph @test(%x: f32[2,3]) {\n"
            "  %y = reshape(%x) {shape=[3, 2]} : f32[3,2]\n"
            "  return y=%y\n"
            "}\n");
}

// Floats with axes are parameters under their names; numbers and integers are constants.
TEST(OnnxImport, InitializersAreParametersOrConstants) {
  const Model model = ModelOf(
      {{"Mul", "", "", {"x", "w"}, {"h"}, {}}, {"Add", "/head/Add", "", {"h", "c"}, {"y"}, {}}},
      {{"w", Floats({3}, {1, 2, 3})}, {"c", Floats({}, {0.5})}});
  const auto imported = Import(model);
  ASSERT_TRUE(imported.ok()) << Message(imported.status());
  ASSERT_EQ(imported->variables.size(), 1u);
  EXPECT_TRUE(BitEqual(imported->variables.at("w"), Floats({3}, {1, 2, 3})));
  EXPECT_EQ(imported->graph->FindVariable("w")->kind, ir::VariableKind::kParameter);
  EXPECT_EQ(imported->graph->FindNode("y")->scope(), "head");
  EXPECT_THAT(ValuesOf(model), ElementsAre(1.5, -3.5, 9.5, -3.5, 10.5, -17.5));
}

TEST(OnnxImport, OpenExtentsComeFromTheCaller) {
  Model model = ModelOf({{"Relu", "", "", {"x"}, {"y"}, {}}});
  model.inputs[0].dims = {{std::nullopt, "batch"}, {3, ""}};
  const auto none = Import(model);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(none.status()),
            "onnx: input \"x\": its dimension 0, \"batch\", is open; expected an extent, as --dim "
            "batch=8 gives it, or a value for the input");
  const auto by_name = Import(model, {.dims = {{"batch", 5}}});
  ASSERT_TRUE(by_name.ok()) << Message(by_name.status());
  EXPECT_EQ(by_name->graph->inputs()[0]->output_type().shape, (Shape{5, 3}));
  const auto by_value = Import(model, {.inputs = {{"x", kX}}});
  ASSERT_TRUE(by_value.ok()) << Message(by_value.status());
  EXPECT_EQ(by_value->graph->inputs()[0]->output_type().shape, (Shape{2, 3}));
}

// A shape that is an input: the graph is for the value given.
TEST(OnnxImport, AnInputMayDecideAShape) {
  Model model = ModelOf({{"Expand", "", "", {"x", "s"}, {"y"}, {}}});
  model.inputs.push_back(Info("s", DType::kI64, {3}));
  const auto none = Import(model);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      Message(none.status()),
      "onnx: node \"y\" (Expand): input 1 must be known at import: it depends on input \"s\", "
      "whose value is not known before the graph runs");
  const auto given = Import(model, {.inputs = {{"s", Longs({3}, {4, 2, 3})}}});
  ASSERT_TRUE(given.ok()) << Message(given.status());
  EXPECT_THAT(given->notes, ElementsAre(HasSubstr("input \"s\" decides shapes")));
  EXPECT_EQ(given->graph->outputs()[0].value.shape(), (Shape{4, 2, 3}));
}

}  // namespace
}  // namespace halftone::onnx
