#include <unordered_map>

#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/proto_enums.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/proto/graph.pb.h"

namespace halftone::ir {
namespace {

constexpr uint32_t kVersion = 1;

template <typename Message>
void WriteDims(const Shape& shape, Message& proto) {
  for (int64_t dim : shape.dims()) proto.add_dims(dim);
}

void WriteType(const ValueType& type, TypeProto& proto) {
  proto.set_dtype(static_cast<DTypeProto>(ToProtoNumber(type.dtype)));
  WriteDims(type.shape, proto);
  proto.set_layout(static_cast<LayoutProto>(ToProtoNumber(type.layout)));
}

void WriteTensor(const Tensor& tensor, TensorProto& proto) {
  proto.set_dtype(static_cast<DTypeProto>(ToProtoNumber(tensor.dtype())));
  WriteDims(tensor.shape(), proto);
  proto.set_data(tensor.raw(), tensor.num_bytes());
}

void WriteAttribute(const std::string& name, const AttrValue& value, AttributeProto& proto) {
  proto.set_name(name);
  switch (TypeOf(value)) {
    case AttrType::kBool:
      return proto.set_bool_value(std::get<bool>(value));
    case AttrType::kInt:
      return proto.set_int_value(std::get<int64_t>(value));
    case AttrType::kFloat:
      return proto.set_float_value(std::get<double>(value));
    case AttrType::kString:
      return proto.set_string_value(std::get<std::string>(value));
    case AttrType::kDType:
      return proto.set_dtype_value(static_cast<DTypeProto>(ToProtoNumber(std::get<DType>(value))));
    case AttrType::kInts:
      proto.mutable_ints();  // an empty list is still a list
      for (int64_t x : std::get<std::vector<int64_t>>(value)) proto.mutable_ints()->add_items(x);
      return;
    case AttrType::kFloats:
      proto.mutable_floats();
      for (double x : std::get<std::vector<double>>(value)) proto.mutable_floats()->add_items(x);
      return;
    case AttrType::kStrings:
      proto.mutable_strings();
      for (const std::string& x : std::get<std::vector<std::string>>(value)) {
        proto.mutable_strings()->add_items(x);
      }
      return;
    case AttrType::kTensor:
      return WriteTensor(std::get<Tensor>(value), *proto.mutable_tensor());
  }
}

using Positions = std::unordered_map<const Node*, uint32_t>;

void WriteValue(Value v, const Positions& positions, ValueProto& proto) {
  proto.set_node(positions.at(v.node));
  proto.set_output(static_cast<uint32_t>(v.index));
}

void WriteNode(const Node& node, const Positions& positions, NodeProto& proto) {
  proto.set_op(node.op().name);
  proto.set_name(node.name());
  proto.set_scope(node.scope());
  for (const Value& input : node.inputs()) WriteValue(input, positions, *proto.add_inputs());
  for (const auto& [name, value] : node.attrs().entries()) {
    WriteAttribute(name, value, *proto.add_attributes());
  }
  for (int i = 0; i < node.num_outputs(); ++i) WriteType(node.output_type(i), *proto.add_outputs());
  proto.set_file(node.location.file);
  proto.set_line(static_cast<uint32_t>(node.location.line));
  proto.set_pass(node.provenance.pass);
  proto.set_from(node.provenance.from);
  if (node.amp.decided) {
    AmpDecisionProto& amp = *proto.mutable_amp();
    amp.set_amp_class(static_cast<AmpClassProto>(ToProtoNumber(node.amp.amp_class)));
    amp.set_dtype(static_cast<DTypeProto>(ToProtoNumber(node.amp.dtype)));
    amp.set_reason(node.amp.reason);
    if (node.amp.raised_from) {
      amp.set_raised_from(static_cast<DTypeProto>(ToProtoNumber(*node.amp.raised_from)));
    }
  } else if (!node.amp.reason.empty()) {
    proto.mutable_amp()->set_reason(node.amp.reason);
  }
  proto.set_amp_request(node.amp_request);
  proto.set_recompute(node.recompute);
}

void WriteVariable(const Variable& variable, VariableProto& proto) {
  proto.set_name(variable.name);
  WriteType(variable.type, *proto.mutable_type());
  proto.set_kind(static_cast<VariableKindProto>(ToProtoNumber(variable.kind)));
  proto.set_trainable(variable.trainable);
  proto.set_init(variable.init.ToString());
}

}  // namespace

absl::StatusOr<std::string> ToProtoBytes(const Graph& graph) {
  // What is written can be read; and below every value has a position.
  HT_RETURN_IF_ERROR(Verify(graph));
  GraphProto proto;
  proto.set_version(kVersion);
  proto.set_name(graph.name());
  for (const Variable& variable : graph.variables()) {
    WriteVariable(variable, *proto.add_variables());
  }
  Positions positions;
  for (const auto& node : graph.nodes()) {
    const uint32_t position = static_cast<uint32_t>(positions.size());
    WriteNode(*node, positions, *proto.add_nodes());
    positions[node.get()] = position;
  }
  for (const Output& output : graph.outputs()) {
    GraphOutputProto& written = *proto.add_outputs();
    written.set_name(output.name);
    WriteValue(output.value, positions, *written.mutable_value());
  }
  if (proto.ByteSizeLong() > kMaxFileBytes) {
    return ResourceExhausted("graph @", graph.name(), " has ", proto.ByteSizeLong(),
                             " bytes as proto; expected at most ", kMaxFileBytes);
  }
  return proto.SerializeAsString();
}

}  // namespace halftone::ir
