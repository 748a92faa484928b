// What a record must be to enter the registry, and the registry as CMake fills it.
#include <gtest/gtest.h>

#include "halftone/graph/ir/op.h"
#include "halftone/graph/ir/op_catalogue.h"

namespace halftone::ir {
namespace {

OpRecord Good() {
  OpRecord op;
  op.name = "good_op2";
  op.inputs = {{"x", kFloats, ""}, {"b", kFloats, "", /*optional=*/true}};
  op.outputs = {{"y", ""}};
  op.attrs = {{"k", AttrType::kInt, AttrValue(int64_t{1}), ""}};
  op.infer = [](const InferContext& c) -> absl::StatusOr<std::vector<ValueType>> {
    return std::vector<ValueType>{c.inputs[0]};
  };
  op.amp.reason = "in a test";
  return op;
}

struct Bad {
  void (*change)(OpRecord&);
  const char* message;
};

const Bad kBad[] = {
    {[](OpRecord& op) { op.name = ""; }, "op \"\": expected a snake_case name"},
    {[](OpRecord& op) { op.name = "MatMul"; }, "op \"MatMul\": expected a snake_case name"},
    {[](OpRecord& op) { op.name = "2d"; }, "op \"2d\": expected a snake_case name"},
    {[](OpRecord& op) { op.name = "return"; }, "op \"return\": expected a snake_case name"},
    {[](OpRecord& op) { op.name = std::string(65, 'a'); },
     "op \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": "
     "expected a snake_case name"},
    {[](OpRecord& op) { op.infer = nullptr; }, "op good_op2: has no shape inference"},
    {[](OpRecord& op) { op.amp.reason = ""; }, "op good_op2: its AMP trait gives no reason"},
    {[](OpRecord& op) { op.inputs[1].name = "x"; },
     "op good_op2: input 1 is called \"x\"; expected a unique snake_case name"},
    {[](OpRecord& op) { op.inputs[0].variadic = true; },
     "op good_op2: variadic input x is not the last"},
    {[](OpRecord& op) {
       op.inputs.push_back({"c", kFloats, ""});
     },
     "op good_op2: input c follows an optional one; only trailing inputs may be optional"},
    {[](OpRecord& op) { op.attrs[0].name = "K"; },
     "op good_op2: attribute \"K\"; expected a unique snake_case name"},
    {[](OpRecord& op) { op.attrs.push_back(op.attrs[0]); },
     "op good_op2: attribute \"k\"; expected a unique snake_case name"},
    {[](OpRecord& op) { op.attrs[0].default_value = AttrValue(0.5); },
     "op good_op2: default of attribute k is float; expected int"},
    {[](OpRecord& op) { op.amp.keep_f32_inputs = {2}; },
     "op good_op2: amp.keep_f32_inputs names port 2; expected 0..1"},
    {[](OpRecord& op) { op.amp.keep_f32_outputs = {1}; },
     "op good_op2: amp.keep_f32_outputs names port 1; expected 0..0"},
    {[](OpRecord& op) { op.amp.widens_inputs = {2}; },
     "op good_op2: amp.widens_inputs names port 2; expected 0..1"},
    {[](OpRecord& op) {
       op.amp.same_dtype_inputs = {0, -1};
     },
     "op good_op2: amp.same_dtype_inputs names port -1; expected 0..1"},
    {[](OpRecord& op) { op.layout.channels_last_inputs = {5}; },
     "op good_op2: layout.channels_last_inputs names port 5; expected 0..1"},
    {[](OpRecord& op) { op.layout.channels_last_outputs = {5}; },
     "op good_op2: layout.channels_last_outputs names port 5; expected 0..0"},
    {[](OpRecord& op) {
       op.in_place = {{2, 0}};
     },
     "op good_op2: in_place input names port 2; expected 0..1"},
    {[](OpRecord& op) {
       op.in_place = {{0, 1}};
     },
     "op good_op2: in_place output names port 1; expected 0..0"},
};

TEST(OpRegistry, RefusesMalformedRecords) {
  for (const Bad& bad : kBad) {
    OpRegistry registry;
    OpRecord op = Good();
    bad.change(op);
    const absl::Status status = registry.Register(std::move(op));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.message;
    EXPECT_EQ(Message(status), bad.message);
    EXPECT_TRUE(registry.All().empty());
  }
}

TEST(OpRegistry, TakesANameOnce) {
  OpRegistry registry;
  ASSERT_TRUE(registry.Register(Good()).ok());
  const absl::Status status = registry.Register(Good());
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(status), "op good_op2 is registered already");
}

TEST(OpRegistry, FindsByNameAndListsInOrder) {
  OpRegistry registry;
  for (const char* name : {"b", "c", "a"}) {
    OpRecord op = Good();
    op.name = name;
    ASSERT_TRUE(registry.Register(std::move(op)).ok());
  }
  EXPECT_EQ(registry.Find("b")->name, "b");
  EXPECT_EQ(registry.Find("d"), nullptr);
  ASSERT_EQ(registry.All().size(), 3u);
  EXPECT_EQ(registry.All()[0]->name, "a");
}

TEST(OpRegistry, VariadicTraitsMayNameLaterPorts) {
  OpRegistry registry;
  OpRecord op = Good();
  op.inputs = {{"x", kFloats, "", false, /*variadic=*/true}};
  op.amp.keep_f32_inputs = {3};
  EXPECT_TRUE(registry.Register(std::move(op)).ok());
}

TEST(OpRegistry, TheGeneratedListFillsTheGlobalOne) {
  for (const char* op : {"input", "variable", "constant", "commit", "matmul", "add"}) {
    EXPECT_NE(OpRegistry::Global().Find(op), nullptr) << op;
  }
}

TEST(OpRegistry, EveryBuiltinRecordIsDocumented) {
  for (const OpRecord* op : OpRegistry::Global().All()) {
    if (op->name.rfind("test_", 0) == 0) continue;
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_FALSE(op->source.empty()) << op->name;
    for (const std::string& name : op->gradient_ops) {
      EXPECT_NE(OpRegistry::Global().Find(name), nullptr) << op->name << " emits " << name;
    }
  }
}

TEST(OpCatalogue, SaysWhatTheRecordSays) {
  OpRecord op = Good();
  op.doc = "y = x + b.";
  op.source = "A book, eq. 1";
  op.inputs[0].doc = "[N]";
  op.outputs[0].doc = "[N]";
  op.attrs[0].doc = "a number";
  op.amp.keep_f32_inputs = {1};
  op.amp.widens_inputs = {0};
  op.amp.accumulates_in_f32 = true;
  op.index_extent = [](const Node&) { return int64_t{1}; };
  EXPECT_EQ(op.ToCatalogue(), R"(### good_op2

y = x + b.

| input | dtypes | |
| --- | --- | --- |
| `x` | f64 f32 f16 bf16 | [N] |
| `b` (optional) | f64 f32 f16 bf16 |  |

| output | |
| --- | --- |
| `y` | [N] |

| attribute | type | default | |
| --- | --- | --- | --- |
| `k` | int | `1` | a number |

* AMP: f16 deny, bf16 deny: in a test. Inputs in f32: 1. Widened as read: 0. Accumulates in f32.
* Gradient: none
* May fault at run time: an index out of range.
* Source: A book, eq. 1
)");
}

TEST(OpCatalogue, ListsEveryOpAndThenDescribesIt) {
  OpRegistry registry;
  for (const char* name : {"b", "a"}) {
    OpRecord op = Good();
    op.name = name;
    op.doc = "y = x + b.";
    op.amp.bf16 = AmpClass::kClear;
    if (op.name == "a") op.gradient = [](GradContext&) {};
    ASSERT_TRUE(registry.Register(std::move(op)).ok());
  }
  const std::string text = Catalogue(registry);
  const size_t table = text.find(
      "| [a](#a) | deny | clear | yes |\n"
      "| [b](#b) | deny | clear | none |\n"
      "\n### a\n\ny = x + b.\n");
  EXPECT_NE(table, std::string::npos) << text;
  EXPECT_GT(text.find("\n### b\n"), table) << text;
  EXPECT_NE(text.find("\n### b\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace halftone::ir
