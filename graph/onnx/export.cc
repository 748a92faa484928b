#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "halftone/core/io/file.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/onnx.h"
#include "halftone/graph/onnx/parse.h"
#include "halftone/graph/onnx/rules.h"
#include "halftone/passes/rewrite/decompose.h"

namespace halftone::onnx {
namespace {

using LiveNodes = std::unordered_set<const ir::Node*>;

// The nodes that the outputs depend on.
LiveNodes Live(const ir::Graph& graph) {
  LiveNodes live;
  for (const ir::Output& output : graph.outputs()) live.insert(output.value.node);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!live.contains(node->get())) continue;
    for (const ir::Value& input : (*node)->inputs()) live.insert(input.node);
  }
  return live;
}

bool IsSource(const ir::Node& node) {
  const std::string& op = node.op().name;
  return op == "input" || op == "variable" || op == "constant";
}

// Ops without a rule become what their decompositions make of them, until all have one.
absl::Status Decompose(ir::Graph& graph) {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const LiveNodes live = Live(graph);
    std::vector<ir::Node*> nodes;
    for (const auto& node : graph.nodes()) {
      const ir::OpRecord& op = node->op();
      if (!live.contains(node.get()) || IsSource(*node)) continue;
      if (Rules::All().FindExport(op.name) != nullptr) continue;
      if (op.decompose == nullptr) {
        return Unimplemented("node ", node->Label(), ": ", Rules::WhyNotExported(op));
      }
      nodes.push_back(node.get());
    }
    if (nodes.empty()) return absl::OkStatus();
    HT_RETURN_IF_ERROR(passes::ReplaceByDecompositions(graph, nodes, "onnx"));
    HT_RETURN_IF_ERROR(graph.Sort());
  }
  return Internal("decompositions do not end");
}

// A rule may read what is behind an operand (lstm's gates), and then nobody reads that.
void RemoveUnread(Model& model) {
  std::unordered_set<std::string> read;
  for (const ValueInfo& output : model.outputs) read.insert(output.name);
  std::vector<Node> kept;
  for (auto node = model.nodes.rbegin(); node != model.nodes.rend(); ++node) {
    const auto is_read = [&](const std::string& output) { return read.contains(output); };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), is_read)) continue;
    read.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  model.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

ValueInfo Describe(const std::string& name, const ir::ValueType& type) {
  ValueInfo info{name, type.dtype, std::vector<Dim>()};
  for (const int64_t extent : type.shape.dims()) info.dims->push_back({extent, ""});
  return info;
}

class Exporter {
 public:
  Exporter(const ir::Graph& graph, const std::map<std::string, Tensor>& variables)
      : graph_(graph), variables_(variables) {}

  absl::StatusOr<Model> Run() {
    model().name = graph_.name();
    const LiveNodes live = Live(graph_);
    NameInputsAndOutputs();
    for (const auto& node : graph_.nodes()) {
      if (!live.contains(node.get())) continue;
      HT_RETURN_IF_ERROR(Annotate(AddNode(*node), Concat("node ", node->Label(), ": ")));
    }
    HT_RETURN_IF_ERROR(AddOutputs());
    RemoveUnread(model());
    return std::move(model());
  }

 private:
  Model& model() { return builder_.model(); }

  // Their names are the caller's, so others step aside.
  void NameInputsAndOutputs() {
    for (const ir::Node* input : graph_.inputs()) {
      const std::string name = builder_.UniqueName(input->attrs().GetString("name"));
      builder_.SetName(input->output(), name);
      model().inputs.push_back(Describe(name, input->output_type()));
    }
    for (const ir::Output& output : graph_.outputs()) {
      output_names_.push_back(builder_.UniqueName(ir::OutputName(output)));
      const bool first = builder_.ReservedName(output.value).empty();
      if (first && !IsSource(*output.value.node)) {
        builder_.ReserveName(output.value, output_names_.back());
      }
    }
  }

  absl::Status AddNode(const ir::Node& node) {
    const std::string& op = node.op().name;
    if (op == "input") return absl::OkStatus();
    if (op == "variable") return AddVariable(node);
    if (op == "constant") {
      builder_.SetName(node.output(), builder_.Constant(node.attrs().Get<Tensor>("value")));
      return absl::OkStatus();
    }
    NodeExport context(node, builder_);
    Rules::All().FindExport(op)->make(context);
    return context.status();
  }

  absl::Status AddVariable(const ir::Node& node) {
    const std::string& name = node.attrs().GetString("name");
    const auto value = variables_.find(name);
    if (value == variables_.end()) {
      return NotFound("variable ", ir::Quote(name), " has no value; expected one");
    }
    const ir::ValueType& type = node.output_type();
    if (value->second.dtype() != type.dtype || value->second.shape() != type.shape) {
      return InvalidArgument("variable ", ir::Quote(name), " has the value ",
                             value->second.TypeString(), "; expected ", type);
    }
    const std::string unique = builder_.UniqueName(name);
    builder_.SetName(node.output(), unique);
    builder_.AddInitializer(unique, value->second);
    return absl::OkStatus();
  }

  // A value that is an output under two names, or is an input too, is passed on.
  absl::Status AddOutputs() {
    for (size_t i = 0; i < output_names_.size(); ++i) {
      const ir::Value value = graph_.outputs()[i].value;
      const std::string& name = output_names_[i];
      const std::string source = builder_.NameOf(value);
      if (source.empty()) {
        return Unimplemented("output ", ir::Quote(name), " is ", value.ToString(),
                             ", an output of ", value.node->op().name,
                             " that has no counterpart in ONNX");
      }
      if (source != name) model().nodes.push_back({"Identity", name, "", {source}, {name}, {}});
      model().outputs.push_back(Describe(name, value.type()));
    }
    return absl::OkStatus();
  }

  const ir::Graph& graph_;
  const std::map<std::string, Tensor>& variables_;
  ModelBuilder builder_;
  std::vector<std::string> output_names_;
};

absl::StatusOr<std::string> Export(const ir::Graph& graph,
                                   const std::map<std::string, Tensor>& variables) {
  const std::unique_ptr<ir::Graph> own = graph.Clone();
  // What an optimizer says of its step.
  std::erase_if(own->outputs(),
                [](const ir::Output& output) { return output.value.node->op().is_marker; });
  if (own->outputs().empty()) return InvalidArgument("the graph has no output; expected one");
  HT_RETURN_IF_ERROR(Decompose(*own));
  HT_ASSIGN_OR_RETURN(const Model model, Exporter(*own, variables).Run());
  return SerializeModel(model);
}

}  // namespace

absl::StatusOr<std::string> ToOnnxBytes(const ir::Graph& graph,
                                        const std::map<std::string, Tensor>& variables) {
  auto bytes = Export(graph, variables);
  if (!bytes.ok()) return Annotate(bytes.status(), Concat("onnx: graph @", graph.name(), ": "));
  return bytes;
}

absl::Status WriteOnnx(const std::string& path, const ir::Graph& graph,
                       const std::map<std::string, Tensor>& variables) {
  HT_ASSIGN_OR_RETURN(const std::string bytes, ToOnnxBytes(graph, variables));
  return io::WriteFileAtomically(path, bytes);
}

}  // namespace halftone::onnx
