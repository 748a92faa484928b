#include "halftone/graph/nn/parameter_split.h"

#include <algorithm>
#include <set>

#include "halftone/passes/amp/policy_match.h"

namespace halftone::nn {
namespace {

// Some names, for a message.
std::string SomeOf(const NamedParameters& named) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(named.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + named[i].first;
  }
  return named.empty() ? "none" : named.size() > kShown ? text + ", ..." : text;
}

}  // namespace

ParameterSplit split_parameters(
    const NamedParameters& named,
    const std::function<bool(const std::string& name, const Parameter& parameter)>& matches) {
  std::set<const runtime::VariableStorage*> matching, seen;
  for (const auto& [name, parameter] : named) {
    if (parameter.defined() && matches(name, parameter)) matching.insert(parameter.storage().get());
  }
  ParameterSplit split;
  for (const auto& [name, parameter] : named) {
    if (!parameter.defined() || !seen.insert(parameter.storage().get()).second) continue;
    const bool is_matching = matching.count(parameter.storage().get()) != 0;
    (is_matching ? split.matching : split.rest).push_back(parameter.storage());
  }
  return split;
}

absl::StatusOr<ParameterSplit> split_parameters(const NamedParameters& named,
                                                const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto fits = [&pattern](const auto& entry) {
      return amp::GlobMatches(pattern, entry.first);
    };
    if (std::any_of(named.begin(), named.end(), fits)) continue;
    return InvalidArgument("split_parameters: \"", pattern,
                           "\" matches no parameter; known: ", SomeOf(named));
  }
  return split_parameters(named, [&patterns](const std::string& name, const Parameter&) {
    return std::any_of(patterns.begin(), patterns.end(), [&name](const std::string& pattern) {
      return amp::GlobMatches(pattern, name);
    });
  });
}

}  // namespace halftone::nn
