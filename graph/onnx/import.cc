#include <algorithm>
#include <unordered_set>

#include "halftone/core/io/file.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/graph/onnx/node_import.h"
#include "halftone/graph/onnx/onnx.h"
#include "halftone/graph/onnx/parse.h"

namespace halftone::onnx {
namespace {

std::string Briefly(const std::string& name) { return ir::Quote(name.substr(0, 80)); }

// A name of values, which become names of ours.
absl::Status CheckName(const std::string& name, const char* what) {
  if (!name.empty() && name.size() <= ir::kMaxNameBytes) return absl::OkStatus();
  return InvalidArgument(what, Briefly(name), " has ", name.size(), " bytes; expected 1..",
                         ir::kMaxNameBytes);
}

// The module path in a name such as PyTorch's "/layer1/conv1/Conv", and in those that export writes.
std::string ScopeOf(const std::string& name) {
  const size_t begin = name.find_first_not_of('/'), end = name.rfind('/');
  if (begin == std::string::npos || end == std::string::npos || end <= begin) return "";
  const std::string scope = name.substr(begin, end - begin);
  const bool plain =
      std::all_of(scope.begin(), scope.end(), [](char c) { return c == '/' || ir::IsNameChar(c); });
  return plain && scope.size() <= ir::kMaxNameBytes ? scope : "";
}

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options)
      : model_(model),
        options_(options),
        graph_(std::make_unique<ir::Graph>(GraphName(model.name))),
        builder_(graph_.get()),
        static_values_(variables_, options.inputs) {}

  absl::StatusOr<ImportedModel> Run() {
    for (const NamedTensor& initializer : model_.initializers) {
      HT_RETURN_IF_ERROR(CheckName(initializer.name, "initializer "));
      if (!initializers_.emplace(initializer.name, &initializer.value).second) {
        return InvalidArgument("a second initializer called ", Briefly(initializer.name));
      }
    }
    for (const ValueInfo& input : model_.inputs) HT_RETURN_IF_ERROR(AddInput(input));
    for (const Node& node : model_.nodes) {
      HT_RETURN_IF_ERROR(Annotate(AddNode(node), node.Label() + ": "));
    }
    HT_RETURN_IF_ERROR(AddOutputs());
    RemoveUnused();
    if (const absl::Status verified = ir::Verify(*graph_); !verified.ok()) {
      return InvalidArgument(Message(verified));
    }
    ImportedModel imported;
    for (const auto& [name, ignored] : static_values_.inputs_used()) {
      imported.notes.push_back(
          Concat("input ", Briefly(name), " decides shapes: its value is part of the graph"));
    }
    for (const ir::Variable& variable : graph_->variables()) {
      imported.variables.emplace(variable.name, variables_.at(variable.name));
    }
    imported.graph = std::move(graph_);
    return imported;
  }

 private:
  static std::string GraphName(const std::string& name) {
    std::string valid = name.substr(0, ir::kMaxNameBytes);
    for (char& c : valid) {
      if (!ir::IsNameChar(c)) c = '_';
    }
    return ir::IsValidName(valid) ? valid : "onnx";
  }

