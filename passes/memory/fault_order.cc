#include "halftone/passes/memory/fault_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace halftone::passes {
namespace {

struct Check {
  int64_t extent;
  std::optional<int64_t> ignored;

  bool Covers(const Check& other) const {
    return extent <= other.extent && (!ignored.has_value() || ignored == other.ignored);
  }
};

Check CheckOf(const ir::Node& node) {
  Check check{node.op().index_extent(node), std::nullopt};
  if (node.attrs().Has("ignore_index")) check.ignored = node.attrs().GetInt("ignore_index");
  return check;
}

}  // namespace

std::set<const ir::Node*> NodesThatMayFaultFirst(const ir::Graph& graph) {
  std::set<const ir::Node*> found;
  std::map<std::pair<int64_t, int>, std::vector<Check>> done;
  std::map<const ir::Node*, int> place_of;
  int last = -1;
  for (const auto& node : graph.nodes()) {
    place_of.emplace(node.get(), static_cast<int>(place_of.size()));
    if (!node->op().can_fault()) continue;
    const ir::Value indices = node->input(1);
    std::vector<Check>& checks = done[{indices.node->id(), indices.index}];
    const Check check = CheckOf(*node);
    if (std::any_of(checks.begin(), checks.end(),
                    [&check](const Check& earlier) { return earlier.Covers(check); })) {
      continue;
    }
    checks.push_back(check);
    found.insert(node.get());
    last = place_of[node.get()];
  }
  // A wait that hears of a failure elsewhere ends the step, too. Behind the first that was begun behind
  // all that can fault here none hears anything new.
  for (const auto& node : graph.nodes()) {
    if (!node->op().communicates || node->num_inputs() == 0) continue;
    const ir::Node* const start = node->input(0).node;
    if (!start->op().communicates) continue;
    found.insert(node.get());
    if (place_of[start] > last) break;
  }
  return found;
}

}  // namespace halftone::passes
