#include <functional>
#include <set>
#include <string_view>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

// FNV-1a, with lengths before contents so that neighbours cannot run together.
class Hasher {
 public:
  void Bytes(const void* data, size_t size) {
    const unsigned char* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3u;
  }
  void Int(int64_t x) { Bytes(&x, sizeof x); }
  void Double(double x) { Bytes(&x, sizeof x); }
  void String(const std::string& text) {
    Int(static_cast<int64_t>(text.size()));
    Bytes(text.data(), text.size());
  }
  void Shape(const halftone::Shape& shape) {
    Int(shape.rank());
    for (int64_t dim : shape.dims()) Int(dim);
  }
  void Type(const ValueType& type) {
    Int(static_cast<int64_t>(type.dtype));
    Int(static_cast<int64_t>(type.layout));
    Shape(type.shape);
  }
  void Value(const ir::Value& v) { String(v.ToString()); }
  void Attribute(const AttrValue& value);
  void Node(const ir::Node& node);
  void Attributes(const ir::Attributes& attrs) {
    Int(static_cast<int64_t>(attrs.entries().size()));
    for (const auto& [name, value] : attrs.entries()) {
      String(name);
      Attribute(value);
    }
  }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

void Hasher::Attribute(const AttrValue& value) {
  Int(static_cast<int64_t>(value.index()));
  switch (TypeOf(value)) {
    case AttrType::kBool:
      return Int(std::get<bool>(value));
    case AttrType::kInt:
      return Int(std::get<int64_t>(value));
    case AttrType::kFloat:
      return Double(std::get<double>(value));
    case AttrType::kString:
      return String(std::get<std::string>(value));
    case AttrType::kDType:
      return Int(static_cast<int64_t>(std::get<DType>(value)));
    case AttrType::kInts:
      Int(static_cast<int64_t>(std::get<std::vector<int64_t>>(value).size()));
      for (int64_t x : std::get<std::vector<int64_t>>(value)) Int(x);
      return;
    case AttrType::kFloats:
      Int(static_cast<int64_t>(std::get<std::vector<double>>(value).size()));
      for (double x : std::get<std::vector<double>>(value)) Double(x);
      return;
    case AttrType::kStrings:
      Int(static_cast<int64_t>(std::get<std::vector<std::string>>(value).size()));
      for (const std::string& x : std::get<std::vector<std::string>>(value)) String(x);
      return;
    case AttrType::kTensor: {
      const Tensor& tensor = std::get<Tensor>(value);
      if (!tensor.defined()) return;
      Int(static_cast<int64_t>(tensor.dtype()));
      Shape(tensor.shape());
      if (IsSplat(tensor)) return Bytes(tensor.raw(), SizeOf(tensor.dtype()));
      // A hash of whole words: a constant may be large.
      const auto* bytes = static_cast<const char*>(tensor.raw());
      return Int(static_cast<int64_t>(
          std::hash<std::string_view>()(std::string_view(bytes, tensor.num_bytes()))));
    }
  }
}

void Hasher::Node(const ir::Node& node) {
  if (node.num_outputs() > 0) String(node.name());  // the text does not show a root's name
  String(node.op().name);
  Attributes(node.attrs());
  Int(node.num_inputs());
  for (const ir::Value& input : node.inputs()) Value(input);
  Int(node.num_outputs());
  for (int i = 0; i < node.num_outputs(); ++i) Type(node.output_type(i));
}

}  // namespace

uint64_t Graph::Hash() const {
  Hasher hasher;
  hasher.String(name_);
  for (const ir::Node* input : inputs()) hasher.Node(*input);
  std::set<std::string> with_node;
  for (const ir::Node* node : variable_nodes()) with_node.insert(node->attrs().GetString("name"));
  for (const Variable& variable : variables_) {
    if (with_node.count(variable.name) == 0) hasher.Attributes(ToAttributes(variable));
  }
  for (const auto& node : nodes_) {
    if (node->op().name != "input") hasher.Node(*node);
  }
  hasher.Int(static_cast<int64_t>(outputs_.size()));
  for (const Output& output : outputs_) {
    hasher.String(output.name);
    hasher.Value(output.value);
  }
  return hasher.hash();
}

}  // namespace halftone::ir