  // `what` of the value `name` that a node, an input or an initializer defines.
  absl::Status Define(const std::string& name, ir::Expr value) {
    HT_RETURN_IF_ERROR(CheckName(name, "value "));
    if (initializers_.contains(name) || !values_.emplace(name, value).second) {
      return InvalidArgument("a second value called ", Briefly(name));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Shape> ShapeOf(const ValueInfo& input) {
    const auto given = options_.inputs.find(input.name);
    const Tensor* value = given == options_.inputs.end() ? nullptr : &given->second;
    if (value != nullptr && value->dtype() != input.dtype) {
      return InvalidArgument("its value is ", value->TypeString(), "; expected ",
                             Name(input.dtype));
    }
    if (!input.dims.has_value()) {
      if (value != nullptr) return value->shape();
      return InvalidArgument("it has no shape; expected one, or a value for it");
    }
    const std::vector<Dim>& dims = *input.dims;
    if (value != nullptr && value->shape().rank() != static_cast<int>(dims.size())) {
      return InvalidArgument("its value is ", value->TypeString(), "; expected rank ", dims.size());
    }
    std::vector<int64_t> extents;
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto named = options_.dims.find(dims[i].name);
      if (dims[i].extent.has_value()) {
        extents.push_back(*dims[i].extent);
      } else if (named != options_.dims.end()) {
        extents.push_back(named->second);
      } else if (value != nullptr) {
        extents.push_back(value->shape()[static_cast<int>(i)]);
      } else {
        return InvalidArgument("its dimension ", i,
                               dims[i].name.empty() ? "" : Concat(", ", Briefly(dims[i].name), ","),
                               " is open; expected an extent, as --dim ",
                               dims[i].name.empty() ? "NAME" : dims[i].name.substr(0, 80),
                               "=8 gives it, or a value for the input");
      }
    }
    HT_ASSIGN_OR_RETURN(Shape shape, Shape::Make(extents));
    if (value != nullptr && value->shape() != shape) {
      return InvalidArgument("its value is ", value->TypeString(), "; expected ", Name(input.dtype),
                             shape);
    }
    return shape;
  }

  absl::Status AddInput(const ValueInfo& input) {
    // Before IR version 4 every initializer was an input too, with a value of its own by default.
    if (initializers_.contains(input.name)) return absl::OkStatus();
    HT_RETURN_IF_ERROR(CheckName(input.name, "input "));
    const auto shape = ShapeOf(input);
    if (!shape.ok()) {
      return Annotate(shape.status(), Concat("input ", Briefly(input.name), ": "));
    }
    const ir::Expr x = builder_.Input(input.name, {input.dtype, *shape});
    HT_RETURN_IF_ERROR(builder_.status());
    return Define(input.name, x);
  }

  // The value of a name, or of an initializer that nothing has read yet.
  absl::StatusOr<ir::Expr> Find(const std::string& name) {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    const auto initializer = initializers_.find(name);
    if (initializer == initializers_.end()) {
      return InvalidArgument("value ", Briefly(name),
                             " is no input, no initializer and no output of an earlier node");
    }
    const Tensor& tensor = *initializer->second;
    ir::Expr value;
    builder_.set_scope("");
    if (IsFloat(tensor.dtype()) && tensor.shape().rank() > 0) {
      variables_.emplace(name, tensor);
      ir::Variable variable;
      variable.name = name;
      variable.type = {tensor.dtype(), tensor.shape()};
      value = builder_.Var(variable);
    } else {
      builder_.NameNext(name);
      value = builder_.Constant(tensor);
    }
    HT_RETURN_IF_ERROR(builder_.status());
    values_.emplace(name, value);
    return value;
  }

  absl::Status AddNode(const Node& node) {
    if (!node.domain.empty() && node.domain != "ai.onnx") {
      return Unimplemented("domain ", Briefly(node.domain), " is not covered");
    }
    const ImportRule* rule = Rules::All().FindImport(node.op_type);
    if (rule == nullptr) return Unimplemented("the operator is not covered");
    std::vector<ir::Expr> inputs;
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        inputs.emplace_back(&builder_, ir::Value{});
        continue;
      }
      HT_ASSIGN_OR_RETURN(const ir::Expr input, Find(name));
      inputs.push_back(input);
    }
    builder_.set_scope(ScopeOf(node.name));
    NodeImport context(node, model_.opset, std::move(inputs), builder_, static_values_);
    const Exprs outputs = rule->make(context);
    HT_RETURN_IF_ERROR(context.Finish());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= outputs.size() || !outputs[i].valid()) {
        return Unimplemented("output ", i, ", ", Briefly(node.outputs[i]), ", is not covered");
      }
      HT_RETURN_IF_ERROR(Define(node.outputs[i], outputs[i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    std::unordered_set<std::string> names;
    for (const ValueInfo& output : model_.outputs) {
      HT_RETURN_IF_ERROR(CheckName(output.name, "output "));
      const auto value = Find(output.name);
      if (!value.ok()) return Annotate(value.status(), "an output: ");
      if (!names.insert(output.name).second) {
        return InvalidArgument("a second output called ", Briefly(output.name));
      }
      if (value->dtype() != output.dtype) {
        return InvalidArgument("output ", Briefly(output.name), " is ", value->type(),
                               "; the model says ", Name(output.dtype));
      }
      graph_->outputs().push_back({output.name, value->value()});
    }
    return absl::OkStatus();
  }

  // What shapes were computed from, and initializers that only they read.
  void RemoveUnused() {
    std::unordered_set<const ir::Node*> live;
    for (const ir::Output& output : graph_->outputs()) live.insert(output.value.node);
    std::vector<ir::Node*> dead;
    std::set<std::string> unread;
    for (auto node = graph_->nodes().rbegin(); node != graph_->nodes().rend(); ++node) {
      if (!live.contains(node->get()) && !(*node)->op().has_side_effect) {
        dead.push_back(node->get());
        if ((*node)->op().name == "variable") unread.insert((*node)->attrs().GetString("name"));
        continue;
      }
      for (const ir::Value& input : (*node)->inputs()) live.insert(input.node);
    }
    graph_->Remove(dead);
    graph_->RemoveVariables(unread);
  }

  const Model& model_;
  const ImportOptions& options_;
  std::unique_ptr<ir::Graph> graph_;
  ir::Builder builder_;
  std::map<std::string, const Tensor*> initializers_;
  std::map<std::string, Tensor> variables_;  // those that have become variables
  std::map<std::string, ir::Expr> values_;
  StaticValues static_values_;
};

}  // namespace

absl::StatusOr<ImportedModel> FromOnnxBytes(const std::string& bytes,
                                            const ImportOptions& options) {
  HT_ASSIGN_OR_RETURN(const Model model, ParseModel(bytes));
  auto imported = Importer(model, options).Run();
  if (!imported.ok()) return Annotate(imported.status(), "onnx: ");
  return imported;
}

absl::StatusOr<ImportedModel> ReadOnnx(const std::string& path, const ImportOptions& options) {
  HT_ASSIGN_OR_RETURN(const std::string bytes,
                      io::ReadFile(path, static_cast<int64_t>(ir::kMaxFileBytes)));
  auto imported = FromOnnxBytes(bytes, options);
  if (!imported.ok()) return Annotate(imported.status(), path + ": ");
  return imported;
}

}  // namespace halftone::onnx
