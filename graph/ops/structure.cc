// Where values come from and where state goes: input, variable, constant, commit.
#include "halftone/core/check.h"
#include "halftone/graph/ir/graph.h"

// The inner name keeps the helpers apart from those of other files in a batched compile.
namespace halftone::ops {
namespace structure_ops {
namespace {

using ir::AttrType;
using ir::AttrValue;
using ir::InferContext;
using ir::OpRecord;
using ir::ValueType;
using Types = absl::StatusOr<std::vector<ValueType>>;

ir::Cost NoCost(const ir::Node&) { return {}; }

ir::AmpTrait Source(std::string reason) {
  ir::AmpTrait amp;
  amp.f16 = amp.bf16 = ir::AmpClass::kClear;
  amp.reason = std::move(reason);
  return amp;
}

absl::Status CheckNonEmpty(const InferContext& c, const char* attr) {
  const std::string& name = c.attrs.GetString(attr);
  if (!name.empty()) return absl::OkStatus();
  return InvalidArgument(c.op, ": attribute ", attr, " is empty; expected a name");
}

Types InferInput(const InferContext& c) {
  HT_RETURN_IF_ERROR(CheckNonEmpty(c, "name"));
  auto shape = Shape::Make(c.attrs.GetInts("shape"));
  if (!shape.ok()) return Annotate(shape.status(), c.op + ": ");
  return std::vector<ValueType>{{c.attrs.GetDType("dtype"), *std::move(shape)}};
}

Types InferVariable(const InferContext& c) {
  HT_RETURN_IF_ERROR(CheckNonEmpty(c, "name"));
  auto variable = ir::VariableFromAttributes(c.attrs);
  if (!variable.ok()) return Annotate(variable.status(), c.op + ": ");
  return std::vector<ValueType>{variable->type};
}

Types InferConstant(const InferContext& c) {
  const Tensor& value = c.attrs.Get<Tensor>("value");
  return std::vector<ValueType>{{value.dtype(), value.shape()}};
}

Types InferCommit(const InferContext& c) {
  HT_RETURN_IF_ERROR(CheckNonEmpty(c, "variable"));
  return std::vector<ValueType>{};
}

OpRecord Input() {
  OpRecord op;
  op.name = "input";
  op.doc = "An argument of the graph. Written in the graph's header, in order.";
  op.source = "Halftone";
  op.outputs = {{"y", "the value given to the run"}};
  op.attrs = {{"name", AttrType::kString, std::nullopt, "what the caller calls it; unique"},
              {"dtype", AttrType::kDType, std::nullopt, "its dtype"},
              {"shape", AttrType::kInts, std::nullopt, "its shape"}};
  op.infer = InferInput;
  op.amp = Source("an input keeps the dtype it is given in; its readers cast");
  op.cost = NoCost;
  op.has_side_effect = true;  // part of the signature even if nothing reads it
  return op;
}

OpRecord Variable() {
  OpRecord op;
  op.name = "variable";
  op.doc = "The value of a variable at the start of the step. One node per variable.";
  op.source = "Halftone";
  op.outputs = {{"y", "the value before any commit of this step"}};
  op.attrs = {
      {"name", AttrType::kString, std::nullopt, "name in this graph; unique"},
      {"dtype", AttrType::kDType, std::nullopt, "its dtype"},
      {"shape", AttrType::kInts, std::nullopt, "its shape"},
      {"kind", AttrType::kString, AttrValue(std::string("parameter")),
       "parameter, buffer, optimizer, scaler or counter"},
      {"trainable", AttrType::kBool, AttrValue(true), "whether optimizers may change a parameter"},
      {"init", AttrType::kString, AttrValue(std::string("constant(0)")),
       "first value: constant(a), uniform(lower,upper) or normal(mean,deviation)"}};
  op.infer = InferVariable;
  op.amp = Source("a variable is stored in its own dtype; its readers cast");
  op.cost = NoCost;
  return op;
}

OpRecord Constant() {
  OpRecord op;
  op.name = "constant";
  op.doc = "A tensor known at compile time.";
  op.source = "Halftone";
  op.outputs = {{"y", "the tensor"}};
  op.attrs = {{"value", AttrType::kTensor, std::nullopt, "the tensor"}};
  op.infer = InferConstant;
  op.amp = Source("a constant keeps its dtype; its readers cast");
  op.cost = NoCost;
  return op;
}

OpRecord Commit() {
  OpRecord op;
  op.name = "commit";
  op.doc = "The value of a variable after the step. At most one per variable.";
  op.source = "Halftone";
  op.inputs = {{"x", ir::kStorable, "the new value, of the variable's dtype and shape"}};
  op.attrs = {{"variable", AttrType::kString, std::nullopt, "name of the variable"}};
  op.infer = InferCommit;
  op.amp.reason = "state keeps the variable's dtype";
  op.amp.keep_f32_inputs = {0};
  op.cost = [](const ir::Node& node) {
    return ir::Cost{0, 2.0 * static_cast<double>(node.input_type(0).num_bytes())};
  };
  op.has_side_effect = true;
  return op;
}

}  // namespace
}  // namespace structure_ops

void Register_structure(ir::OpRegistry& registry) {
  using namespace structure_ops;  // NOLINT(google-build-using-namespace)
  for (ir::OpRecord op : {Input(), Variable(), Constant(), Commit()}) {
    HT_CHECK(registry.Register(std::move(op)).ok(), "structure ops do not register");
  }
}

}  // namespace halftone::ops
