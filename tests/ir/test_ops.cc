#include "halftone/tests/ir/test_ops.h"

#include <gtest/gtest.h>

namespace halftone::ir {
namespace {

using Types = std::vector<ValueType>;

OpRecord Record(std::string name) {
  OpRecord op;
  op.name = std::move(name);
  op.doc = "Only in tests.";
  op.amp.reason = "only in tests";
  op.layout.kind = LayoutClass::kFollows;
  return op;
}

OpRecord Pass() {
  OpRecord op = Record("test_pass");
  op.inputs = {{"x", kAnyDType, ""}};
  op.outputs = {{"y", ""}};
  op.infer = [](const InferContext& c) -> absl::StatusOr<Types> { return Types{c.inputs[0]}; };
  return op;
}

OpRecord Two() {
  OpRecord op = Pass();
  op.name = "test_two";
  op.outputs = {{"y", ""}, {"z", ""}};
  op.infer = [](const InferContext& c) -> absl::StatusOr<Types> {
    return Types{c.inputs[0], c.inputs[0]};
  };
  return op;
}

OpRecord Attrs() {
  OpRecord op = Record("test_attrs");
  op.outputs = {{"y", ""}};
  op.attrs = {{"b", AttrType::kBool, AttrValue(false), ""},
              {"i", AttrType::kInt, AttrValue(int64_t{7}), ""},
              {"f", AttrType::kFloat, AttrValue(0.5), ""},
              {"s", AttrType::kString, AttrValue(std::string("s")), ""},
              {"d", AttrType::kDType, AttrValue(DType::kF32), ""},
              {"is", AttrType::kInts, AttrValue(std::vector<int64_t>{1}), ""},
              {"fs", AttrType::kFloats, AttrValue(std::vector<double>{}), ""},
              {"ss", AttrType::kStrings, AttrValue(std::vector<std::string>{}), ""},
              {"t", AttrType::kTensor, AttrValue(Tensor::Scalar(DType::kF32, 1)), ""}};
  op.infer = [](const InferContext&) -> absl::StatusOr<Types> {
    return Types{{DType::kF32, Shape{}}};
  };
  return op;
}

OpRecord Mix() {
  OpRecord op = Record("test_mix");
  op.inputs = {{"a", {DType::kF32, DType::kF64}, ""},
               {"b", {DType::kF32, DType::kF64}, ""},
               {"c", {DType::kI64}, "", /*optional=*/true}};
  op.outputs = {{"y", ""}};
  op.attrs = {{"k", AttrType::kInt, std::nullopt, ""}};
  op.infer = [](const InferContext& c) -> absl::StatusOr<Types> {
    if (c.inputs[0].shape != c.inputs[1].shape) {
      return InvalidArgument(c.op, ": b is ", c.inputs[1], "; expected the shape of a, ",
                             c.inputs[0].shape);
    }
    return Types{c.inputs[0]};
  };
  return op;
}

OpRecord Many() {
  OpRecord op = Record("test_many");
  op.inputs = {{"x", kAnyDType, "", false, /*variadic=*/true}};
  op.outputs = {{"y", ""}};
  op.infer = [](const InferContext& c) -> absl::StatusOr<Types> { return c.inputs; };
  return op;
}

OpRecord Root() {
  OpRecord op = Record("test_root");
  op.inputs = {{"x", kAnyDType, "", false, /*variadic=*/true}};
  op.attrs = {{"tag", AttrType::kString, AttrValue(std::string()), ""}};
  op.infer = [](const InferContext&) -> absl::StatusOr<Types> { return Types{}; };
  op.is_marker = op.has_side_effect = true;
  return op;
}

}  // namespace

void RegisterTestOps() {
  static const bool registered = [] {
    for (const OpRecord& op : {Pass(), Two(), Attrs(), Mix(), Many(), Root()}) {
      const absl::Status status = RegisterOp(op);
      EXPECT_TRUE(status.ok()) << status;
    }
    return true;
  }();
  (void)registered;
}

std::unique_ptr<Graph> ParseOrDie(const std::string& text) {
  RegisterTestOps();
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *std::move(graph) : std::make_unique<Graph>();
}

}  // namespace halftone::ir
