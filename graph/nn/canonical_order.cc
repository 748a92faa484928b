#include "halftone/graph/nn/canonical_order.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "halftone/core/check.h"

namespace halftone::nn::internal {
namespace {

using ir::Node;

// What a node's name was made of: an op's name may carry a number that made it unique.
std::string NameHint(const Node& node) {
  const std::string& op = node.op().name;
  const std::string& name = node.name();
  if (name.size() <= op.size() + 1 || name.compare(0, op.size(), op) != 0) return name;
  if (name[op.size()] != '_') return name;
  const bool numbered = std::all_of(name.begin() + static_cast<int64_t>(op.size()) + 1, name.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
  return numbered ? op : name;
}

class Ordering {
 public:
  explicit Ordering(const ir::Graph& traced) : traced_(traced) {}

  std::vector<const Node*> Run() {
    for (const Node* input : traced_.inputs()) Place(input);
    for (const ir::Output& output : traced_.outputs()) {
      if (!output.value.node->op().has_side_effect) Place(output.value.node);
    }
    std::vector<Node*> commits = traced_.commits();
    std::sort(commits.begin(), commits.end(), [](const Node* a, const Node* b) {
      return a->attrs().GetString("variable") < b->attrs().GetString("variable");
    });
    for (const auto& node : traced_.nodes()) {
      if (!node->op().has_side_effect) continue;
      if (node->op().name == "commit") {
        for (const Node* commit : std::exchange(commits, {})) Place(commit);
      } else {
        Place(node.get());
      }
    }
    for (const auto& node : traced_.nodes()) Place(node.get());
    return std::move(order_);
  }

 private:
  // `root` after all it needs, depth first; the stack is explicit, since a chain may be as long as
  // the graph.
  void Place(const Node* root) {
    if (!placed_.emplace(root, true).second) return;
    std::vector<std::pair<const Node*, int>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node->num_inputs()) {
        order_.push_back(node);
        stack.pop_back();
        continue;
      }
      const Node* input = node->input(next++).node;
      if (placed_.emplace(input, true).second) stack.emplace_back(input, 0);
    }
  }

  const ir::Graph& traced_;
  std::unordered_map<const Node*, bool> placed_;
  std::vector<const Node*> order_;
};

// Random nodes of each scope in `nodes`.
std::map<std::string, std::vector<const Node*>> RandomNodes(const std::vector<const Node*>& nodes) {
  std::map<std::string, std::vector<const Node*>> random;
  for (const Node* node : nodes) {
    if (node->op().is_random && node->attrs().Has("seed")) random[node->scope()].push_back(node);
  }
  return random;
}

// The seed of each random node: a scope's seeds in the order they were drawn, given out in `order`.
std::unordered_map<const Node*, int64_t> Seeds(const std::vector<const Node*>& order) {
  std::unordered_map<const Node*, int64_t> seeds;
  for (const auto& [scope, nodes] : RandomNodes(order)) {
    std::vector<const Node*> drawn = nodes;
    std::sort(drawn.begin(), drawn.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    for (size_t i = 0; i < nodes.size(); ++i) seeds[nodes[i]] = drawn[i]->attrs().GetInt("seed");
  }
  return seeds;
}

}  // namespace

std::unique_ptr<ir::Graph> InCanonicalOrder(const ir::Graph& traced) {
  const std::vector<const Node*> order = Ordering(traced).Run();
  const std::unordered_map<const Node*, int64_t> seeds = Seeds(order);
  auto graph = std::make_unique<ir::Graph>(traced.name());
  std::unordered_map<const Node*, Node*> copies;
  const auto mapped = [&copies](ir::Value v) { return ir::Value{copies.at(v.node), v.index}; };
  for (const Node* node : order) {
    if (node->op().name == "variable") {
      const ir::Variable* variable = traced.FindVariable(node->attrs().GetString("name"));
      HT_CHECK(variable != nullptr && graph->AddVariable(*variable).ok(),
               "a variable has one node");
    }
    std::vector<ir::Value> inputs;
    for (const ir::Value input : node->inputs()) inputs.push_back(mapped(input));
    std::vector<ir::ValueType> types;
    for (int i = 0; i < node->num_outputs(); ++i) types.push_back(node->output_type(i));
    Node* copy = graph->AddNode(&node->op(), std::move(inputs), node->attrs(), std::move(types),
                                NameHint(*node), node->scope());
    copy->location = node->location;
    copy->provenance = node->provenance;
    copy->amp_request = node->amp_request;
    copy->recompute = node->recompute;
    const auto seed = seeds.find(node);
    if (seed != seeds.end()) copy->mutable_attrs().Set("seed", seed->second);
    copies[node] = copy;
  }
  for (const ir::Output& output : traced.outputs()) {
    graph->outputs().push_back({output.name, mapped(output.value)});
  }
  return graph;
}

}  // namespace halftone::nn::internal
