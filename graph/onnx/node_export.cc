#include "halftone/graph/onnx/node_export.h"

namespace halftone::onnx {

std::string ModelBuilder::UniqueName(const std::string& hint) {
  const std::string base = hint.empty() ? "v" : hint;
  std::string name = base;
  while (!taken_.insert(name).second) name = Concat(base, "_", ++counts_[base]);
  return name;
}

void ModelBuilder::AddInitializer(const std::string& name, const Tensor& value) {
  model_.initializers.push_back({name, value});
}

std::string ModelBuilder::Constant(const Tensor& value) {
  constexpr size_t kShared = 256;
  std::string key;
  if (value.num_bytes() <= kShared) {
    key = value.TypeString() + ":";
    key.append(static_cast<const char*>(value.raw()), value.num_bytes());
    if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
  }
  const std::string name = UniqueName("constant");
  AddInitializer(name, value);
  if (!key.empty()) constants_.emplace(key, name);
  return name;
}

void ModelBuilder::ReserveName(ir::Value value, const std::string& name) {
  reserved_[{value.node->id(), value.index}] = name;
}

std::string ModelBuilder::ReservedName(ir::Value value) const {
  const auto name = reserved_.find({value.node->id(), value.index});
  return name == reserved_.end() ? "" : name->second;
}

void ModelBuilder::SetName(ir::Value value, const std::string& name) {
  names_[{value.node->id(), value.index}] = name;
}

std::string ModelBuilder::NameOf(ir::Value value) const {
  const auto name = names_.find({value.node->id(), value.index});
  return name == names_.end() ? "" : name->second;
}

std::string NodeExport::in(int i) {
  const ir::Value value = node.input(i);
  std::string name = builder_.NameOf(value);
  if (name.empty()) {
    Fail("it reads ", value.ToString(), ", an output of ", value.node->op().name,
         " that has no counterpart in ONNX");
  }
  return name;
}

Names NodeExport::ins() {
  Names names;
  for (int i = 0; i < num_inputs(); ++i) names.push_back(in(i));
  return names;
}

std::string NodeExport::InAs(int i, DType dtype) {
  return type(i).dtype == dtype ? in(i) : Cast(in(i), dtype);
}

void NodeExport::AddNode(const std::string& name, const std::string& op_type, const Names& inputs,
                         Names outputs, ir::Attributes attrs) {
  builder_.model().nodes.push_back(
      {op_type, name, "", inputs, std::move(outputs), std::move(attrs)});
}

std::string NodeExport::Add(const std::string& op_type, const Names& inputs, ir::Attributes attrs) {
  return AddAll(1, op_type, inputs, std::move(attrs))[0];
}

Names NodeExport::AddAll(int count, const std::string& op_type, const Names& inputs,
                         ir::Attributes attrs) {
  Names outputs;
  for (int i = 0; i < count; ++i) {
    outputs.push_back(builder_.UniqueName(node.name() + "." + op_type));
  }
  AddNode(outputs[0], op_type, inputs, outputs, std::move(attrs));
  return outputs;
}

// The name of output `i`, from now on there.
std::string NodeExport::NameOutput(int i) {
  std::string name = builder_.ReservedName(node.output(i));
  if (name.empty()) {
    name = builder_.UniqueName(i == 0 ? node.name() : Concat(node.name(), "#", i));
  }
  builder_.SetName(node.output(i), name);
  return name;
}

void NodeExport::Give(const std::string& op_type, const Names& inputs, ir::Attributes attrs) {
  GiveOutput(0, op_type, inputs, std::move(attrs));
}

void NodeExport::GiveOutput(int i, const std::string& op_type, const Names& inputs,
                            ir::Attributes attrs) {
  const std::string name = NameOutput(i);
  AddNode(i == 0 ? node.path() : name, op_type, inputs, {name}, std::move(attrs));
}

void NodeExport::GiveOutputs(int count, const std::string& op_type, const Names& inputs,
                             ir::Attributes attrs) {
  Names outputs;
  for (int i = 0; i < count; ++i) outputs.push_back(NameOutput(i));
  AddNode(node.path(), op_type, inputs, std::move(outputs), std::move(attrs));
}

std::string NodeExport::Ints(const std::vector<int64_t>& values) {
  return Constant(Tensor::FromVector<int64_t>(Shape{static_cast<int64_t>(values.size())}, values));
}

std::string NodeExport::NumberOf(DType dtype, double value) {
  return Constant(Tensor::Scalar(dtype, value));
}

std::string NodeExport::Cast(const std::string& x, DType to) {
  return Add("Cast", {x}, {{"to", int64_t{DTypeNumber(to)}}});
}

}  // namespace halftone::onnx
