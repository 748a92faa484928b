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
  for (const auto& node : graph.nodes()) {
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
  }
  return found;
}

}  // namespace halftone::passes
