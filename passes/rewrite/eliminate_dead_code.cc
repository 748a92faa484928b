#include "halftone/passes/rewrite/eliminate_dead_code.h"

#include <set>
#include <unordered_set>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Variables whose declaration stays although nothing reads them.
std::set<std::string> KeptVariables(const ir::Graph& graph) {
  std::set<std::string> kept;
  for (const ir::Variable& variable : graph.variables()) {
    if (variable.kind == ir::VariableKind::kParameter) kept.insert(variable.name);
  }
  for (const ir::Node* commit : graph.commits()) {
    kept.insert(commit->attrs().GetString("variable"));
  }
  return kept;
}

class EliminateDeadCode : public Pass {
 public:
  const char* name() const override { return "eliminate-dead-code"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    std::unordered_set<const ir::Node*> live;
    for (const ir::Output& output : graph.outputs()) live.insert(output.value.node);
    // Operands come before their users, so one sweep from the end sees every user first.
    const std::vector<ir::Node*> nodes = Snapshot(graph);
    std::vector<ir::Node*> dead;
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      ir::Node* node = *it;
      const bool root = node->op().has_side_effect || IsOp(*node, "input");
      if (!root && !live.contains(node)) {
        dead.push_back(node);
        continue;
      }
      for (ir::Value v : node->inputs()) live.insert(v.node);
    }

    std::set<std::string> declared = KeptVariables(graph);
    for (const ir::Node* node : graph.variable_nodes()) {
      if (live.contains(node)) declared.insert(node->attrs().GetString("name"));
    }
    std::set<std::string> forgotten;
    for (const ir::Variable& variable : graph.variables()) {
      if (!declared.contains(variable.name)) forgotten.insert(variable.name);
    }
    graph.Remove(dead);
    if (!forgotten.empty()) graph.RemoveVariables(forgotten);
    context.stats["removed"] += static_cast<int64_t>(dead.size());
    context.stats["variables_removed"] += static_cast<int64_t>(forgotten.size());
    return !dead.empty() || !forgotten.empty();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeEliminateDeadCode() { return std::make_unique<EliminateDeadCode>(); }

}  // namespace halftone::passes
