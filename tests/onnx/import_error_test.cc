// What import refuses, and how it says so; damaged files.
#include "halftone/tests/onnx/onnx_graphs.h"

namespace halftone::onnx {
namespace {

using ::testing::HasSubstr;

struct BadModel {
  const char* name;
  Model model;
  const char* message;
};

Model WithInput(const ValueInfo& input) {
  Model model = ModelOf({{"Relu", "", "", {"x"}, {"y"}, {}}});
  model.inputs = {input};
  return model;
}

TEST(OnnxImportErrors, NameNodeOperatorAndWhatIsWrong) {
  const std::vector<BadModel> rows = {
      {"operator", ModelOf({{"NonZero", "find", "", {"x"}, {"y"}, {}}}),
       "onnx: node \"find\" (NonZero): the operator is not covered"},
      {"domain", ModelOf({{"Gelu", "g", "com.microsoft", {"x"}, {"y"}, {}}}),
       "onnx: node \"g\" (Gelu): domain \"com.microsoft\" is not covered"},
      {"attribute", ModelOf({{"Relu", "", "", {"x"}, {"y"}, {{"slope", 0.5}}}}),
       "onnx: node \"y\" (Relu): attribute \"slope\" = 0.5 is not covered"},
      {"attribute of another type",
       ModelOf({{"Elu", "", "", {"x"}, {"y"}, {{"alpha", int64_t{1}}}}}),
       "onnx: node \"y\" (Elu): attribute alpha is 1; expected a float"},
      {"value of an attribute",
       ModelOf({{"Pad", "", "", {"x", "p"}, {"y"}, {{"mode", std::string("wrap")}}}},
               {{"p", Longs({4}, {0, 0, 0, 0})}}),
       "onnx: node \"y\" (Pad): mode wrap is not covered"},
      {"output",
       ModelOf(
           {{"MaxPool", "", "", {"w"}, {"v", "i"}, {{"kernel_shape", std::vector<int64_t>{1, 1}}}},
            {"Relu", "", "", {"v"}, {"y"}, {}}},
           {{"w", Floats({1, 1, 1, 1}, {1})}}),
       "onnx: node \"v\" (MaxPool): output 1, \"i\", is not covered"},
      {"missing operand", ModelOf({{"Add", "", "", {"x"}, {"y"}, {}}}),
       "onnx: node \"y\" (Add): add(%y): got 1 input; expected 2 (a, b)"},
      {"a value that nothing gives", ModelOf({{"Relu", "", "", {"q"}, {"y"}, {}}}),
       "onnx: node \"y\" (Relu): value \"q\" is no input, no initializer and no output of an "
       "earlier node"},
      {"a cycle", ModelOf({{"Relu", "", "", {"b"}, {"a"}, {}}, {"Relu", "", "", {"a"}, {"b"}, {}}}),
       "onnx: node \"a\" (Relu): value \"b\" is no input, no initializer and no output of an "
       "earlier node"},
      {"a value twice", ModelOf({{"Relu", "", "", {"x"}, {"x"}, {}}}),
       "onnx: node \"x\" (Relu): a second value called \"x\""},
      {"no output of that name", ModelOf({{"Relu", "", "", {"x"}, {"z"}, {}}}),
       "onnx: an output: value \"y\" is no input, no initializer and no output of an earlier node"},
      {"types that differ", ModelOf({{"Cast", "", "", {"x"}, {"y"}, {{"to", int64_t{7}}}}}),
       "onnx: output \"y\" is i64[2,3]; the model says f32"},
      {"a type that no tensor has", ModelOf({{"Cast", "", "", {"x"}, {"y"}, {{"to", int64_t{3}}}}}),
       "onnx: node \"y\" (Cast): attribute to: int8 is not covered"},
      {"a huge shape", WithInput(Info("x", DType::kF32, {int64_t{1} << 30, int64_t{1} << 30})),
       "onnx: input \"x\": shape [1073741824,1073741824] has more than 1099511627776 elements"},
      {"a negative extent", WithInput(Info("x", DType::kF32, {-1})),
       "onnx: input \"x\": shape [-1] has extent -1; expected 0 or more"},
      {"a shape that does not fit",
       ModelOf({{"Reshape", "", "", {"x", "s"}, {"y"}, {}}},
               {{"s", Longs({1}, {int64_t{1} << 39})}}),
       "onnx: node \"y\" (Reshape): reshape(%y): f32[2,3] has 6 elements"},
      {"a huge window",
       ModelOf({{"AveragePool",
                 "",
                 "",
                 {"w"},
                 {"y"},
                 {{"kernel_shape", std::vector<int64_t>{int64_t{1} << 40, 1}}}}},
               {{"w", Floats({1, 1, 1, 1}, {1})}}),
       "onnx: node \"y\" (AveragePool): kernel, strides, dilations and pads do not fit 2 spatial axes"},
      {"a long sequence",
       ModelOf({{"OneHot", "", "", {"i", "d", "v"}, {"y"}, {}}},
               {{"i", Longs({1}, {0})}, {"d", Longs({}, {1e9})}, {"v", Floats({2}, {0, 1})}}),
       "onnx: node \"y\" (OneHot): a depth of 1e+09 is not covered"},
      {"weights of a recurrence that do not fit its input",
       ModelOf({{"GRU", "g", "", {"z", "w", "r"}, {"y"}, {{"linear_before_reset", int64_t{1}}}}},
               {{"z", Floats({1, 1, 2}, {1, 2})},
                {"w", Floats({1, 3, 1}, {1, 2, 3})},
                {"r", Floats({1, 3, 1}, {1, 2, 3})}}),
       "onnx: node \"g\" (GRU): W is [1,3,1]; expected [1,3,2]"},
      {"another place of the reset gate",
       ModelOf({{"GRU", "g", "", {"z", "r", "r"}, {"y"}, {}}},
               {{"z", Floats({1, 1, 1}, {1})}, {"r", Floats({1, 3, 1}, {1, 2, 3})}}),
       "onnx: node \"g\" (GRU): linear_before_reset = 0 is not covered"},
      {"another activation",
       ModelOf({{"LSTM",
                 "l",
                 "",
                 {"z", "r", "r"},
                 {"y"},
                 {{"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Relu"}}}}},
               {{"z", Floats({1, 1, 1}, {1})}, {"r", Floats({1, 4, 1}, {1, 2, 3, 4})}}),
       "onnx: node \"l\" (LSTM): activations other than the usual ones are not covered"},
      {"sequences of different lengths",
       ModelOf({{"LSTM", "l", "", {"z", "r", "r", "", "t"}, {"y"}, {}}},
               {{"z", Floats({2, 1, 1}, {1, 2})},
                {"r", Floats({1, 4, 1}, {1, 2, 3, 4})},
                {"t", Longs({1}, {1})}}),
       "onnx: node \"l\" (LSTM): sequences of different lengths are not covered"},
  };
  for (const BadModel& row : rows) {
    SCOPED_TRACE(row.name);
    const auto imported = Import(row.model);
    ASSERT_FALSE(imported.ok());
    EXPECT_THAT(Message(imported.status()), HasSubstr(row.message));
  }
}

TEST(OnnxImportErrors, OpsetsOutOfRangeAreNamed) {
  Model model = ModelOf({{"Relu", "", "", {"x"}, {"y"}, {}}});
  model.opset = 6;
  EXPECT_EQ(Message(Import(model).status()), "onnx: opset 6 is not covered; expected 7..28");
}

TEST(OnnxImportErrors, EveryCutIsRefused) {
  const Model model =
      ModelOf({{"Add", "n", "", {"x", "w"}, {"y"}, {}}}, {{"w", Floats({3}, {1, 2, 3})}});
  const std::string bytes = *SerializeModel(model);
  ASSERT_TRUE(FromOnnxBytes(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = FromOnnxBytes(bytes.substr(0, size));
    EXPECT_FALSE(cut.ok()) << size << " of " << bytes.size();
  }
  EXPECT_EQ(FromOnnxBytes("").status().code(), absl::StatusCode::kDataLoss);
}

// Bytes of the wire format: a model whose initializer "w" says f32[2] and what follows.
std::string TensorModel(const std::string& fields) {
  const auto field = [](char key, const std::string& value) {
    return std::string(1, key) + static_cast<char>(value.size()) + value;
  };
  const std::string tensor = std::string("\x08\x02\x10\x01\x42\x01w") + fields;
  return std::string("\x08\x08") + field('\x3a', field('\x2a', tensor)) + field('\x42', "\x10\x11");
}

TEST(OnnxImportErrors, TensorsAreWhatTheySay) {
  EXPECT_EQ(
      Message(FromOnnxBytes(TensorModel("\x70\x01")).status()),
      "onnx: initializer \"w\": external data is not covered; expected a model in one file, as "
      "onnx.save(model, path) writes it");
  EXPECT_EQ(Message(FromOnnxBytes(TensorModel(std::string("\x4a\x03", 2) + "abc")).status()),
            "onnx: initializer \"w\": 3 bytes for f32[2]; expected 8");
  EXPECT_EQ(Message(FromOnnxBytes(TensorModel("")).status()),
            "onnx: initializer \"w\": 0 elements for f32[2]; expected 2");
}

}  // namespace
}  // namespace halftone::onnx
