#include "halftone/graph/ops/support/record.h"

#include <utility>

#include "halftone/core/check.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::ops {
namespace {

ir::AmpTrait TraitOf(ir::AmpClass f16, ir::AmpClass bf16, std::string reason, bool accumulates) {
  return {.f16 = f16, .bf16 = bf16, .reason = std::move(reason), .accumulates_in_f32 = accumulates};
}

double AllBytes(const ir::Node& node) {
  double bytes = 0;
  for (int i = 0; i < node.num_inputs(); ++i) bytes += node.input_type(i).num_bytes();
  for (int i = 0; i < node.num_outputs(); ++i) bytes += node.output_type(i).num_bytes();
  return bytes;
}

}  // namespace

void AddOp(ir::OpRegistry& registry, ir::OpRecord record) {
  const absl::Status status = registry.Register(std::move(record));
  const std::string message = Message(status);
  if (!status.ok()) internal::CheckFailed(__FILE__, __LINE__, "op record", message.c_str());
}

ir::AmpTrait Infer(std::string reason) {
  return TraitOf(ir::AmpClass::kInfer, ir::AmpClass::kInfer, std::move(reason), false);
}
ir::AmpTrait InferAcc(std::string reason) {
  return TraitOf(ir::AmpClass::kInfer, ir::AmpClass::kInfer, std::move(reason), true);
}
ir::AmpTrait Clear(std::string reason) {
  return TraitOf(ir::AmpClass::kClear, ir::AmpClass::kClear, std::move(reason), false);
}
ir::AmpTrait Deny(std::string reason) {
  return TraitOf(ir::AmpClass::kDeny, ir::AmpClass::kDeny, std::move(reason), false);
}
ir::AmpTrait DenyF16(std::string reason) {
  return TraitOf(ir::AmpClass::kDeny, ir::AmpClass::kInfer, std::move(reason), true);
}
ir::AmpTrait Untouched(std::string reason, std::vector<int> ports) {
  ir::AmpTrait trait = Clear(std::move(reason));
  trait.keep_f32_inputs = std::move(ports);
  return trait;
}

ir::OpRecord ElementwiseOp(std::string name, std::vector<std::string> inputs, ir::DTypeSet dtypes,
                           std::string doc, std::string source, ir::AmpTrait amp) {
  ir::OpRecord op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.source = std::move(source);
  for (size_t i = 0; i < inputs.size(); ++i) {
    op.inputs.push_back({std::move(inputs[i]), dtypes, ""});
    op.in_place.push_back({static_cast<int>(i), 0});
  }
  op.outputs = {{"y", ""}};
  op.amp = std::move(amp);
  op.fusion = ir::FusionClass::kElementwise;
  op.layout.kind = ir::LayoutClass::kFollows;
  op.layout.channel_blocks = true;
  op.cost = FlopsPerOutput(1);
  return op;
}

ir::AttrSpec Required(std::string name, ir::AttrType type, std::string doc) {
  return {std::move(name), type, std::nullopt, std::move(doc)};
}
ir::AttrSpec Optional(std::string name, ir::AttrValue default_value, std::string doc) {
  const ir::AttrType type = ir::TypeOf(default_value);
  return {std::move(name), type, std::move(default_value), std::move(doc)};
}
ir::AttrSpec Tf32Attr() {
  return Optional("tf32", false,
                  "set by apply-numerics: a kernel may round f32 operands to TF32, which keeps 10 "
                  "bits after the point");
}

ir::AttrSpec DeterministicAttr() {
  return Optional("deterministic", true,
                  "set by apply-numerics; false: a kernel may add in an order that differs from "
                  "run to run");
}

ir::AttrSpec WidenedAttr() {
  return Optional("widened", std::string(),
                  "set by widen-operands: why the device computes in f32 on copies of 16-bit "
                  "operands; \"\": it takes them as they are");
}

bool IsWidened(const ir::Node& node) {
  return node.attrs().Has("widened") && !node.attrs().GetString("widened").empty();
}

ir::AttrSpec PackedAttr() {
  return Optional("packed", false,
                  "set by pack-weights: input 1 stays the same from step to step, and a kernel may "
                  "hold it in an order of its own");
}

bool IsPacked(const ir::Node& node) {
  return node.attrs().Has("packed") && node.attrs().GetBool("packed");
}

ir::AttrSpec OutAttr() {
  return Optional("out", std::string(),
                  "\"f32\" leaves 16-bit input in f32 (an absorbed cast); \"\": the usual dtype");
}

std::function<ir::Cost(const ir::Node&)> FlopsPerOutput(double flops) {
  return [flops](const ir::Node& node) {
    const double elements = static_cast<double>(node.output_type(0).num_elements());
    return ir::Cost{flops * elements, AllBytes(node)};
  };
}
std::function<ir::Cost(const ir::Node&)> FlopsPerInput(double flops) {
  return [flops](const ir::Node& node) {
    const double elements = static_cast<double>(node.input_type(0).num_elements());
    return ir::Cost{flops * elements, AllBytes(node)};
  };
}

std::function<int64_t(const ir::Node&)> ExtentAlongAxis() {
  return [](const ir::Node& node) {
    const Shape& shape = node.input_type(0).shape;
    return shape[CheckedAxis(node.attrs().GetInt("axis"), shape.rank())];
  };
}
std::function<int64_t(const ir::Node&)> ExtentInAttr(std::string name) {
  return [name = std::move(name)](const ir::Node& node) { return node.attrs().GetInt(name); };
}

}  // namespace halftone::ops
