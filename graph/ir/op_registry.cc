// The registry and the checks a record must pass to enter it.
#include <set>

#include "halftone/core/check.h"
#include "halftone/graph/ir/op.h"

namespace halftone::ir {
namespace {

bool IsSnakeCase(const std::string& name) {
  if (name.empty() || name.size() > 64 || name[0] < 'a' || name[0] > 'z') return false;
  for (char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!ok) return false;
  }
  return true;
}

absl::Status CheckInputSpecs(const OpRecord& op) {
  std::set<std::string> names;
  bool seen_optional = false;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const InputSpec& input = op.inputs[i];
    if (!IsSnakeCase(input.name) || !names.insert(input.name).second) {
      return InvalidArgument("op ", op.name, ": input ", i, " is called \"", input.name,
                             "\"; expected a unique snake_case name");
    }
    if (input.variadic && i + 1 != op.inputs.size()) {
      return InvalidArgument("op ", op.name, ": variadic input ", input.name, " is not the last");
    }
    if (seen_optional && !input.optional && !input.variadic) {
      return InvalidArgument("op ", op.name, ": input ", input.name,
                             " follows an optional one; only trailing inputs may be optional");
    }
    seen_optional |= input.optional;
  }
  return absl::OkStatus();
}

absl::Status CheckAttrSpecs(const OpRecord& op) {
  std::set<std::string> names;
  for (const AttrSpec& attr : op.attrs) {
    if (!IsSnakeCase(attr.name) || !names.insert(attr.name).second) {
      return InvalidArgument("op ", op.name, ": attribute \"", attr.name,
                             "\"; expected a unique snake_case name");
    }
    if (attr.default_value.has_value() && TypeOf(*attr.default_value) != attr.type) {
      return InvalidArgument("op ", op.name, ": default of attribute ", attr.name, " is ",
                             Name(TypeOf(*attr.default_value)), "; expected ", Name(attr.type));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPorts(const OpRecord& op, const char* trait, const std::vector<int>& ports,
                        size_t count) {
  for (int port : ports) {
    const bool in_range = port >= 0 && (static_cast<size_t>(port) < count || op.is_variadic());
    if (!in_range) {
      return InvalidArgument("op ", op.name, ": ", trait, " names port ", port, "; expected 0..",
                             static_cast<int64_t>(count) - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTraits(const OpRecord& op) {
  const size_t inputs = op.inputs.size(), outputs = op.outputs.size();
  HT_RETURN_IF_ERROR(CheckPorts(op, "amp.keep_f32_inputs", op.amp.keep_f32_inputs, inputs));
  HT_RETURN_IF_ERROR(CheckPorts(op, "amp.keep_f32_outputs", op.amp.keep_f32_outputs, outputs));
  HT_RETURN_IF_ERROR(CheckPorts(op, "amp.widens_inputs", op.amp.widens_inputs, inputs));
  HT_RETURN_IF_ERROR(CheckPorts(op, "amp.same_dtype_inputs", op.amp.same_dtype_inputs, inputs));
  HT_RETURN_IF_ERROR(
      CheckPorts(op, "layout.channels_last_inputs", op.layout.channels_last_inputs, inputs));
  HT_RETURN_IF_ERROR(
      CheckPorts(op, "layout.channels_last_outputs", op.layout.channels_last_outputs, outputs));
  for (const InPlacePair& pair : op.in_place) {
    HT_RETURN_IF_ERROR(CheckPorts(op, "in_place input", {pair.input}, inputs));
    HT_RETURN_IF_ERROR(CheckPorts(op, "in_place output", {pair.output}, outputs));
  }
  return absl::OkStatus();
}

}  // namespace

OpRegistry& OpRegistry::Global() {
  static OpRegistry* const registry = [] {
    auto* made = new OpRegistry;
    RegisterBuiltinOps(*made);
    return made;
  }();
  return *registry;
}

absl::Status OpRegistry::Register(OpRecord record) {
  if (!IsSnakeCase(record.name) || record.name == "graph" || record.name == "return") {
    return InvalidArgument("op \"", record.name, "\": expected a snake_case name");
  }
  if (ops_.count(record.name) != 0) {
    return absl::AlreadyExistsError(Concat("op ", record.name, " is registered already"));
  }
  if (!record.infer) return InvalidArgument("op ", record.name, ": has no shape inference");
  if (record.amp.reason.empty()) {
    return InvalidArgument("op ", record.name, ": its AMP trait gives no reason");
  }
  HT_RETURN_IF_ERROR(CheckInputSpecs(record));
  HT_RETURN_IF_ERROR(CheckAttrSpecs(record));
  HT_RETURN_IF_ERROR(CheckTraits(record));
  const std::string name = record.name;
  ops_[name] = std::make_unique<OpRecord>(std::move(record));
  return absl::OkStatus();
}

const OpRecord* OpRegistry::Find(const std::string& name) const {
  auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second.get();
}

std::vector<const OpRecord*> OpRegistry::All() const {
  std::vector<const OpRecord*> all;
  for (const auto& [name, record] : ops_) all.push_back(record.get());
  return all;
}

absl::Status RegisterOp(OpRecord record) {
  return OpRegistry::Global().Register(std::move(record));
}

}  // namespace halftone::ir
