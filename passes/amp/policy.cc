#include "halftone/passes/amp/policy.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "halftone/core/io/file.h"
#include "halftone/passes/amp/policy_match.h"
#include "halftone/passes/amp/policy_text.h"

namespace halftone::amp {
namespace {

constexpr std::pair<Level, const char*> kLevels[] = {{Level::kBalanced, "balanced"},
                                                     {Level::kConservative, "conservative"},
                                                     {Level::kOnlyMatmul, "only_matmul"},
                                                     {Level::kForce, "force"}};

// The four lists under the word that opens a line and names the marker's attribute.
template <typename P>
auto Lists(P& policy) {
  return std::vector<std::pair<const char*, decltype(&policy.allow)>>{{"allow", &policy.allow},
                                                                      {"infer", &policy.infer},
                                                                      {"clear", &policy.clear},
                                                                      {"deny", &policy.deny}};
}

absl::Status CheckOp(const std::string& list, const std::string& op) {
  if (ir::OpRegistry::Global().Find(op) != nullptr) return absl::OkStatus();
  return InvalidArgument("amp policy: ", list, ": no op is called \"", op, "\"");
}

}  // namespace

const char* Name(Level level) {
  return std::find_if(std::begin(kLevels), std::end(kLevels),
                      [level](const auto& known) { return known.first == level; })
      ->second;
}

std::optional<Level> ParseLevel(const std::string& name) {
  for (const auto& [level, known] : kLevels) {
    if (name == known) return level;
  }
  return std::nullopt;
}

std::optional<DType> ParsePolicyDType(const std::string& name) {
  const std::optional<DType> dtype = name == "f8" ? DType::kF8 : ParseDType(name);
  return dtype && IsPolicyDType(*dtype) ? dtype : std::nullopt;
}

absl::StatusOr<Policy> Policy::FromLists(const OpLists& lists, std::optional<DType> dtype) {
  Policy policy{.dtype = dtype, .allow = lists.target_dtype_ops, .deny = lists.fp32_ops};
  std::map<std::string, std::string> list_of;
  const auto claim = [&list_of](const std::string& op, const std::string& list) -> absl::Status {
    HT_RETURN_IF_ERROR(CheckOp(list, op));
    const auto [known, is_new] = list_of.emplace(op, list);
    if (is_new || known->second == list) return absl::OkStatus();
    return InvalidArgument("amp policy: \"", op, "\" is in ", known->second, " and in ", list);
  };
  for (const std::string& op : lists.target_dtype_ops) {
    HT_RETURN_IF_ERROR(claim(op, "target_dtype_ops"));
  }
  for (const std::string& op : lists.fp32_ops) HT_RETURN_IF_ERROR(claim(op, "fp32_ops"));
  for (const OpLists::Conditional& rule : lists.conditional_fp32_ops) {
    HT_RETURN_IF_ERROR(claim(rule.op, "conditional_fp32_ops"));
    for (const std::string& value : rule.values) {
      policy.deny.push_back(Concat(rule.op, "[", rule.attribute, "=", value, "]"));
      HT_RETURN_IF_ERROR(CheckEntry(policy.deny.back()));
    }
  }
  policy.deny.insert(policy.deny.end(), lists.excluded_names.begin(), lists.excluded_names.end());
  return policy;
}

ir::Attributes Policy::ToMarker() const {
  HT_CHECK(dtype.has_value(), "the marker needs a dtype");
  ir::Attributes marker{{"dtype", *dtype}, {"low_outputs", low_outputs}, {"trim", trim}};
  marker.Set("level", std::string(Name(level)));
  for (const auto& [name, list] : Lists(*this)) marker.Set(name, *list);
  return marker;
}

Policy Policy::FromMarker(const ir::Node& marker) {
  Policy policy;
  policy.dtype = marker.attrs().GetDType("dtype");
  policy.low_outputs = marker.attrs().GetBool("low_outputs");
  policy.trim = marker.attrs().GetBool("trim");
  policy.level = ParseLevel(marker.attrs().GetString("level")).value_or(Level::kBalanced);
  for (auto& [name, list] : Lists(policy)) {
    *list = marker.attrs().Get<std::vector<std::string>>(name);
  }
  return policy;
}

std::string Policy::ToString() const {
  std::string out = "version: 1\n";
  if (dtype) out += Concat("dtype: \"", Name(*dtype), "\"\n");
  std::string name = Name(level);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (level != Level::kBalanced) out += Concat("level: ", name, "\n");
  for (const auto& [list, entries] : Lists(*this)) {
    for (const std::string& entry : *entries) out += Concat(list, ": ", Quoted(entry), "\n");
  }
  if (low_outputs) out += "low_outputs: true\n";
  if (!trim) out += "no_trim: true\n";
  return out;
}

absl::StatusOr<Policy> Policy::Parse(const std::string& text) { return ParsePolicyText(text); }

absl::StatusOr<Policy> Policy::ReadFile(const std::string& path) {
  // Longer than any list of rules, short enough to be harmless.
  constexpr int64_t kMaxBytes = int64_t{1} << 20;
  HT_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path, kMaxBytes));
  absl::StatusOr<Policy> policy = Parse(text);
  if (!policy.ok()) return Annotate(policy.status(), path + ": ");
  return policy;
}

absl::Status Policy::WriteFile(const std::string& path) const {
  return io::WriteFileAtomically(path, ToString());
}

}  // namespace halftone::amp
