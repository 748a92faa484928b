#include "halftone/graph/runtime/convert_model.h"

#include <cmath>
#include <set>
#include <utility>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/report.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::amp {
namespace {

using DTypes = std::map<std::string, DType>;  // by variable

absl::Status CheckInference(const ir::Graph& graph) {
  static const auto* const training = new std::set<std::string>{
      "backward", "gradient", "loss_seed", "optimizer", "scaler", "accumulation", "commit"};
  for (const auto& node : graph.nodes()) {
    if (!training->contains(node->op().name)) continue;
    return InvalidArgument("convert_model: ", node->Label(), ": graph @", graph.name(),
                           " is a training step; expected one for inference");
  }
  const bool has_marker = passes::FindMarker(graph, "amp") != nullptr;
  for (const auto& node : graph.nodes()) {
    if (!node->amp.decided || has_marker) continue;
    return FailedPrecondition("convert_model: graph @", graph.name(),
                              " is converted already; expected it as traced, or as ",
                              "RemoveAmpCasts leaves it");
  }
  return absl::OkStatus();
}

// Takes the marker that the graph may have, and gives it one with `policy`.
absl::Status SetPolicy(ir::Graph& graph, Policy policy, const ir::Target& target) {
  if (!policy.dtype.has_value()) {
    std::string why;
    policy.dtype = target.PreferredLowType(&why);
    if (!IsLow(*policy.dtype)) {
      return InvalidArgument("convert_model: no dtype is given, and ", target.name(),
                             " prefers f32: ", why, "; expected f16 or bf16");
    }
  }
  if (!IsLow(*policy.dtype)) {
    return InvalidArgument("convert_model: dtype is ", Name(*policy.dtype),
                           "; expected f16 or bf16");
  }
  if (ir::Node* marker = passes::FindMarker(graph, "amp"); marker != nullptr) {
    graph.Remove({marker});
  }
  ir::Builder builder(&graph);
  return builder.Root("amp", {}, policy.ToMarker()) == nullptr ? builder.status()
                                                               : absl::OkStatus();
}

// The first finite element that is not finite in `low`.
std::optional<double> FirstOutOfRange(const Tensor& value, const Tensor& low) {
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (std::isfinite(value.at(i)) && !std::isfinite(low.at(i))) return value.at(i);
  }
  return std::nullopt;
}

// The 16-bit dtype in which alone a variable is read; nullopt: it is read as it is too, or in both.
std::optional<DType> OnlyReadIn(const ir::Node& variable, const ir::UseMap& uses) {
  const ir::Value value = variable.output();
  if (uses.is_output(value)) return std::nullopt;
  std::optional<DType> low;
  for (const ir::UseMap::Use& use : uses.uses(value)) {
    if (!passes::IsAmpCast(*use.node)) return std::nullopt;
    const DType dtype = use.node->output_type().dtype;
    if (!IsLow(dtype) || low.value_or(dtype) != dtype) return std::nullopt;
    low = dtype;
  }
  return low;
}

// Gives variables of the graph, and their nodes, other dtypes.
absl::Status SetDTypes(ir::Graph& graph, const DTypes& dtypes) {
  std::vector<ir::Variable> variables = graph.variables();
  std::set<std::string> names;
  for (ir::Variable& variable : variables) {
    names.insert(variable.name);
    const auto dtype = dtypes.find(variable.name);
    if (dtype != dtypes.end()) variable.type.dtype = dtype->second;
  }
  graph.RemoveVariables(names);
  for (ir::Variable& variable : variables) {
    HT_RETURN_IF_ERROR(graph.AddVariable(std::move(variable)));
  }
  for (const auto& [name, dtype] : dtypes) {
    ir::Node& node = *graph.FindVariableNode(name);
    node.mutable_attrs().Set("dtype", dtype);
    node.mutable_output_types()[0].dtype = dtype;
  }
  return absl::OkStatus();
}

// Names of the nodes that read a value, a list.
std::string ReadersOf(ir::Value value, const ir::UseMap& uses) {
  std::string names;
  for (const ir::UseMap::Use& use : uses.uses(value)) {
    names += (names.empty() ? "" : ", ") + use.node->path();
  }
  return names;
}

// Sees that casts of variables lose no value to infinity.
absl::Status CheckRanges(const ir::Model& model) {
  const ir::UseMap uses(*model.graph);
  for (const auto& node : model.graph->nodes()) {
    if (!passes::IsAmpCast(*node) || !passes::IsVariable(*node->input(0).node)) continue;
    const std::string& name = node->input(0).node->attrs().GetString("name");
    const DType dtype = node->output_type().dtype;
    const Tensor& value = model.variables.at(name);
    HT_ASSIGN_OR_RETURN(const Tensor low, value.Convert(dtype));
    const std::optional<double> lost = FirstOutOfRange(value, low);
    if (!lost.has_value()) continue;
    return InvalidArgument(
        "convert_model: variable \"", name, "\": ", *lost, " leaves the range of ", Name(dtype),
        "; expected another dtype, or a policy that denies ", ReadersOf(node->output(), uses));
  }
  return absl::OkStatus();
}

