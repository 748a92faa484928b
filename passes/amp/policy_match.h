// Applies a policy's entries to the nodes of a graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/passes/amp/policy.h"

namespace halftone::amp {

// The class of one node and who said so.
struct ClassChoice {
  ir::AmpClass amp_class = ir::AmpClass::kDeny;
  std::string why;      // "policy: deny head/*", "the user keeps it f32", or the trait's reason
  bool forced = false;  // the user's wish: the cost trim leaves it alone
};

// Whether `pattern` matches all of `text`; `*` any run, `?` one character.
bool GlobMatches(const std::string& pattern, const std::string& text);

// The classes of all nodes of `graph` under `policy` for `low`, by node id. Errors: InvalidArgument
// for an entry that is neither an op type nor matches a node, with the nearest names.
absl::StatusOr<std::map<int64_t, ClassChoice>> ClassifyNodes(const ir::Graph& graph,
                                                             const Policy& policy, DType low);

}  // namespace halftone::amp
