#include "halftone/passes/amp/policy.h"

#include <sstream>

#include "halftone/core/io/file.h"

namespace halftone::amp {
namespace {

// The four lists under the word that opens a line and names the marker's attribute.
template <typename P>
auto Lists(P& policy) {
  return std::vector<std::pair<const char*, decltype(&policy.allow)>>{{"allow", &policy.allow},
                                                                      {"infer", &policy.infer},
                                                                      {"clear", &policy.clear},
                                                                      {"deny", &policy.deny}};
}

absl::Status SetBool(const std::string& key, const std::string& value, bool* out) {
  if (value != "true" && value != "false") {
    return InvalidArgument(key, " is \"", value, "\"; expected true or false");
  }
  *out = value == "true";
  return absl::OkStatus();
}

absl::Status SetDType(const std::string& value, std::optional<DType>* out) {
  std::optional<DType> dtype = ParseDType(value);
  if (value != "auto" && (!dtype || !IsLow(*dtype))) {
    return InvalidArgument("dtype is \"", value, "\"; expected f16, bf16 or auto");
  }
  *out = dtype;
  return absl::OkStatus();
}

absl::Status ParseLine(const std::string& line, Policy* policy) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string key, value, extra;
  if (!(words >> key)) return absl::OkStatus();
  if (!(words >> value)) return InvalidArgument("\"", key, "\" has no value");
  if (words >> extra) {
    return InvalidArgument("\"", extra, "\" after the value; expected one entry a line");
  }
  if (key == "dtype") return SetDType(value, &policy->dtype);
  if (key == "low_outputs") return SetBool(key, value, &policy->low_outputs);
  if (key == "trim") return SetBool(key, value, &policy->trim);
  for (auto& [name, list] : Lists(*policy)) {
    if (key == name) {
      list->push_back(value);
      return absl::OkStatus();
    }
  }
  return InvalidArgument("\"", key,
                         "\" is unknown; "
                         "expected dtype, allow, infer, clear, deny, low_outputs or trim");
}

}  // namespace

ir::Attributes Policy::ToMarker() const {
  HT_CHECK(dtype.has_value(), "the marker needs a dtype");
  ir::Attributes marker{{"dtype", *dtype}, {"low_outputs", low_outputs}, {"trim", trim}};
  for (const auto& [name, list] : Lists(*this)) marker.Set(name, *list);
  return marker;
}

Policy Policy::FromMarker(const ir::Node& marker) {
  Policy policy;
  policy.dtype = marker.attrs().GetDType("dtype");
  policy.low_outputs = marker.attrs().GetBool("low_outputs");
  policy.trim = marker.attrs().GetBool("trim");
  for (auto& [name, list] : Lists(policy)) {
    *list = marker.attrs().Get<std::vector<std::string>>(name);
  }
  return policy;
}

std::string Policy::ToString() const {
  std::string out;
  if (dtype) out += Concat("dtype ", Name(*dtype), "\n");
  for (const auto& [name, list] : Lists(*this)) {
    for (const std::string& entry : *list) out += Concat(name, " ", entry, "\n");
  }
  if (low_outputs) out += "low_outputs true\n";
  if (!trim) out += "trim false\n";
  return out;
}

absl::StatusOr<Policy> Policy::Parse(const std::string& text) {
  Policy policy;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    HT_RETURN_IF_ERROR(Annotate(ParseLine(line, &policy), Concat("line ", number, ": ")));
  }
  return policy;
}

absl::StatusOr<Policy> Policy::ReadFile(const std::string& path) {
  // Longer than any list of rules, short enough to be harmless.
  constexpr int64_t kMaxBytes = int64_t{1} << 20;
  HT_ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path, kMaxBytes));
  absl::StatusOr<Policy> policy = Parse(text);
  if (!policy.ok()) return Annotate(policy.status(), path + ": ");
  return policy;
}

}  // namespace halftone::amp
