#include "halftone/graph/runtime/load_rename.h"

#include <cctype>
#include <optional>
#include <string_view>

namespace halftone::runtime {
namespace {

constexpr char kAnyText = '*';

bool IsPattern(const std::string& text) { return text.find(kAnyText) != text.npos; }

absl::Status CheckRename(const std::string& from, const std::string& to) {
  const bool one_each = from.find(kAnyText) == from.rfind(kAnyText) &&
                        to.find(kAnyText) == to.rfind(kAnyText) &&
                        (IsPattern(from) == IsPattern(to) || to.empty());
  if (!from.empty() && one_each) return absl::OkStatus();
  return InvalidArgument("load_state_dict: rename \"", from, "\" to \"", to,
                         "\": expected a name, or one '*' on both sides (a new name may be empty)");
}

// What `name` becomes by one pattern; nullopt if that does not fit.
std::optional<std::string> Replaced(const std::string& name, const std::string& from,
                                    const std::string& to) {
  const size_t star = from.find(kAnyText);
  if (star == from.npos) return name == from ? std::optional(to) : std::nullopt;
  const size_t after = from.size() - star - 1;  // length of what follows the star
  if (name.size() < star + after || name.compare(0, star, from, 0, star) != 0 ||
      name.compare(name.size() - after, after, from, star + 1, after) != 0) {
    return std::nullopt;
  }
  if (to.empty()) return to;
  std::string renamed = to;
  return renamed.replace(to.find(kAnyText), 1, name.substr(star, name.size() - star - after));
}

// A name as the state of a parameter that an optimizer keeps: "optimizer0." + parameter + slot.
struct Parts {
  std::string before, parameter, after;
};

// `name` without the digits that follow `word`, or nullopt if it does not begin so.
std::optional<size_t> EndOfNumbered(const std::string& name, std::string_view word) {
  size_t end = word.size();
  if (name.compare(0, end, word) != 0) return std::nullopt;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  if (end == word.size() || end >= name.size() || name[end] != '.') return std::nullopt;
  return end;
}

// Splits a slot around its parameter, which the state must have too; anything else is a name of its
// own.
Parts Split(const std::string& name, const StateDict& state) {
  const std::optional<size_t> end = EndOfNumbered(name, "optimizer");
  const size_t last = name.rfind('.');
  if (end.has_value() && last > *end) {
    const std::string parameter = name.substr(*end + 1, last - *end - 1);
    if (state.count(parameter) != 0)
      return {name.substr(0, *end + 1), parameter, name.substr(last)};
  }
  return {"", name, ""};
}

// State of the graph itself, which has no name that a user chose: no pattern touches it.
bool IsOfTheGraph(const std::string& name) {
  if (name == "run_count") return true;
  for (const char* owner : {"optimizer", "scaler"}) {
    const std::optional<size_t> end = EndOfNumbered(name, owner);
    if (end.has_value() && name.find('.', *end + 1) == name.npos) return true;
  }
  return false;
}

}  // namespace

std::string JoinSome(const std::vector<std::string>& parts, const char* between) {
  constexpr size_t kShown = 32;
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : between) + parts[i];
  }
  if (parts.size() > kShown) text += Concat(between, "and ", parts.size() - kShown, " more");
  return text;
}

absl::Status PutRenamed(const std::string& from, const std::string& to, const Tensor& value,
                        StateDict& state, std::map<std::string, std::string>& origins) {
  const auto [at, is_new] = state.emplace(to, value);
  if (!is_new && !(at->second.defined() && value.defined() && BitEqual(at->second, value))) {
    return InvalidArgument("load_state_dict: \"", origins[to], "\" and \"", from,
                           "\" of the state both become \"", to, "\", with different values");
  }
  origins.emplace(to, from);
  return absl::OkStatus();
}

absl::StatusOr<StateDict> Renamed(const StateDict& state, const LoadOptions& options,
                                  std::vector<std::string>* unused) {
  for (const auto& [from, to] : options.rename) HT_RETURN_IF_ERROR(CheckRename(from, to));
  std::vector<bool> used(options.rename.size(), false);
  const auto rename = [&](std::string name) {
    for (size_t i = 0; i < used.size(); ++i) {
      const auto& [from, to] = options.rename[i];
      if (const std::optional<std::string> renamed = Replaced(name, from, to)) {
        used[i] = true;
        name = *renamed;
        break;
      }
    }
    return options.rename_with && !name.empty() ? options.rename_with(name) : name;
  };
  StateDict result;
  std::map<std::string, std::string> origins;
  for (const auto& [name, value] : state) {
    const Parts parts = Split(name, state);
    const bool fixed = parts.before.empty() && IsOfTheGraph(name);
    const std::string renamed = fixed ? name : rename(parts.parameter);
    if (renamed.empty()) continue;
    HT_RETURN_IF_ERROR(
        PutRenamed(name, parts.before + renamed + parts.after, value, result, origins));
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) unused->push_back(options.rename[i].first);
  }
  return result;
}

}  // namespace halftone::runtime
