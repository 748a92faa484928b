#include "halftone/graph/ir/infer.h"

#include <algorithm>

#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

const AttrSpec* FindSpec(const OpRecord& op, const std::string& name) {
  for (const AttrSpec& spec : op.attrs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

template <typename Specs>
std::string NamesOf(const Specs& specs) {
  std::string names;
  for (const auto& spec : specs) {
    if (!names.empty()) names += ", ";
    names += spec.name;
  }
  return names.empty() ? "none" : names;
}

bool IsUndefinedTensor(const AttrValue& value) {
  const Tensor* tensor = std::get_if<Tensor>(&value);
  return tensor != nullptr && !tensor->defined();
}

absl::Status CheckCount(const OpRecord& op, const std::string& label, size_t got) {
  size_t least = 0;
  bool variadic = false;
  for (const InputSpec& input : op.inputs) {
    variadic |= input.variadic;
    if (!input.optional && !input.variadic) ++least;
  }
  const size_t most = op.inputs.size();
  if (got >= least && (variadic || got <= most)) return absl::OkStatus();
  std::string expected = std::to_string(least);
  if (variadic) {
    expected += " or more";
  } else if (most != least) {
    expected += " to " + std::to_string(most);
  }
  return InvalidArgument(label, ": got ", got, got == 1 ? " input" : " inputs", "; expected ",
                         expected, " (", NamesOf(op.inputs), ")");
}

}  // namespace

absl::Status CompleteAttributes(const OpRecord& op, const std::string& label, Attributes& attrs) {
  for (const auto& [name, value] : attrs.entries()) {
    if (FindSpec(op, name) == nullptr) {
      return InvalidArgument(label, ": has no attribute ", Quote(name.substr(0, 80)), "; expected ",
                             NamesOf(op.attrs));
    }
  }
  for (const AttrSpec& spec : op.attrs) {
    const AttrValue* value = attrs.Find(spec.name);
    if (value == nullptr) {
      if (!spec.default_value.has_value()) {
        return InvalidArgument(label, ": attribute ", spec.name, " is absent; expected ",
                               Name(spec.type));
      }
      attrs.Set(spec.name, *spec.default_value);
      continue;
    }
    if (spec.type == AttrType::kFloat && TypeOf(*value) == AttrType::kInt) {
      attrs.Set(spec.name, static_cast<double>(std::get<int64_t>(*value)));
      continue;
    }
    if (TypeOf(*value) != spec.type || IsUndefinedTensor(*value)) {
      return InvalidArgument(label, ": attribute ", spec.name, " is ", Name(TypeOf(*value)), " ",
                             FormatAttrBriefly(*value), "; expected ", Name(spec.type));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueType>> InferTypes(const OpRecord& op, const std::string& label,
                                                  const std::vector<ValueType>& inputs,
                                                  const Attributes& attrs) {
  HT_RETURN_IF_ERROR(CheckCount(op, label, inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& spec = op.inputs[std::min(i, op.inputs.size() - 1)];
    if (!spec.dtypes.Contains(inputs[i].dtype)) {
      return InvalidArgument(label, ": input ", i, " (", spec.name, ") is ", inputs[i],
                             "; expected ", spec.dtypes.ToString());
    }
  }
  HT_ASSIGN_OR_RETURN(std::vector<ValueType> types, op.infer({label, inputs, attrs}));
  const bool variadic = op.is_variadic();
  if (types.size() != op.outputs.size() && !variadic) {
    return Internal(label, ": inference gives ", types.size(), " types; the record has ",
                    op.outputs.size(), " outputs");
  }
  return types;
}

}  // namespace halftone::ir
