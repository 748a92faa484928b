// Everything in a file is checked before it is used; names and order of values are import's matter.
#include "halftone/graph/onnx/parse.h"

#include <charconv>
#include <cstring>
#include <type_traits>

#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/number_text.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/proto/onnx.pb.h"

namespace halftone::onnx {
namespace {

using onnxpb::AttributeProto;
using onnxpb::TensorProto;

std::string Shown(const std::string& name) { return ir::Quote(name.substr(0, 80)); }

absl::StatusOr<DType> ReadElementType(int number) {
  const auto dtype = DTypeFromNumber(number);
  if (dtype.has_value()) return *dtype;
  return Unimplemented(DTypeNumberName(number),
                       " is not covered; expected float, double, float16, bfloat16, int64, int32, "
                       "uint8 or bool");
}

// Element i of a typed field into an array of T, which it must fit.
template <typename T, typename Field>
absl::Status CopyElements(const Field& field, const char* name, Tensor& tensor) {
  if (field.size() != tensor.num_elements()) {
    return InvalidArgument(field.size(), " elements in ", name, "; expected ",
                           tensor.num_elements(), " of ", tensor.shape());
  }
  auto* to = static_cast<T*>(tensor.raw());
  for (const auto element : field) {
    const T converted = static_cast<T>(element);
    if constexpr (std::is_integral_v<T>) {  // floats lie in a field of their own type
      if (static_cast<std::remove_cv_t<decltype(element)>>(converted) != element) {
        return InvalidArgument("element ", element, " in ", name, " is out of range for ",
                               Name(tensor.dtype()));
      }
    }
    *to++ = converted;
  }
  return absl::OkStatus();
}

absl::Status CopyTypedData(const TensorProto& proto, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kF32:
      return CopyElements<float>(proto.float_data(), "float_data", tensor);
    case DType::kF64:
      return CopyElements<double>(proto.double_data(), "double_data", tensor);
    case DType::kI64:
      return CopyElements<int64_t>(proto.int64_data(), "int64_data", tensor);
    case DType::kI32:
      return CopyElements<int32_t>(proto.int32_data(), "int32_data", tensor);
    case DType::kU8:
    case DType::kBool:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return CopyElements<uint8_t>(proto.int32_data(), "int32_data", tensor);
    case DType::kF16:
    case DType::kBF16:
      return CopyElements<uint16_t>(proto.int32_data(), "int32_data", tensor);
  }
  return absl::OkStatus();
}

absl::Status CheckBools(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return absl::OkStatus();
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (bytes[i] > 1) return InvalidArgument("bool ", int{bytes[i]}, "; expected 0 or 1");
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReadTensor(const TensorProto& proto) {
  if (proto.data_location() != 0) {
    return Unimplemented(
        "external data is not covered; expected a model in one file, as "
        "onnx.save(model, path) writes it");
  }
  HT_ASSIGN_OR_RETURN(const DType dtype, ReadElementType(proto.data_type()));
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  HT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  // Before anything is allocated: the elements must be in the file.
  const int64_t bytes = shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
  const auto raw = static_cast<int64_t>(proto.raw_data().size());
  const int64_t typed = int64_t{proto.float_data_size()} + proto.int32_data_size() +
                        proto.int64_data_size() + proto.double_data_size();
  if (proto.has_raw_data() ? raw != bytes : typed != shape.num_elements()) {
    return InvalidArgument(
        proto.has_raw_data() ? raw : typed, proto.has_raw_data() ? " bytes" : " elements", " for ",
        Name(dtype), shape, "; expected ", proto.has_raw_data() ? bytes : shape.num_elements());
  }
  HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  if (!proto.has_raw_data()) {
    HT_RETURN_IF_ERROR(CopyTypedData(proto, tensor));
  } else if (raw > 0) {
    std::memcpy(tensor.raw(), proto.raw_data().data(), proto.raw_data().size());
  }
  HT_RETURN_IF_ERROR(CheckBools(tensor));
  return tensor;
}

// The number that was meant: the shortest decimal that rounds to the float, so that 1e-5 reads as
// 1e-5 and not as 9.999999747378752e-06.
double Meant(float x) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), x);
  const auto parsed = ir::ParseDouble(std::string(text, end.ptr));
  return parsed.ok() ? *parsed : static_cast<double>(x);
}

