#include "halftone/graph/runtime/scaled_values.h"

#include <algorithm>
#include <functional>

#include "halftone/passes/memory/group_updates.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::runtime {

ScaledValues::ScaledValues(const ir::Graph& graph, const std::string& scale_variable) {
  for (const auto& node : graph.nodes()) {
    const bool is_scale =
        passes::IsOp(*node, "variable") && node->attrs().GetString("name") == scale_variable;
    const int power = is_scale ? 1 : PowerOf(*node);
    if (power == 0) continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (!IsFloat(node->output_type(i).dtype)) continue;
      (power > 0 ? scaled_ : inverse_).emplace(node->id(), i);
    }
  }
}

int ScaledValues::Find(ir::Value value) const {
  const Key key{value.node->id(), value.index};
  return scaled_.count(key) != 0 ? 1 : inverse_.count(key) != 0 ? -1 : 0;
}

// Everything between the seed and a gradient is linear in the seed; what reads gradients to update
// something unscales by itself.
int ScaledValues::PowerOf(const ir::Node& node) const {
  if (passes::IsUpdate(node) || passes::IsOp(node, "grad_stats") ||
      passes::IsOp(node, "grad_squares") || passes::IsOp(node, "loss_scale_update"))
    return 0;
  int sum = 0, largest = 0;
  for (const ir::Value& input : node.inputs()) {
    const int power = Find(input);
    sum += power;
    if (power != 0) largest = power;
  }
  if (passes::IsOp(node, "mul")) return sum;
  if (passes::IsOp(node, "div")) return Find(node.input(0)) - Find(node.input(1));
  if (passes::IsOp(node, "reciprocal")) return -sum;
  return largest;
}

std::vector<ir::Value> ScaledValues::LastBefore(ir::Value value) const {
  std::vector<ir::Value> found;
  std::set<Key> seen;
  const std::function<void(ir::Value)> visit = [&](ir::Value at) {
    if (!seen.emplace(at.node->id(), at.index).second) return;
    if (Has(at)) {
      if (!passes::IsSource(*at.node)) found.push_back(at);
      return;
    }
    if (Find(at) < 0) return;  // what unscales: made of the scale, but of no gradient
    for (const ir::Value& input : at.node->inputs()) visit(input);
  };
  visit(value);
  return found;
}

}  // namespace halftone::runtime
