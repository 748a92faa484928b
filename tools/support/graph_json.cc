#include "halftone/tools/support/graph_json.h"

#include "halftone/graph/ir/text.h"
#include "halftone/tools/support/json_text.h"

namespace halftone::tools {
namespace {

std::string ValueName(const ir::Value& v) {
  std::string name = "%" + v.node->name();
  if (v.index > 0) name += ":" + std::to_string(v.index);
  return name;
}

Json NodeJson(const ir::Node& node) {
  Json json = {{"name", node.name()}, {"op", node.op().name}};
  if (!node.scope().empty()) json["scope"] = node.scope();
  json["inputs"] = Json::array();
  for (const ir::Value& v : node.inputs()) json["inputs"].push_back(ValueName(v));
  json["types"] = Json::array();
  for (int i = 0; i < node.num_outputs(); ++i)
    json["types"].push_back(node.output_type(i).ToString());
  json["text"] = ir::Print(node);
  if (node.location.line > 0) json["location"] = node.location.ToString();
  if (!node.provenance.pass.empty()) json["pass"] = node.provenance.pass;
  if (!node.provenance.from.empty()) json["from"] = node.provenance.from;
  if (node.amp.decided) {
    json["amp"] = {{"class", ir::Name(node.amp.amp_class)},
                   {"dtype", halftone::Name(node.amp.dtype)},
                   {"reason", node.amp.reason}};
  }
  return json;
}

}  // namespace

std::string ToJson(const ir::Graph& graph) {
  Json json = {{"name", graph.name()}};
  json["variables"] = Json::array();
  for (const ir::Variable& v : graph.variables()) {
    json["variables"].push_back({{"name", v.name},
                                 {"type", v.type.ToString()},
                                 {"kind", ir::Name(v.kind)},
                                 {"trainable", v.trainable},
                                 {"init", v.init.ToString()}});
  }
  json["nodes"] = Json::array();
  for (const auto& node : graph.nodes()) json["nodes"].push_back(NodeJson(*node));
  json["outputs"] = Json::array();
  for (const ir::Output& output : graph.outputs()) {
    Json entry;
    if (!output.name.empty()) entry["name"] = output.name;
    entry["value"] = ValueName(output.value);
    json["outputs"].push_back(entry);
  }
  return Dump(json);
}

}  // namespace halftone::tools
