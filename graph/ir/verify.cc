#include "halftone/graph/ir/verify.h"

#include <set>
#include <unordered_set>

#include "halftone/graph/ir/infer.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  absl::Status Run() {
    for (const auto& node : graph_.nodes()) {
      HT_RETURN_IF_ERROR(CheckIdentity(*node));
      HT_RETURN_IF_ERROR(CheckInputs(*node));
      HT_RETURN_IF_ERROR(CheckTypes(*node));
      HT_RETURN_IF_ERROR(CheckLayouts(*node));
      HT_RETURN_IF_ERROR(CheckState(*node));
      seen_.insert(node.get());
    }
    return CheckOutputs();
  }

 private:
  absl::Status CheckIdentity(const Node& node) {
    if (!IsValidName(node.name())) {
      return Internal("node ", Quote(node.name()), ": not a valid name");
    }
    if (&node.graph() != &graph_ || graph_.FindNode(node.name()) != &node) {
      return Internal(node.Label(), ": not the node of that name in graph @", graph_.name());
    }
    if (!ids_.insert(node.id()).second) {
      return Internal(node.Label(), ": id ", node.id(), " is used twice");
    }
    if (node.amp_request < -1 || node.amp_request > 1) {
      return Internal(node.Label(), ": amp_request is ", static_cast<int>(node.amp_request),
                      "; expected -1, 0 or 1");
    }
    return absl::OkStatus();
  }

  absl::Status CheckInputs(const Node& node) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Value input = node.input(i);
      if (!input.valid()) return Internal(node.Label(), ": input ", i, " is not a value");
      // The node may be gone: nothing of it is read before it is known.
      if (seen_.count(input.node) == 0) {
        return Internal(node.Label(), ": input ", i,
                        " is not an output of an earlier node of the graph");
      }
      if (input.index < 0 || input.index >= input.node->num_outputs()) {
        return Internal(node.Label(), ": input ", i, " is output ", input.index, " of ",
                        input.node->Label(), ", which has ", input.node->num_outputs());
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckTypes(const Node& node) {
    Attributes attrs = node.attrs();
    HT_RETURN_IF_ERROR(AsInternal(CompleteAttributes(node.op(), node.Label(), attrs)));
    for (const auto& [name, value] : attrs.entries()) {
      const AttrValue* stored = node.attrs().Find(name);
      if (stored == nullptr || TypeOf(*stored) != TypeOf(value)) {
        return Internal(node.Label(), ": attribute ", name, " is absent or has another type");
      }
    }
    std::vector<ValueType> inputs;
    inputs.reserve(node.num_inputs());
    for (const Value& input : node.inputs()) inputs.push_back(input.type());
    auto inferred = InferTypes(node.op(), node.Label(), inputs, attrs);
    if (!inferred.ok()) return AsInternal(inferred.status());
    if (static_cast<int>(inferred->size()) != node.num_outputs()) {
      return Internal(node.Label(), ": has ", node.num_outputs(), " outputs; inference gives ",
                      inferred->size());
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      const ValueType& expected = (*inferred)[i];
      const ValueType& got = node.output_type(i);
      if (got.dtype != expected.dtype || got.shape != expected.shape) {
        return Internal(node.Label(), ": output ", i, " is ", got, "; inference gives ", expected);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckLayouts(const Node& node) {
    const LayoutTrait& trait = node.op().layout;
    // An op that names no port moves values between whatever layouts its types say.
    const bool names_ports =
        !trait.channels_last_inputs.empty() || !trait.channels_last_outputs.empty();
    const auto check = [&](const char* side, int i, const ValueType& type,
                           const std::vector<int>& ports) -> absl::Status {
      if (type.layout == Layout::kPlain) return absl::OkStatus();
      const auto bad = [&](const char* expected) {
        return Internal(node.Label(), ": ", side, " ", i, " is ", type, "; expected ", expected);
      };
      const bool stays_plain =
          names_ports && std::find(ports.begin(), ports.end(), i) == ports.end();
      if (trait.kind == LayoutClass::kPlainOnly || stays_plain || type.shape.rank() != 4) {
        return bad("plain layout");
      }
      if (type.layout != Layout::kChannelBlocks) return absl::OkStatus();
      if (!trait.channel_blocks) return bad("plain or channels-last layout");
      return CanLie(type.shape, type.layout) ? absl::OkStatus() : bad("whole blocks of channels");
    };
    for (int i = 0; i < node.num_inputs(); ++i) {
      HT_RETURN_IF_ERROR(check("input", i, node.input_type(i), trait.channels_last_inputs));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      HT_RETURN_IF_ERROR(check("output", i, node.output_type(i), trait.channels_last_outputs));
    }
    if (trait.kind != LayoutClass::kFollows || node.num_outputs() == 0) return absl::OkStatus();
    const ValueType& out = node.output_type(0);
    for (int i = 0; i < node.num_inputs(); ++i) {
      const ValueType& type = node.input_type(i);
      // Channels in blocks are not broadcast.
      const bool differs = type.shape == out.shape ? type.layout != out.layout
                                                   : type.layout == Layout::kChannelBlocks;
      if (differs) {
        return Internal(node.Label(), ": input ", i, " is ", type, ", the output ", out,
                        "; expected one layout");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckState(const Node& node) {
    const std::string& op = node.op().name;
    if (op == "input") {
      if (!input_names_.insert(node.attrs().GetString("name")).second) {
        return Internal(node.Label(), ": a second input called ",
                        FormatAttrBriefly(node.attrs().GetString("name")));
      }
    } else if (op == "variable") {
      return CheckVariable(node);
    } else if (op == "commit") {
      return CheckCommit(node);
    } else if (op == "amp") {
      // The policy of a graph; which of two would hold?
      if (amp_marker_ != nullptr) {
        return Internal(node.Label(), ": a second amp marker, beside ", amp_marker_->Label());
      }
      amp_marker_ = &node;
    }
    return absl::OkStatus();
  }

  absl::Status CheckVariable(const Node& node) {
    auto variable = VariableFromAttributes(node.attrs());
    if (!variable.ok()) return AsInternal(variable.status());
    if (!variable_names_.insert(variable->name).second) {
      return Internal(node.Label(), ": a second node of variable \"", variable->name, "\"");
    }
    const Variable* declared = graph_.FindVariable(variable->name);
    if (declared == nullptr) {
      return Internal(node.Label(), ": variable \"", variable->name, "\" is not declared");
    }
    if (!(ToAttributes(*declared) == ToAttributes(*variable))) {
      return Internal(node.Label(), ": variable \"", variable->name, "\" is declared as ",
                      declared->type, " ", Name(declared->kind), " ", declared->init.ToString(),
                      "; the node says ", variable->type, " ", Name(variable->kind), " ",
                      variable->init.ToString());
    }
    return absl::OkStatus();
  }

  absl::Status CheckCommit(const Node& node) {
    const std::string& name = node.attrs().GetString("variable");
    const Variable* declared = graph_.FindVariable(name);
    if (declared == nullptr) {
      return Internal(node.Label(), ": commit of \"", name, "\", which is not declared");
    }
    if (!committed_.insert(name).second) {
      return Internal(node.Label(), ": a second commit of \"", name, "\"");
    }
    const ValueType& type = node.input_type(0);
    if (type.dtype != declared->type.dtype || type.shape != declared->type.shape) {
      return Internal(node.Label(), ": commits ", node.input(0).ToString(), ", ", type, ", to \"",
                      name, "\", which is ", declared->type);
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutputs() {
    std::set<std::string> names;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Output& output = graph_.outputs()[i];
      if (!output.value.valid() || seen_.count(output.value.node) == 0 || output.value.index < 0 ||
          output.value.index >= output.value.node->num_outputs()) {
        return Internal("graph @", graph_.name(), ": output ", i,
                        " is not an output of one of its nodes");
      }
      if (!output.name.empty() && !names.insert(output.name).second) {
        return Internal("graph @", graph_.name(), ": a second output called \"", output.name, "\"");
      }
    }
    return absl::OkStatus();
  }

  static absl::Status AsInternal(const absl::Status& status) {
    return status.ok() ? status : Internal(Message(status));
  }

  const Graph& graph_;
  std::unordered_set<const Node*> seen_;
  const Node* amp_marker_ = nullptr;
  std::unordered_set<int64_t> ids_;
  std::set<std::string> input_names_, variable_names_, committed_;
};

}  // namespace

absl::Status Verify(const Graph& graph) { return Verifier(graph).Run(); }

}  // namespace halftone::ir
