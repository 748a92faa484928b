#include "halftone/graph/onnx/node_import.h"

#include <algorithm>

#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

Ints Bounded(Ints values) {
  for (int64_t& value : values) {
    value = std::clamp(value, -NodeImport::kMaxInt, NodeImport::kMaxInt);
  }
  return values;
}

}  // namespace

NodeImport::NodeImport(const Node& n, int64_t version, std::vector<ir::Expr> inputs,
                       ir::Builder& builder, StaticValues& values)
    : b(builder), node(n), opset(version), inputs_(std::move(inputs)), values_(values) {
  while (!inputs_.empty() && !inputs_.back().valid()) inputs_.pop_back();
}

int NodeImport::num_outputs() const {
  auto count = static_cast<int>(node.outputs.size());
  while (count > 0 && node.outputs[static_cast<size_t>(count) - 1].empty()) --count;
  return count;
}

ir::Expr NodeImport::in(int i) {
  if (!ok()) return {&b, ir::Value{}};
  if (has(i)) return inputs_[static_cast<size_t>(i)];
  FailWith(InvalidArgument("input ", i, " is missing"));
  return {&b, ir::Value{}};
}

Ints NodeImport::shape(int i) {
  const ir::Expr x = in(i);
  return x.valid() ? ops::ToInts(x.shape()) : Ints(kMaxRank, 1);
}

DType NodeImport::dtype(int i) {
  const ir::Expr x = in(i);
  return x.valid() ? x.dtype() : DType::kF32;
}

ir::Expr NodeImport::Result(const std::string& op, const std::vector<ir::Expr>& inputs,
                            ir::Attributes attrs) {
  if (!ok()) return {&b, ir::Value{}};
  if (!node.outputs.empty()) b.NameNext(node.outputs[0]);
  return b.Op(op, inputs, std::move(attrs));
}

const Tensor* NodeImport::Constant(int i) const {
  if (!has(i)) return nullptr;
  const ir::Node& source = *inputs_[static_cast<size_t>(i)].value().node;
  return source.op().name == "constant" ? &source.attrs().Get<Tensor>("value") : nullptr;
}

bool NodeImport::Spend(int64_t elements) {
  if (ok() && !values_.Spend(elements)) {
    Fail("a constant of ", elements, " elements is not covered; expected at most ",
         kMaxStaticElements, ", and ", kMaxStaticElementsOfAll, " in all such of a model");
  }
  return ok();
}

std::optional<Tensor> NodeImport::Static(int i) {
  const ir::Expr x = in(i);
  if (!x.valid()) return std::nullopt;
  auto value = values_.Evaluate(x.value());
  if (value.ok()) return *std::move(value);
  FailWith(Annotate(value.status(), Concat("input ", i, " must be known at import: ")));
  return std::nullopt;
}

Ints NodeImport::StaticInts(int i) {
  const std::optional<Tensor> value = Static(i);
  if (!value.has_value()) return {};
  if (!IsInteger(value->dtype()) || value->num_elements() > kMaxStaticElements) {
    FailWith(InvalidArgument("input ", i, " is ", value->TypeString(), "; expected integers"));
    return {};
  }
  Ints ints;
  for (int64_t k = 0; k < value->num_elements(); ++k) {
    ints.push_back(LoadInt(value->raw(), value->dtype(), k));
  }
  return Bounded(std::move(ints));
}

double NodeImport::StaticNumber(int i, double fallback) {
  if (!has(i)) return fallback;
  const std::optional<Tensor> value = Static(i);
  if (!value.has_value()) return fallback;
  if (value->num_elements() == 1) return value->at(0);
  FailWith(InvalidArgument("input ", i, " is ", value->TypeString(), "; expected one element"));
  return fallback;
}

template <typename T>
const T* NodeImport::Find(const std::string& name, const char* expected) {
  covered_.insert(name);
  const ir::AttrValue* value = node.attributes.Find(name);
  if (value == nullptr || !ok()) return nullptr;
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) {
    FailWith(InvalidArgument("attribute ", name, " is ", ir::FormatAttrBriefly(*value),
                             "; expected ", expected));
  }
  return typed;
}

int64_t NodeImport::Int(const std::string& name, int64_t fallback) {
  const auto* value = Find<int64_t>(name, "an int");
  if (value == nullptr) return fallback;
  if (*value >= -kMaxInt && *value <= kMaxInt) return *value;
  FailWith(InvalidArgument("attribute ", name, ": ", *value, " is out of range"));
  return fallback;
}

double NodeImport::Float(const std::string& name, double fallback) {
  const auto* value = Find<double>(name, "a float");
  return value == nullptr ? fallback : *value;
}

std::string NodeImport::String(const std::string& name, const std::string& fallback) {
  const auto* value = Find<std::string>(name, "a string");
  return value == nullptr ? fallback : *value;
}

Ints NodeImport::IntList(const std::string& name, const Ints& fallback) {
  const auto* value = Find<Ints>(name, "ints");
  return value == nullptr ? fallback : Bounded(*value);
}

const std::vector<double>* NodeImport::Floats(const std::string& name) {
  return Find<std::vector<double>>(name, "floats");
}

std::optional<Tensor> NodeImport::TensorAttr(const std::string& name) {
  const auto* value = Find<Tensor>(name, "a tensor");
  return value == nullptr ? std::nullopt : std::optional<Tensor>(*value);
}

std::optional<DType> NodeImport::DTypeAttr(const std::string& name) {
  const auto* number = Find<int64_t>(name, "the number of a type");
  if (number == nullptr) return std::nullopt;
  const auto dtype = DTypeFromNumber(*number);
  if (!dtype.has_value())
    Fail("attribute ", name, ": ", DTypeNumberName(*number), " is not covered");
  return dtype;
}

std::optional<Ints> NodeImport::IntsFrom(const std::string& attr, int input) {
  if (has(input)) return StaticInts(input);
  const auto* list = Find<Ints>(attr, "ints");
  return list == nullptr ? std::nullopt : std::optional<Ints>(Bounded(*list));
}

double NodeImport::NumberFrom(const std::string& attr, int input, double fallback) {
  return has(input) ? StaticNumber(input, fallback) : Float(attr, fallback);
}

int64_t NodeImport::AxisOf(int64_t axis, int rank) {
  if (!ok()) return 0;
  const auto normal = NormalizeAxis(axis, rank);
  if (normal.ok()) return *normal;
  FailWith(normal.status());
  return 0;
}

void NodeImport::FailWith(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::Status NodeImport::Finish() {
  HT_RETURN_IF_ERROR(status_);
  HT_RETURN_IF_ERROR(b.status());
  for (const auto& [name, value] : node.attributes.entries()) {
    if (!covered_.contains(name)) {
      return Unimplemented("attribute ", ir::Quote(name.substr(0, 80)), " = ",
                           ir::FormatAttrBriefly(value), " is not covered");
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::onnx
