#include "halftone/passes/rewrite/graph_phase.h"

#include <algorithm>
#include <map>
#include <set>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {

const char* Name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "";
}

std::vector<Phase> PhasesOf(const ir::Graph& graph) {
  const std::set<std::string> of_update = {"scale-losses", "insert-optimizers", "update-scalers"};
  std::map<const ir::Node*, Phase> phases;
  std::vector<Phase> in_order;
  for (const auto& node : graph.nodes()) {
    const std::string& pass = node->provenance.pass;
    Phase phase = Phase::kForward;
    const auto origin = phases.find(graph.FindNode(node->provenance.from));
    if (of_update.contains(pass)) {
      phase = Phase::kUpdate;
    } else if (pass == "autodiff" || IsRecomputed(*node)) {
      phase = Phase::kBackward;
    } else if (!pass.empty() && origin != phases.end()) {
      phase = origin->second;
    } else if (!pass.empty()) {
      for (const ir::Value& v : node->inputs()) phase = std::max(phase, phases.at(v.node));
    }
    phases[node.get()] = phase;
    in_order.push_back(phase);
  }
  return in_order;
}

}  // namespace halftone::passes
