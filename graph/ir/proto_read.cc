// Everything in a file is checked before it is used; what the reader does not check, Verify does.
#include "halftone/graph/ir/constant_file.h"
#include "halftone/graph/ir/infer.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/proto_enums.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/proto/graph.pb.h"

namespace halftone::ir {
namespace {

constexpr uint32_t kNewestVersion = 1;

// A message for InvalidArgument about one part of the file.
template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return InvalidArgument("graph proto: ", parts...);
}

template <typename Message>
absl::StatusOr<Shape> ReadShape(const Message& proto) {
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  return Shape::Make(dims);
}

absl::StatusOr<DType> ReadDType(int number) {
  const auto dtype = DTypeFromProto(number);
  if (!dtype.has_value()) return InvalidArgument("unknown dtype number ", number);
  return *dtype;
}

absl::StatusOr<ValueType> ReadType(const TypeProto& proto) {
  ValueType type;
  HT_ASSIGN_OR_RETURN(type.dtype, ReadDType(proto.dtype()));
  HT_ASSIGN_OR_RETURN(type.shape, ReadShape(proto));
  const auto layout = LayoutFromProto(proto.layout());
  if (!layout.has_value()) return InvalidArgument("unknown layout number ", proto.layout());
  if (!CanLie(type.shape, *layout)) return InvalidArgument(WhyItCannotLie(type, *layout));
  type.layout = *layout;
  return type;
}

absl::StatusOr<AttrValue> ReadAttribute(const AttributeProto& proto) {
  switch (proto.value_case()) {
    case AttributeProto::kBoolValue:
      return AttrValue(proto.bool_value());
    case AttributeProto::kIntValue:
      return AttrValue(static_cast<int64_t>(proto.int_value()));
    case AttributeProto::kFloatValue:
      return AttrValue(proto.float_value());
    case AttributeProto::kStringValue:
      return AttrValue(proto.string_value());
    case AttributeProto::kDtypeValue: {
      HT_ASSIGN_OR_RETURN(const DType dtype, ReadDType(proto.dtype_value()));
      return AttrValue(dtype);
    }
    case AttributeProto::kInts:
      return AttrValue(
          std::vector<int64_t>(proto.ints().items().begin(), proto.ints().items().end()));
    case AttributeProto::kFloats:
      return AttrValue(
          std::vector<double>(proto.floats().items().begin(), proto.floats().items().end()));
    case AttributeProto::kStrings:
      return AttrValue(
          std::vector<std::string>(proto.strings().items().begin(), proto.strings().items().end()));
    case AttributeProto::kTensor: {
      HT_ASSIGN_OR_RETURN(const DType dtype, ReadDType(proto.tensor().dtype()));
      HT_ASSIGN_OR_RETURN(const Shape shape, ReadShape(proto.tensor()));
      HT_ASSIGN_OR_RETURN(Tensor tensor, TensorFromBytes(dtype, shape, proto.tensor().data()));
      return AttrValue(std::move(tensor));
    }
    case AttributeProto::VALUE_NOT_SET:
      break;
  }
  return InvalidArgument("no value");
}

class Reader {
 public:
  explicit Reader(const GraphProto& proto)
      : proto_(proto), graph_(std::make_unique<Graph>(proto.name())) {}

  absl::StatusOr<std::unique_ptr<Graph>> Run() {
    if (proto_.version() == 0 || proto_.version() > kNewestVersion) {
      return Bad("version ", proto_.version(), "; this build reads 1 to ", kNewestVersion);
    }
    if (static_cast<size_t>(proto_.nodes_size()) > kMaxNodes ||
        static_cast<size_t>(proto_.variables_size()) > kMaxNodes) {
      return Bad(proto_.nodes_size(), " nodes and ", proto_.variables_size(),
                 " variables; expected at most ", kMaxNodes, " each");
    }
    for (const VariableProto& variable : proto_.variables()) {
      HT_RETURN_IF_ERROR(AddVariable(variable));
    }
    for (int i = 0; i < proto_.nodes_size(); ++i) {
      if (absl::Status status = AddNode(proto_.nodes(i)); !status.ok()) {
        return Bad("node ", i, ": ", Message(status));
      }
    }
    for (const GraphOutputProto& output : proto_.outputs()) {
      auto value = ReadValue(output.value());
      if (!value.ok()) return Bad("output: ", Message(value.status()));
      graph_->outputs().push_back({output.name(), *value});
    }
    if (absl::Status status = Verify(*graph_); !status.ok()) return Bad(Message(status));
    return std::move(graph_);
  }

 private:
  absl::Status AddVariable(const VariableProto& proto) {
    const std::string label = "variable " + Quote(proto.name().substr(0, 80)) + ": ";
    Variable variable;
    variable.name = proto.name();
    if (variable.name.empty() || variable.name.size() > kMaxStringBytes) {
      return Bad(label, "expected a name of 1 to ", kMaxStringBytes, " bytes");
    }
    auto type = ReadType(proto.type());
    if (!type.ok()) return Bad(label, Message(type.status()));
    if (type->layout != Layout::kPlain) return Bad(label, "expected plain layout");
    variable.type = *std::move(type);
    const auto kind = VariableKindFromProto(proto.kind());
    if (!kind.has_value()) return Bad(label, "unknown kind number ", proto.kind());
    variable.kind = *kind;
    variable.trainable = proto.trainable();
    auto init = Initializer::Parse(proto.init());
    if (!init.ok()) return Bad(label, Message(init.status()));
    variable.init = *init;
    absl::Status status = graph_->AddVariable(std::move(variable));
    return status.ok() ? status : Bad(Message(status));
  }

