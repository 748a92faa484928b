#include <set>

#include "halftone/graph/ir/constant_file.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

bool IsIdentifier(const std::string& name) {
  return IsValidName(name) && name.find('-') == std::string::npos && name[0] != '.' &&
         !(name[0] >= '0' && name[0] <= '9');
}

class Printer {
 public:
  explicit Printer(const TextOptions& options)
      : options_(options), forms_(options.constant_files) {}

  std::string Graph(const ir::Graph& graph) {
    text_ = "graph @";
    text_ += IsValidName(graph.name()) ? graph.name() : Quote(graph.name());
    text_ += '(';
    bool first = true;
    for (const ir::Node* input : graph.inputs()) {
      if (!first) text_ += ", ";
      first = false;
      Parameter(*input);
    }
    text_ += ") {\n";
    DeclarationsWithoutNode(graph);
    for (const auto& node : graph.nodes()) {
      if (node->op().name == "input") continue;
      text_ += "  ";
      Statement(*node);
      text_ += '\n';
    }
    Return(graph);
    text_ += "}\n";
    return std::move(text_);
  }

  std::string Node(const ir::Node& node) {
    if (node.op().name == "input") {
      Parameter(node);
    } else {
      Statement(node);
    }
    return std::move(text_);
  }

 private:
  void Parameter(const ir::Node& input) {
    text_ += "%" + input.name();
    const std::string& name = input.attrs().GetString("name");
    if (name != input.name()) text_ += " " + Quote(name);
    text_ += ": " + input.output_type().ToString();
    Notes(input);
  }

  // Variables that no node reads: dropped by dead code elimination, still committed or stored.
  void DeclarationsWithoutNode(const ir::Graph& graph) {
    std::set<std::string> with_node;
    for (const ir::Node* node : graph.variable_nodes()) {
      with_node.insert(node->attrs().GetString("name"));
    }
    const OpRecord* op = OpRegistry::Global().Find("variable");
    for (const Variable& variable : graph.variables()) {
      if (with_node.count(variable.name) != 0) continue;
      text_ += "  variable " + Quote(variable.name);
      AttributeList(*op, ToAttributes(variable), {"name", "dtype", "shape"});
      text_ += " : " + variable.type.ToString() + "\n";
    }
  }

  void Statement(const ir::Node& node) {
    const std::string& op = node.op().name;
    Results(node);
    text_ += op;
    if (op == "commit") {
      text_ += " " + Quote(node.attrs().GetString("variable")) + " = " + node.input(0).ToString();
      return Notes(node);
    }
    if (op == "variable") {
      text_ += " " + Quote(node.attrs().GetString("name"));
      AttributeList(node.op(), node.attrs(), {"name", "dtype", "shape"});
    } else {
      if (op != "constant") Operands(node);
      AttributeList(node.op(), node.attrs(), {});
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      text_ += (i == 0 ? " : " : ", ") + node.output_type(i).ToString();
    }
    Notes(node);
  }

  void Results(const ir::Node& node) {
    if (node.num_outputs() == 0) {
      if (options_.scopes) text_ += "%" + node.name() + " = ";
      return;
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      text_ += (i == 0 ? "" : ", ") + node.output(i).ToString();
    }
    text_ += " = ";
  }

  void Operands(const ir::Node& node) {
    text_ += '(';
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (i > 0) text_ += ", ";
      text_ += node.input(i).ToString();
    }
    text_ += ')';
  }

  void AttributeList(const OpRecord& op, const Attributes& attrs,
                     const std::set<std::string>& shown_elsewhere) {
    bool first = true;
    for (const auto& [name, value] : attrs.entries()) {
      if (shown_elsewhere.count(name) != 0 || IsDefault(op, name, value)) continue;
      text_ += (first ? " {" : ", ") + name + "=";
      first = false;
      if (const Tensor* tensor = std::get_if<Tensor>(&value); tensor != nullptr) {
        Constant(*tensor);
      } else {
        text_ += FormatAttr(value);
      }
    }
    if (!first) text_ += '}';
  }

  static bool IsDefault(const OpRecord& op, const std::string& name, const AttrValue& value) {
    for (const AttrSpec& spec : op.attrs) {
      if (spec.name == name) return spec.default_value && Equal(*spec.default_value, value);
    }
    return false;
  }

  void Constant(const Tensor& tensor) {
    if (!tensor.defined()) {  // a broken graph prints too
      text_ += "undefined";
      return;
    }
    const ConstantForms::Form form = forms_.Next(tensor);
    if (form == ConstantForms::Form::kFile) {
      text_ += "file<" + tensor.TypeString() + ">(" + Quote(ConstantFileName(tensor)) + ")";
    } else {
      text_ += FormatTensor(tensor, form == ConstantForms::Form::kSplat);
    }
  }

  void Notes(const ir::Node& node) {
    if (options_.scopes && !node.scope().empty()) text_ += " @" + Quote(node.scope());
    const SourceLocation& location = node.location;
    if (options_.locations && (!location.file.empty() || location.line != 0)) {
      text_ += " loc(" + Quote(location.file) + ":" + std::to_string(location.line) + ")";
    }
    const Provenance& from = node.provenance;
    if (options_.provenance && (!from.pass.empty() || !from.from.empty())) {
      text_ += " pass(" + Quote(from.pass) + "," + Quote(from.from) + ")";
    }
    if (options_.provenance && !node.recompute.empty()) {
      text_ += " recompute(" + Quote(node.recompute) + ")";
    }
    if (!options_.amp) return;
    if (node.amp.decided) {
      text_ += std::string(" amp(") + Name(node.amp.amp_class) + "," + Name(node.amp.dtype) + "," +
               Quote(node.amp.reason);
      if (node.amp.raised_from) text_ += std::string(",") + Name(*node.amp.raised_from);
      text_ += ")";
    } else if (!node.amp.reason.empty()) {
      text_ += " amp(" + Quote(node.amp.reason) + ")";
    }
    if (node.amp_request < 0) text_ += " keep_f32";
    if (node.amp_request > 0) text_ += " allow_low";
  }

  void Return(const ir::Graph& graph) {
    if (graph.outputs().empty()) return;
    text_ += "  return ";
    bool first = true;
    for (const Output& output : graph.outputs()) {
      if (!first) text_ += ", ";
      first = false;
      if (!output.name.empty()) {
        text_ += (IsIdentifier(output.name) ? output.name : Quote(output.name)) + "=";
      }
      text_ += output.value.ToString();
    }
    text_ += '\n';
  }

  const TextOptions& options_;
  std::string text_;
  ConstantForms forms_;
};

}  // namespace

std::string Print(const Graph& graph, const TextOptions& options) {
  return Printer(options).Graph(graph);
}

std::string Print(const Node& node, const TextOptions& options) {
  return Printer(options).Node(node);
}

std::string Graph::ToString() const { return Print(*this); }

std::string OutputName(const Output& output) {
  return output.name.empty() ? output.value.ToString().substr(1) : output.name;
}

}  // namespace halftone::ir
