#include "halftone/core/version.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/onnx/parse.h"
#include "halftone/proto/onnx.pb.h"

namespace halftone::onnx {
namespace {

using onnxpb::AttributeProto;

void WriteTensor(const Tensor& tensor, onnxpb::TensorProto* proto) {
  for (const int64_t dim : tensor.shape().dims()) proto->add_dims(dim);
  proto->set_data_type(DTypeNumber(tensor.dtype()));
  proto->set_raw_data(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
}

// Sets value and type of an attribute.
struct AttributeWriter {
  AttributeProto* proto;
  void operator()(int64_t x) const {
    proto->set_type(AttributeProto::INT);
    proto->set_i(x);
  }
  void operator()(double x) const {
    proto->set_type(AttributeProto::FLOAT);
    proto->set_f(static_cast<float>(x));
  }
  void operator()(const std::string& x) const {
    proto->set_type(AttributeProto::STRING);
    proto->set_s(x);
  }
  void operator()(const Tensor& x) const {
    proto->set_type(AttributeProto::TENSOR);
    WriteTensor(x, proto->mutable_t());
  }
  void operator()(const std::vector<int64_t>& x) const {
    proto->set_type(AttributeProto::INTS);
    for (const int64_t item : x) proto->add_ints(item);
  }
  void operator()(const std::vector<double>& x) const {
    proto->set_type(AttributeProto::FLOATS);
    for (const double item : x) proto->add_floats(static_cast<float>(item));
  }
  void operator()(const std::vector<std::string>& x) const {
    proto->set_type(AttributeProto::STRINGS);
    for (const std::string& item : x) proto->add_strings(item);
  }
  // Not kinds that ONNX has: what makes nodes turns them into numbers.
  void operator()(bool) const { HT_CHECK(false, "a bool is no ONNX attribute"); }
  void operator()(DType) const { HT_CHECK(false, "a dtype is no ONNX attribute"); }
};

void WriteNode(const Node& node, onnxpb::NodeProto* proto) {
  for (const std::string& input : node.inputs) proto->add_input(input);
  for (const std::string& output : node.outputs) proto->add_output(output);
  proto->set_name(node.name);
  proto->set_op_type(node.op_type);
  if (!node.domain.empty()) proto->set_domain(node.domain);
  for (const auto& [name, value] : node.attributes.entries()) {
    AttributeProto* attribute = proto->add_attribute();
    attribute->set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

void WriteValueInfo(const ValueInfo& info, onnxpb::ValueInfoProto* proto) {
  proto->set_name(info.name);
  auto* type = proto->mutable_type()->mutable_tensor_type();
  type->set_elem_type(DTypeNumber(info.dtype));
  if (!info.dims.has_value()) return;
  auto* shape = type->mutable_shape();
  for (const Dim& dim : *info.dims) {
    auto* written = shape->add_dim();
    if (dim.extent.has_value()) {
      written->set_dim_value(*dim.extent);
    } else if (!dim.name.empty()) {
      written->set_dim_param(dim.name);
    }
  }
}

}  // namespace

absl::StatusOr<std::string> SerializeModel(const Model& model) {
  onnxpb::ModelProto proto;
  proto.set_ir_version(kWrittenIrVersion);
  proto.set_producer_name("halftone");
  proto.set_producer_version(Version());
  auto* opset = proto.add_opset_import();
  opset->set_domain("");
  opset->set_version(model.opset);
  onnxpb::GraphProto* graph = proto.mutable_graph();
  graph->set_name(model.name);
  for (const Node& node : model.nodes) WriteNode(node, graph->add_node());
  // Before protobuf would fail at it.
  size_t bytes = 0;
  for (const NamedTensor& tensor : model.initializers) bytes += tensor.value.num_bytes();
  if (bytes > ir::kMaxFileBytes) {
    return ResourceExhausted("onnx: ", bytes, " bytes of initializers; a file holds at most ",
                             ir::kMaxFileBytes);
  }
  for (const NamedTensor& tensor : model.initializers) {
    onnxpb::TensorProto* written = graph->add_initializer();
    written->set_name(tensor.name);
    WriteTensor(tensor.value, written);
  }
  for (const ValueInfo& input : model.inputs) WriteValueInfo(input, graph->add_input());
  for (const ValueInfo& output : model.outputs) WriteValueInfo(output, graph->add_output());
  if (proto.ByteSizeLong() > ir::kMaxFileBytes) {
    return ResourceExhausted("onnx: the model has ", proto.ByteSizeLong(),
                             " bytes; a file holds at most ", ir::kMaxFileBytes);
  }
  std::string out;
  if (!proto.SerializeToString(&out)) return Internal("onnx: the model cannot be serialised");
  return out;
}

}  // namespace halftone::onnx