  absl::StatusOr<Value> ReadValue(const ValueProto& proto) const {
    if (proto.node() >= graph_->nodes().size()) {
      return InvalidArgument("value of node ", proto.node(), "; expected an earlier node, 0..",
                             static_cast<int64_t>(graph_->nodes().size()) - 1);
    }
    const Node& node = *graph_->nodes()[proto.node()];
    if (proto.output() >= static_cast<uint32_t>(node.num_outputs())) {
      return InvalidArgument("output ", proto.output(), " of ", node.Label(), ", which has ",
                             node.num_outputs());
    }
    return node.output(static_cast<int>(proto.output()));
  }

  absl::Status AddNode(const NodeProto& proto) {
    const OpRecord* op = OpRegistry::Global().Find(proto.op());
    if (op == nullptr) return InvalidArgument(Quote(proto.op().substr(0, 80)), ": no such op");
    if (!IsValidName(proto.name()) || graph_->FindNode(proto.name()) != nullptr) {
      return InvalidArgument(op->name, ": name ", Quote(proto.name().substr(0, 80)),
                             " is malformed or used twice");
    }
    const std::string label = op->name + "(%" + proto.name() + ")";
    if (static_cast<size_t>(proto.inputs_size()) > kMaxNodeInputs) {
      return InvalidArgument(label, ": got ", proto.inputs_size(), " inputs; expected at most ",
                             kMaxNodeInputs);
    }
    std::vector<Value> inputs;
    for (const ValueProto& input : proto.inputs()) {
      HT_ASSIGN_OR_RETURN(const Value value, ReadValue(input));
      inputs.push_back(value);
    }
    HT_ASSIGN_OR_RETURN(Attributes attrs, ReadAttributes(*op, label, proto));
    std::vector<ValueType> types;
    for (const TypeProto& type : proto.outputs()) {
      HT_ASSIGN_OR_RETURN(ValueType read, ReadType(type));
      types.push_back(std::move(read));
    }
    Node* node = graph_->AddNode(op, std::move(inputs), std::move(attrs), std::move(types),
                                 proto.name(), proto.scope());
    if (proto.line() > INT32_MAX) return InvalidArgument(label, ": line ", proto.line());
    node->location = {proto.file(), static_cast<int>(proto.line())};
    node->provenance = {proto.pass(), proto.from()};
    if (proto.amp_request() < -1 || proto.amp_request() > 1) {
      return InvalidArgument(label, ": AMP request ", proto.amp_request(), "; expected -1, 0 or 1");
    }
    node->amp_request = static_cast<int8_t>(proto.amp_request());
    node->recompute = proto.recompute();
    return ReadAmp(label, proto, *node);
  }

  static absl::StatusOr<Attributes> ReadAttributes(const OpRecord& op, const std::string& label,
                                                   const NodeProto& proto) {
    Attributes attrs;
    if (static_cast<size_t>(proto.attributes_size()) > kMaxNodeAttributes) {
      return InvalidArgument(label, ": got ", proto.attributes_size(),
                             " attributes; expected at most ", kMaxNodeAttributes);
    }
    for (const AttributeProto& attribute : proto.attributes()) {
      const std::string name = Quote(attribute.name().substr(0, 80));
      auto value = ReadAttribute(attribute);
      if (!value.ok()) {
        return InvalidArgument(label, ": attribute ", name, ": ", Message(value.status()));
      }
      if (attrs.Has(attribute.name())) {
        return InvalidArgument(label, ": attribute ", name, " is given twice");
      }
      attrs.Set(attribute.name(), *std::move(value));
    }
    HT_RETURN_IF_ERROR(CompleteAttributes(op, label, attrs));
    return attrs;
  }

  static absl::Status ReadAmp(const std::string& label, const NodeProto& proto, Node& node) {
    if (!proto.has_amp()) return absl::OkStatus();
    // A reason alone: why the node was left alone.
    if (proto.amp().amp_class() == 0 && proto.amp().dtype() == 0 && !proto.amp().reason().empty()) {
      node.amp.reason = proto.amp().reason();
      return absl::OkStatus();
    }
    const auto amp_class = AmpClassFromProto(proto.amp().amp_class());
    if (!amp_class.has_value()) {
      return InvalidArgument(label, ": unknown AMP class number ", proto.amp().amp_class());
    }
    HT_ASSIGN_OR_RETURN(const DType dtype, ReadDType(proto.amp().dtype()));
    node.amp = {true, *amp_class, dtype, proto.amp().reason()};
    if (proto.amp().raised_from() != 0) {
      HT_ASSIGN_OR_RETURN(node.amp.raised_from, ReadDType(proto.amp().raised_from()));
    }
    return absl::OkStatus();
  }

  const GraphProto& proto_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> FromProtoBytes(const std::string& bytes) {
  if (bytes.size() > kMaxFileBytes) {
    return InvalidArgument("graph proto: ", bytes.size(), " bytes; expected at most ",
                           kMaxFileBytes);
  }
  GraphProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("graph proto: ", bytes.size(), " bytes that are not a serialised graph");
  }
  return Reader(proto).Run();
}

}  // namespace halftone::ir
