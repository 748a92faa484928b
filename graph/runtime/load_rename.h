// Renaming the entries of a saved state, for those who load one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::runtime {

// The state under the names that `options` gives, and the patterns that fit none of its names.
// Errors: InvalidArgument (a pattern that means nothing; two names that become one although their
// values differ).
absl::StatusOr<StateDict> Renamed(const StateDict& state, const LoadOptions& options,
                                  std::vector<std::string>* unused);

// Gives `value` in `state` the name `to`, where it replaces an equal one. Errors: InvalidArgument
// naming `from` and the name `origins` has for `to`, if that has another value.
absl::Status PutRenamed(const std::string& from, const std::string& to, const Tensor& value,
                        StateDict& state, std::map<std::string, std::string>& origins);

// "a, b and 968 more": a state that was meant for another graph has many names to say.
std::string JoinSome(const std::vector<std::string>& parts, const char* between);

}  // namespace halftone::runtime