// Stores in 16 bit what is read in 16 bit alone. The number of variables.
absl::StatusOr<int> CastVariables(ir::Model& model) {
  ir::Graph& graph = *model.graph;
  const ir::UseMap uses(graph);
  DTypes dtypes;
  std::vector<ir::Node*> casts;
  passes::Replacements replacements;
  for (ir::Node* node : graph.variable_nodes()) {
    const std::optional<DType> low = OnlyReadIn(*node, uses);
    if (!low.has_value()) continue;
    const std::string& name = node->attrs().GetString("name");
    HT_ASSIGN_OR_RETURN(model.variables.at(name), model.variables.at(name).Convert(*low));
    dtypes[name] = *low;
    node->amp = {.decided = true,
                 .amp_class = ir::AmpClass::kClear,
                 .dtype = *low,
                 .reason = Concat(Name(*low), ": stored so, since 16-bit nodes alone read it")};
    for (const ir::UseMap::Use& use : uses.uses(node->output())) {
      replacements.Replace(use.node->output(), node->output());
      casts.push_back(use.node);
    }
  }
  replacements.Finish(graph);
  graph.Remove(casts);
  HT_RETURN_IF_ERROR(SetDTypes(graph, dtypes));
  return static_cast<int>(dtypes.size());
}

// Variables that nothing reads are gone from the graph.
void KeepValuesOf(ir::Model& model) {
  std::erase_if(model.variables, [&](const auto& value) {
    return model.graph->FindVariable(value.first) == nullptr;
  });
}

}  // namespace

absl::StatusOr<ir::Model> ConvertModel(const ir::Model& model, const Policy& policy,
                                       const ConvertOptions& options) {
  HT_RETURN_IF_ERROR(CheckInference(*model.graph));
  HT_RETURN_IF_ERROR(Annotate(ir::CheckValues(model), "convert_model: "));
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(options.device));
  ir::Model converted;
  converted.graph = model.graph->Clone();
  converted.variables = model.variables;
  // Not those of the casts that may come behind the values.
  for (ir::Output& output : converted.graph->outputs()) output.name = ir::OutputName(output);
  HT_RETURN_IF_ERROR(SetPolicy(*converted.graph, policy, *target));
  passes::PassManagerOptions manager;
  manager.stop_after = "verify-amp-dtypes";
  runtime::PassReport report;
  HT_RETURN_IF_ERROR(runtime::Lower(*converted.graph, *target, manager, &report));
  for (const auto& [entry, note] : report.unmatched_entries) {
    return InvalidArgument("convert_model: ", note);
  }
  KeepValuesOf(converted);
  HT_RETURN_IF_ERROR(CheckRanges(converted));
  converted.notes = std::move(report.notes);
  const std::string summary = passes::Summary(passes::MakeAmpReport(*converted.graph));
  converted.notes.push_back(Concat("converted: ", summary));
  if (options.cast_parameters) {
    HT_ASSIGN_OR_RETURN(const int stored, CastVariables(converted));
    converted.notes.push_back(Concat(stored, " of ", converted.graph->variables().size(),
                                     " variables are stored in 16 bit"));
  }
  HT_RETURN_IF_ERROR(ir::Verify(*converted.graph));
  return converted;
}

absl::StatusOr<ir::Model> RemoveAmpCasts(const ir::Model& model) {
  HT_RETURN_IF_ERROR(Annotate(ir::CheckValues(model), "remove_amp_casts: "));
  ir::Model plain;
  plain.graph = model.graph->Clone();
  plain.variables = model.variables;
  ir::Graph& graph = *plain.graph;
  DTypes dtypes;
  std::vector<ir::Node*> casts;
  passes::Replacements replacements;
  for (const auto& node : graph.nodes()) {
    if (passes::IsAmpCast(*node)) {
      replacements.Replace(node->output(), node->input(0));
      casts.push_back(node.get());
    } else if (passes::IsVariable(*node) && node->amp.decided && IsLow(node->amp.dtype)) {
      const std::string& name = node->attrs().GetString("name");
      dtypes[name] = DType::kF32;
      HT_ASSIGN_OR_RETURN(plain.variables.at(name), plain.variables.at(name).Convert(DType::kF32));
    }
  }
  replacements.Finish(graph);
  graph.Remove(casts);
  HT_RETURN_IF_ERROR(SetDTypes(graph, dtypes));
  for (const auto& node : graph.nodes()) {
    HT_RETURN_IF_ERROR(passes::Reinfer(*node));
    node->amp = {};
  }
  HT_RETURN_IF_ERROR(ir::Verify(graph));
  return plain;
}

}  // namespace halftone::amp
