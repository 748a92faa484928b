#include "halftone/tools/support/graph_dot.h"

#include <map>
#include <sstream>
#include <vector>

#include "halftone/core/printable.h"
#include "halftone/tools/support/node_look.h"

namespace halftone::tools {
namespace {

// A double-quoted Graphviz string. Source: https://graphviz.org/doc/info/lang.html: only `"` ends
// it; a backslash starts an escape. Control bytes would reach whoever looks at the text.
std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (char c : Printable(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

const char* Colour(const ir::Node& node) {
  switch (KindOf(node)) {
    case NodeKind::kCast:
      return "khaki";
    case NodeKind::kLow:
      return "orange";
    case NodeKind::kF32:
      return "lightblue";
    case NodeKind::kOther:
      break;
  }
  return node.num_outputs() == 0 ? "white" : "lightgrey";
}

// First line of a node's box: what it is called, and for state which variable.
std::string LabelOf(const ir::Node& node) {
  const std::string state = StateName(node);
  return node.op().name + " %" + node.name() + (state.empty() ? "" : " " + state);
}

}  // namespace

std::string ToDot(const ir::Graph& graph) {
  std::ostringstream out;
  out << "digraph " << Quote(graph.name()) << " {\n"
      << "  node [shape=box, style=filled, fontname=\"monospace\", fontsize=10];\n"
      << "  edge [fontname=\"monospace\", fontsize=8];\n";
  std::map<std::string, std::vector<const ir::Node*>> by_scope;
  for (const auto& node : graph.nodes()) by_scope[node->scope()].push_back(node.get());
  int clusters = 0;
  for (const auto& [scope, nodes] : by_scope) {
    if (!scope.empty())
      out << "  subgraph cluster_" << clusters++ << " {\n  label=" << Quote(scope) << ";\n";
    for (const ir::Node* node : nodes) {
      out << "  n" << node->id() << " [label=" << Quote(LabelOf(*node))
          << ", fillcolor=" << Colour(*node) << (IsState(*node) ? ", style=\"filled,rounded\"" : "")
          << "];\n";
    }
    if (!scope.empty()) out << "  }\n";
  }
  for (const auto& node : graph.nodes()) {
    for (const ir::Value& v : node->inputs()) {
      out << "  n" << v.node->id() << " -> n" << node->id()
          << " [label=" << Quote(v.type().ToString()) << "];\n";
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::Output& output = graph.outputs()[i];
    const std::string label = "return" + (output.name.empty() ? "" : " " + output.name);
    out << "  r" << i << " [label=" << Quote(label)
        << ", fillcolor=white, style=\"filled,rounded\"];\n"
        << "  n" << output.value.node->id() << " -> r" << i
        << " [label=" << Quote(output.value.type().ToString()) << "];\n";
  }
  out << "}\n";
  return out.str();
}

}  // namespace halftone::tools
