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
  // Of a denied node: operands that have to be computed in f32 too. Without inputs: none.
  ir::AmpMagnified magnified = {};
};

// Whether `pattern` matches all of `text`; `*` any run, `?` one character.
bool GlobMatches(const std::string& pattern, const std::string& text);

// Errors: InvalidArgument for a condition on an op or an attribute that does not exist.
absl::Status CheckEntry(const std::string& entry);

// Up to five paths of nodes and names of ops that are nearest to `text`, for messages.
std::string NearNames(const std::string& text, const ir::Graph& graph);

// How messages show an entry of a policy: `deny "head/*"`.
std::string EntryText(ir::AmpClass amp_class, const std::string& entry);

// The classes of all nodes of `graph` under `policy` for `low`, by node id. `unmatched`, if given,
// gets the entries that are neither an op type nor match a node, with a note that has the nearest
// names. Errors: InvalidArgument for a condition on an attribute that the op does not have.
absl::StatusOr<std::map<int64_t, ClassChoice>> ClassifyNodes(
    const ir::Graph& graph, const Policy& policy, DType low,
    std::map<std::string, std::string>* unmatched = nullptr);

}  // namespace halftone::amp
