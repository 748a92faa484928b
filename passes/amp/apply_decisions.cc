#include "halftone/passes/amp/apply_decisions.h"

#include <algorithm>

#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class Applier {
 public:
  Applier(ir::Graph& graph, bool low_outputs) : graph_(graph), low_outputs_(low_outputs) {}

  absl::StatusOr<int> Run() {
    RemoveOldCasts();
    std::vector<ir::Node*> nodes;  // casts are appended meanwhile
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (ir::Node* node : nodes) HT_RETURN_IF_ERROR(Rewrite(*node));
    for (ir::Output& output : graph_.outputs()) {
      // A value that the user wants in f32 leaves the graph in f32.
      if (!low_outputs_ && !RaisedFrom(output.value)) output.value = AsTheUserHadIt(output.value);
    }
    HT_RETURN_IF_ERROR(graph_.Sort());
    return static_cast<int>(casts_.size());
  }

 private:
  void RemoveOldCasts() {
    std::vector<ir::Node*> old;
    Replacements replacements;
    for (const auto& node : graph_.nodes()) {
      if (!IsAmpCast(*node)) continue;
      replacements.Replace(node->output(), node->input(0));
      old.push_back(node.get());
    }
    replacements.Finish(graph_);
    graph_.Remove(old);
  }

  absl::Status Rewrite(ir::Node& node) {
    const bool low = node.amp.decided && IsLow(node.amp.dtype), raised = IsRaised(node);
    bool changed = false;
    for (int port = 0; port < node.num_inputs(); ++port) {
      const ir::Value value = node.input(port);
      ir::Value wanted = value;
      if (low && IsMainInput(node, port)) {
        wanted = Cast(value, node.amp.dtype);
      } else if (raised && IsMainInput(node, port)) {
        wanted = Cast(value, DType::kF32);
      } else if (!ReadsAsIs(node, port)) {
        wanted = AsTheUserHadIt(value);
      }
      node.set_input(port, wanted);
      changed |= wanted != value;
    }
    // A node that was 16-bit in an earlier run may have no cast to tell.
    return node.amp.decided || IsGradientMarker(node) || changed ? Infer(node) : absl::OkStatus();
  }

  // A user's cast takes whatever there is; a value differentiated by must stay the one on the path,
  // which a cast of it is not.
  static bool ReadsAsIs(const ir::Node& node, int port) {
    return IsCast(node) || (IsGradientMarker(node) && port > 0);
  }

  absl::Status Infer(ir::Node& node) {
    std::vector<ir::ValueType> inputs;
    for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(node.input_type(i));
    const std::string label = node.Label();
    auto types = node.op().infer({label, inputs, node.attrs()});
    if (!types.ok()) {
      return Internal(kAmpPass, ": ", label,
                      " refuses the dtypes of its AMP trait: ", Message(types.status()));
    }
    node.mutable_output_types() = *std::move(types);
    return absl::OkStatus();
  }

  // `value` in the dtype that it had before the pass.
  ir::Value AsTheUserHadIt(ir::Value value) {
    if (IsLoweredValue(value)) return Cast(value, DType::kF32);
    const std::optional<DType> low = RaisedFrom(value);
    return low ? Cast(value, *low) : value;
  }

  ir::Value Cast(ir::Value value, DType to) {
    if (value.dtype() == to) return value;
    auto key = std::make_pair(std::make_pair(value.node->id(), value.index), to);
    auto it = casts_.find(key);
    if (it != casts_.end()) return it->second;
    const ir::Node& from = *value.node;
    std::string hint = from.name();
    if (value.index > 0) hint += Concat("_", value.index);
    ir::ValueType type = value.type();
    type.dtype = to;
    static const ir::OpRecord* cast = ir::OpRegistry::Global().Find("cast");
    ir::Node* node = graph_.AddNode(cast, {value}, {{"kept", false}, {"to", to}}, {type},
                                    Concat(hint, "_", Name(to)), from.scope());
    node->location = from.location;
    node->provenance = {kAmpPass, from.name()};
    node->recompute = from.recompute;
    return casts_[key] = node->output();
  }

  ir::Graph& graph_;
  const bool low_outputs_;
  std::map<std::pair<std::pair<int64_t, int>, DType>, ir::Value> casts_;
};

}  // namespace

absl::StatusOr<int> ApplyDecisions(ir::Graph& graph, bool low_outputs) {
  return Applier(graph, low_outputs).Run();
}

}  // namespace halftone::passes
