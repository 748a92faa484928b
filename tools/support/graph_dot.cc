#include "halftone/tools/support/graph_dot.h"

#include <map>
#include <sstream>
#include <vector>

namespace halftone::tools {
namespace {

// A double-quoted Graphviz string. Source: https://graphviz.org/doc/info/lang.html: only `"` ends
// it; a backslash starts an escape.
std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "\"";
}

const char* Colour(const ir::Node& node) {
  if (node.num_outputs() == 0) return "white";
  const DType dtype = node.output_type().dtype;
  if (node.op().name == "cast") return "khaki";
  if (IsLow(dtype)) return "orange";
  return dtype == DType::kF32 ? "lightblue" : "lightgrey";
}

bool IsState(const ir::Node& node) {
  const std::string& op = node.op().name;
  return op == "variable" || op == "commit" || op == "input" || op == "constant";
}

// First line of a node's box: what it is called, and for state which variable.
std::string LabelOf(const ir::Node& node) {
  std::string label = node.op().name + " %" + node.name();
  for (const char* attr : {"variable", "name"}) {
    const ir::AttrValue* value = node.attrs().Find(attr);
    if (value == nullptr) continue;
    if (const auto* text = std::get_if<std::string>(value)) label += " " + *text;
  }
  return label;
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