absl::StatusOr<ir::AttrValue> ReadAttribute(const AttributeProto& proto) {
  if (proto.has_ref_attr_name()) return Unimplemented("it refers to one of a function");
  switch (proto.type()) {
    case AttributeProto::FLOAT:
      return ir::AttrValue(Meant(proto.f()));
    case AttributeProto::INT:
      return ir::AttrValue(static_cast<int64_t>(proto.i()));
    case AttributeProto::STRING:
      return ir::AttrValue(proto.s());
    case AttributeProto::TENSOR: {
      HT_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(proto.t()));
      return ir::AttrValue(std::move(tensor));
    }
    case AttributeProto::FLOATS: {
      std::vector<double> values;
      for (const float value : proto.floats()) values.push_back(Meant(value));
      return ir::AttrValue(std::move(values));
    }
    case AttributeProto::INTS:
      return ir::AttrValue(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case AttributeProto::STRINGS:
      return ir::AttrValue(
          std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
      return Unimplemented("a subgraph is not covered");
    default:
      return Unimplemented("attributes of type number ", static_cast<int>(proto.type()),
                           " are not covered");
  }
}

absl::StatusOr<Node> ReadNode(const onnxpb::NodeProto& proto) {
  Node node{proto.op_type(), proto.name(), proto.domain(), {}, {}, {}};
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  const auto bad = [&](const auto&... parts) {
    return InvalidArgument(node.Label(), ": ", parts...);
  };
  if (node.inputs.size() > ir::kMaxNodeInputs || node.outputs.size() > ir::kMaxNodeInputs) {
    return bad(node.inputs.size(), " inputs, ", node.outputs.size(), " outputs; expected at most ",
               ir::kMaxNodeInputs);
  }
  if (static_cast<size_t>(proto.attribute_size()) > ir::kMaxNodeAttributes) {
    return bad(proto.attribute_size(), " attributes; expected at most ", ir::kMaxNodeAttributes);
  }
  for (const AttributeProto& attribute : proto.attribute()) {
    if (node.attributes.Has(attribute.name())) {
      return bad("attribute ", Shown(attribute.name()), " is given twice");
    }
    auto value = ReadAttribute(attribute);
    if (!value.ok()) {
      return Annotate(value.status(),
                      Concat(node.Label(), ": attribute ", Shown(attribute.name()), ": "));
    }
    node.attributes.Set(attribute.name(), *std::move(value));
  }
  return node;
}

absl::StatusOr<ValueInfo> ReadValueInfo(const onnxpb::ValueInfoProto& proto) {
  ValueInfo info;
  info.name = proto.name();
  if (!proto.type().has_tensor_type()) return Unimplemented("it is no tensor; expected one");
  const auto& type = proto.type().tensor_type();
  HT_ASSIGN_OR_RETURN(info.dtype, ReadElementType(type.elem_type()));
  if (!type.has_shape()) return info;
  info.dims.emplace();
  if (type.shape().dim_size() > kMaxRank) {
    return InvalidArgument("rank ", type.shape().dim_size(), "; expected at most ", kMaxRank);
  }
  for (const auto& dim : type.shape().dim()) {
    Dim& read = info.dims->emplace_back();
    if (dim.has_dim_value()) read.extent = dim.dim_value();
    if (dim.has_dim_param()) read.name = dim.dim_param();
  }
  return info;
}

absl::StatusOr<int64_t> StandardOpset(const onnxpb::ModelProto& proto) {
  for (const auto& opset : proto.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
    if (opset.version() >= kOldestOpset && opset.version() <= kNewestOpset) return opset.version();
    return Unimplemented("onnx: opset ", opset.version(), " is not covered; expected ",
                         kOldestOpset, "..", kNewestOpset);
  }
  return InvalidArgument("onnx: the model names no version of the standard operators");
}

}  // namespace

absl::StatusOr<Model> ParseModel(const std::string& bytes) {
  if (bytes.size() > ir::kMaxFileBytes) {
    return InvalidArgument("onnx: ", bytes.size(), " bytes; expected at most ", ir::kMaxFileBytes);
  }
  onnxpb::ModelProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !proto.has_graph()) {
    return DataLoss("onnx: ", bytes.size(), " bytes that are not a whole ONNX model");
  }
  Model model;
  HT_ASSIGN_OR_RETURN(model.opset, StandardOpset(proto));
  const onnxpb::GraphProto& graph = proto.graph();
  model.name = graph.name();
  if (static_cast<size_t>(graph.node_size()) > ir::kMaxNodes) {
    return InvalidArgument("onnx: ", graph.node_size(), " nodes; expected at most ", ir::kMaxNodes);
  }
  if (graph.sparse_initializer_size() > 0) {
    return Unimplemented("onnx: sparse initializers are not covered");
  }
  for (const TensorProto& tensor : graph.initializer()) {
    auto value = ReadTensor(tensor);
    if (!value.ok()) {
      return Annotate(value.status(), Concat("onnx: initializer ", Shown(tensor.name()), ": "));
    }
    model.initializers.push_back({tensor.name(), *std::move(value)});
  }
  for (const auto& [values, to, what] : {std::tuple(&graph.input(), &model.inputs, "input "),
                                         std::tuple(&graph.output(), &model.outputs, "output ")}) {
    for (const auto& value : *values) {
      auto info = ReadValueInfo(value);
      if (!info.ok()) {
        return Annotate(info.status(), Concat("onnx: ", what, Shown(value.name()), ": "));
      }
      to->push_back(*std::move(info));
    }
  }
  for (const auto& node : graph.node()) {
    auto read = ReadNode(node);
    if (!read.ok()) return Annotate(read.status(), "onnx: ");
    model.nodes.push_back(*std::move(read));
  }
  return model;
}

}  // namespace halftone::onnx
