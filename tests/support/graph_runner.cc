#include "halftone/tests/support/graph_runner.h"

#include <algorithm>
#include <set>

#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

Tensor RandomFeed(const std::string& name, const ir::ValueType& type, const FeedRange& range,
                  uint64_t seed) {
  const uint64_t stream = HashName(name.data(), name.size()) + seed;
  if (IsFloat(type.dtype)) return RandomTensor(type.dtype, type.shape, stream, range.lo, range.hi);
  return RandomTensor(type.dtype, type.shape, stream, static_cast<double>(range.ints_lo),
                      static_cast<double>(range.ints_hi) + 1);
}

std::set<const ir::Node*> Needed(const ir::Graph& graph) {
  std::set<const ir::Node*> needed;
  for (const ir::Output& output : graph.outputs()) needed.insert(output.value.node);
  for (const ir::Node* commit : graph.commits()) needed.insert(commit);
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
    if (!needed.contains(it->get())) continue;
    for (ir::Value v : (*it)->inputs()) needed.insert(v.node);
  }
  return needed;
}

absl::StatusOr<Tensor> Find(const std::map<std::string, Tensor>& feeds, const std::string& name) {
  const auto found = feeds.find(name);
  if (found == feeds.end()) return NotFound("no feed for \"", name, "\"");
  return found->second;
}

absl::StatusOr<std::vector<Tensor>> RunNode(const ir::Node& node, const GraphFeeds& feeds,
                                            const std::vector<Tensor>& inputs,
                                            const ir::Evaluator& evaluator) {
  const std::string& op = node.op().name;
  if (op == "input" || op == "variable") {
    HT_ASSIGN_OR_RETURN(Tensor feed, Find(op == "input" ? feeds.inputs : feeds.variables,
                                          node.attrs().GetString("name")));
    return std::vector<Tensor>{feed};
  }
  if (op == "constant") return std::vector<Tensor>{node.attrs().Get<Tensor>("value")};
  if (op == "loss_seed") {
    return std::vector<Tensor>{Tensor::Full(node.output_type().dtype, node.output_type().shape, 1)};
  }
  if (node.op().is_marker) return Unimplemented(node.Label(), ": a marker cannot run");
  return evaluator.Evaluate(node, inputs);
}

}  // namespace

GraphFeeds RandomFeeds(const ir::Graph& graph, const FeedRange& range, uint64_t seed) {
  GraphFeeds feeds;
  for (const ir::Node* input : graph.inputs()) {
    const std::string& name = input->attrs().GetString("name");
    feeds.inputs[name] = RandomFeed("input " + name, input->output_type(), range, seed);
  }
  for (const ir::Variable& variable : graph.variables()) {
    feeds.variables[variable.name] =
        RandomFeed("variable " + variable.name, variable.type, range, seed);
  }
  return feeds;
}

absl::StatusOr<GraphResults> RunGraph(const ir::Graph& graph, const GraphFeeds& feeds,
                                      const ir::Evaluator& evaluator) {
  const std::set<const ir::Node*> needed = Needed(graph);
  std::map<const ir::Node*, std::vector<Tensor>> values;
  GraphResults results;
  for (const auto& node : graph.nodes()) {
    if (!needed.contains(node.get())) continue;
    std::vector<Tensor> inputs;
    for (ir::Value v : node->inputs()) inputs.push_back(values.at(v.node)[v.index]);
    if (node->op().name == "commit") {
      results.commits[node->attrs().GetString("variable")] = inputs[0];
      continue;
    }
    absl::StatusOr<std::vector<Tensor>> outputs = RunNode(*node, feeds, inputs, evaluator);
    if (!outputs.ok()) return Annotate(outputs.status(), node->Label() + ": ");
    values[node.get()] = *std::move(outputs);
  }
  for (const ir::Output& output : graph.outputs()) {
    results.outputs.push_back(values.at(output.value.node)[output.value.index]);
  }
  return results;
}

bool HasMarkers(const ir::Graph& graph) {
  const std::set<const ir::Node*> needed = Needed(graph);
  return std::any_of(needed.begin(), needed.end(), [](const ir::Node* node) {
    return node->op().is_marker && node->op().name != "loss_seed";
  });
}

}  // namespace halftone::testing
