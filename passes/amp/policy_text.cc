#include "halftone/passes/amp/policy_text.h"

#include <cctype>
#include <map>

#include "halftone/core/printable.h"
#include "halftone/passes/amp/policy_match.h"

namespace halftone::amp {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  absl::StatusOr<Policy> Run() {
    absl::Status status = ReadFields();
    if (!status.ok()) return Annotate(status, Concat("line ", line_, ": "));
    return std::move(policy_);
  }

 private:
  absl::Status ReadFields() {
    for (SkipBlank(); at_ < text_.size(); SkipBlank()) {
      HT_RETURN_IF_ERROR(ReadField());
      HT_RETURN_IF_ERROR(EndField());
    }
    return absl::OkStatus();
  }

  // Spaces, comments and the ends of lines.
  void SkipBlank() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size() || std::isspace(static_cast<unsigned char>(text_[at_])) == 0) return;
      line_ += text_[at_] == '\n';
    }
  }
  void SkipSpaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool Is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool AtEndOfLine() const { return at_ == text_.size() || Is('\n') || Is('#'); }

  absl::Status ReadField() {
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string field = text_.substr(start, at_ - start);
    if (field.empty()) {
      return InvalidArgument("got '", Printable(text_.substr(at_, 1)), "'; expected a field");
    }
    SkipSpaces();
    if (Is(':')) {
      ++at_;
      SkipBlank();
    }
    if (!Is('[')) {
      if (AtEndOfLine()) return InvalidArgument("\"", field, "\" has no value");
      HT_ASSIGN_OR_RETURN(const std::string value, ReadValue());
      return Set(field, value);
    }
    for (++at_, SkipBlank(); !Is(']'); SkipBlank()) {
      HT_ASSIGN_OR_RETURN(const std::string value, ReadString());
      HT_RETURN_IF_ERROR(Set(field, value));
      SkipBlank();
      if (Is(','))
        ++at_;
      else if (!Is(']'))
        return InvalidArgument("expected ',' or ']' in the list of ", field);
    }
    ++at_;
    return absl::OkStatus();
  }

  absl::Status EndField() {
    SkipSpaces();
    if (Is(',') || Is(';')) ++at_;
    SkipSpaces();
    if (AtEndOfLine()) return absl::OkStatus();
    HT_ASSIGN_OR_RETURN(const std::string more, ReadValue());
    return InvalidArgument("\"", Printable(more), "\" after the value; expected one entry a line");
  }

  // In quotes, or a word.
  absl::StatusOr<std::string> ReadValue() {
    if (Is('"') || Is('\'')) return ReadString();
    const size_t start = at_;
    while (!AtEndOfLine() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0) ++at_;
    return text_.substr(start, at_ - start);
  }

  absl::StatusOr<std::string> ReadString() {
    if (!Is('"') && !Is('\'')) return InvalidArgument("expected a string in quotes");
    const char quote = text_[at_++];
    std::string value;
    for (; !Is(quote); ++at_) {
      if (at_ == text_.size() || Is('\n')) return InvalidArgument("a string without its end");
      if (Is('\\') && ++at_ == text_.size()) return InvalidArgument("a string without its end");
      value += text_[at_];
    }
    ++at_;
    return value;
  }

  absl::Status Set(const std::string& field, const std::string& value) {
    if (field == "version") {
      if (value == "1") return absl::OkStatus();
      return InvalidArgument("version is \"", Printable(value), "\"; expected 1");
    }
    if (field == "dtype") return SetDType(value);
    if (field == "level") return SetLevel(value);
    if (field == "low_outputs") return SetBool(field, value, &policy_.low_outputs);
    if (field == "trim") return SetBool(field, value, &policy_.trim);
    if (field == "no_trim") {
      HT_RETURN_IF_ERROR(SetBool(field, value, &policy_.trim));
      policy_.trim = !policy_.trim;
      return absl::OkStatus();
    }
    if (field == "allow") return Add(ir::AmpClass::kAllow, value, &policy_.allow);
    if (field == "infer") return Add(ir::AmpClass::kInfer, value, &policy_.infer);
    if (field == "clear") return Add(ir::AmpClass::kClear, value, &policy_.clear);
    if (field == "deny") return Add(ir::AmpClass::kDeny, value, &policy_.deny);
    return InvalidArgument("\"", Printable(field), "\" is unknown; expected dtype, level, allow, ",
                           "infer, clear, deny, low_outputs or trim");
  }

  static absl::Status SetBool(const std::string& field, const std::string& value, bool* out) {
    if (value != "true" && value != "false") {
      return InvalidArgument(field, " is \"", Printable(value), "\"; expected true or false");
    }
    *out = value == "true";
    return absl::OkStatus();
  }

  absl::Status SetDType(const std::string& value) {
    const std::optional<DType> dtype = ParsePolicyDType(value);
    if (value != "auto" && !dtype) {
      return InvalidArgument("dtype is \"", Printable(value), "\"; expected f16, bf16, f8 or auto");
    }
    policy_.dtype = dtype;
    return absl::OkStatus();
  }

  absl::Status SetLevel(std::string value) {
    for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::optional<Level> level = ParseLevel(value);
    if (!level) {
      return InvalidArgument("level is \"", Printable(value),
                             "\"; expected balanced, conservative, only_matmul or force");
    }
    policy_.level = *level;
    return absl::OkStatus();
  }

  absl::Status Add(ir::AmpClass list, const std::string& entry, std::vector<std::string>* entries) {
    if (entry.empty() || entry.size() > kMaxEntry) {
      return InvalidArgument("an entry of ", Name(list), " has ", entry.size(),
                             " bytes; expected 1 to ", kMaxEntry);
    }
    HT_RETURN_IF_ERROR(CheckEntry(entry));
    const auto [known, is_new] = lists_.emplace(entry, std::make_pair(list, line_));
    if (!is_new && known->second.first != list) {
      return InvalidArgument(Printable(EntryText(list, entry)), ": line ", known->second.second,
                             " has it under ", Name(known->second.first));
    }
    if (is_new) entries->push_back(entry);
    return absl::OkStatus();
  }

  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1;
  Policy policy_;
  std::map<std::string, std::pair<ir::AmpClass, int>> lists_;  // of each entry: its list, its line
};

}  // namespace

absl::StatusOr<Policy> ParsePolicyText(const std::string& text) { return Parser(text).Run(); }

std::string Quoted(const std::string& entry) {
  std::string out = "\"";
  for (char c : entry) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace halftone::amp
