#include "halftone/passes/autodiff.h"

#include <algorithm>

#include "halftone/passes/decompose.h"
#include "halftone/passes/reverse_sweep.h"
#include "halftone/passes/rewrite.h"

namespace halftone::passes {
namespace {

std::vector<ir::Node*> Markers(const ir::Graph& graph, const char* op) {
  std::vector<ir::Node*> found;
  for (ir::Node* node : Snapshot(graph)) {
    if (IsOp(*node, op)) found.push_back(node);
  }
  return found;
}

// "model.cc:42: backward(%loss)".
std::string Where(const ir::Node& node) {
  const std::string label = node.Label();
  return node.location.line > 0 ? node.location.ToString() + ": " + label : label;
}

// The gradient that arrives at the loss of `marker`: one, times the scale that scale-losses puts
// in. Made in f32, where any scale fits, and cast where the loss itself is not f32.
absl::StatusOr<Seed> MakeSeed(const ir::Node& marker, const std::string& scaler) {
  const ir::Value loss = marker.input(0);
  ir::Builder b = BuilderLike(marker, "autodiff");
  const ir::Expr seed = b.Op("loss_seed", {b.Wrap(loss)}, {{"scaler", scaler}});
  HT_RETURN_IF_ERROR(b.status());
  const ir::Expr cast = b.Cast(seed, loss.dtype());
  HT_RETURN_IF_ERROR(b.status());
  return Seed{loss, cast.value()};
}

// Optimizers and losses that share a scaler.
struct Group {
  std::string scaler;
  std::vector<ir::Node*> backwards;
  std::vector<ir::Node*> optimizers;
};

std::vector<ir::Value> Losses(const std::vector<ir::Node*>& markers) {
  std::vector<ir::Value> losses;
  for (const ir::Node* marker : markers) losses.push_back(marker->input(0));
  return losses;
}

class Autodiff : public Pass {
 public:
  const char* name() const override { return "autodiff"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const auto nodes_before = static_cast<int64_t>(graph.nodes().size());
    const bool changed = !Markers(graph, "backward").empty() || !Markers(graph, "gradient").empty();
    HT_RETURN_IF_ERROR(LowerGradients(graph, context));
    HT_RETURN_IF_ERROR(LowerBackwards(graph, context));
    if (changed) {
      context.stats["nodes_added"] += static_cast<int64_t>(graph.nodes().size()) - nodes_before;
    }
    return changed;
  }

 private:
  // One by one in node order, so that a later loss may use an earlier gradient.
  absl::Status LowerGradients(ir::Graph& graph, PassContext& context) {
    for (ir::Node* marker : Markers(graph, "gradient")) {
      const auto wanted = [marker] {
        return std::vector<ir::Value>(marker->inputs().begin() + 1, marker->inputs().end());
      };
      HT_RETURN_IF_ERROR(DecomposePath(graph, {marker}, wanted));
      HT_ASSIGN_OR_RETURN(const Seed seed, MakeSeed(*marker, ""));
      using Gradients = std::map<ValueKey, ir::Value>;
      HT_ASSIGN_OR_RETURN(const Gradients gradients, SweepBack(graph, {seed}, wanted()));
      for (int i = 0; i < marker->num_outputs(); ++i) {
        const ir::Value x = marker->input(i + 1);
        const auto found = gradients.find(KeyOf(x));
        ir::Value gradient = found == gradients.end() ? ir::Value() : found->second;
        if (!gradient.valid()) {
          HT_ASSIGN_OR_RETURN(gradient, ZeroOf(*marker, x));
        }
        graph.ReplaceUses(marker->output(i), gradient);
      }
      context.stats["losses"] += 1;
      context.stats["gradients"] += static_cast<int64_t>(gradients.size());
      graph.Remove({marker});
      HT_RETURN_IF_ERROR(graph.Sort());
    }
    return absl::OkStatus();
  }

  absl::Status LowerBackwards(ir::Graph& graph, PassContext& context) {
    HT_ASSIGN_OR_RETURN(const std::vector<Group> groups, Groups(graph));
    for (const Group& group : groups) {
      absl::Status unknown_parameter;
      const auto wanted = [&] { return Parameters(graph, group, &unknown_parameter); };
      HT_RETURN_IF_ERROR(DecomposePath(graph, group.backwards, wanted));
      HT_RETURN_IF_ERROR(unknown_parameter);
      std::vector<Seed> seeds;
      for (const ir::Node* marker : group.backwards) {
        HT_ASSIGN_OR_RETURN(const Seed seed, MakeSeed(*marker, group.scaler));
        seeds.push_back(seed);
      }
      using Gradients = std::map<ValueKey, ir::Value>;
      HT_ASSIGN_OR_RETURN(const Gradients gradients, SweepBack(graph, seeds, wanted()));
      for (ir::Node* optimizer : group.optimizers) Deliver(graph, gradients, *optimizer);
      context.stats["losses"] += static_cast<int64_t>(group.backwards.size());
      context.stats["gradients"] += static_cast<int64_t>(gradients.size());
      graph.Remove(group.backwards);
      HT_RETURN_IF_ERROR(graph.Sort());
    }
    return absl::OkStatus();
  }

  // In the order of the first loss of each.
  static absl::StatusOr<std::vector<Group>> Groups(const ir::Graph& graph) {
    std::vector<Group> groups;
    const auto find = [&groups](const std::string& scaler) {
      return std::find_if(groups.begin(), groups.end(),
                          [&](const Group& group) { return group.scaler == scaler; });
    };
    for (ir::Node* marker : Markers(graph, "backward")) {
      const std::string& scaler = marker->attrs().GetString("scaler");
      auto group = find(scaler);
      if (group == groups.end()) group = groups.insert(group, Group{scaler, {}, {}});
      group->backwards.push_back(marker);
    }
    for (ir::Node* optimizer : Markers(graph, "optimizer")) {
      const std::string& scaler = optimizer->attrs().GetString("scaler");
      const auto group = find(scaler);
      if (group != groups.end()) {
        group->optimizers.push_back(optimizer);
      } else if (!groups.empty()) {
        return InvalidArgument(Where(*optimizer), ": no loss has its scaler \"", scaler,
                               "\"; expected that of a backward, such as \"", groups.front().scaler,
                               "\"");
      }
    }
    return groups;
  }

  // Decomposes what has no gradient of its own. `wanted` is asked again after each edit.
  template <typename Wanted>
  absl::Status DecomposePath(ir::Graph& graph, const std::vector<ir::Node*>& markers,
                             const Wanted& wanted) {
    for (;;) {
      const std::set<ValueKey> path = GradientPath(graph, Losses(markers), wanted());
      const std::vector<ir::Node*> nodes = WithoutGradient(graph, path);
      if (nodes.empty()) return absl::OkStatus();
      for (ir::Node* node : nodes) HT_RETURN_IF_ERROR(ReplaceByDecomposition(*node, name()));
      HT_RETURN_IF_ERROR(graph.Sort());
    }
  }

  static std::vector<ir::Value> Parameters(const ir::Graph& graph, const Group& group,
                                           absl::Status* unknown) {
    std::map<std::string, ir::Node*> nodes;
    for (ir::Node* node : graph.variable_nodes()) nodes[node->attrs().GetString("name")] = node;
    std::vector<ir::Value> values;
    for (const ir::Node* optimizer : group.optimizers) {
      for (const std::string& name : optimizer->attrs().Get<std::vector<std::string>>("params")) {
        const ir::Variable* variable = graph.FindVariable(name);
        if (variable == nullptr) {
          *unknown = InvalidArgument(Where(*optimizer), ": parameter \"", name,
                                     "\" is not a variable of the graph");
          continue;
        }
        const auto node = nodes.find(name);
        if (variable->trainable && node != nodes.end()) values.push_back(node->second->output());
      }
    }
    return values;
  }

  // In the order in which the sweep made them: sorting then keeps that order, and the gradient that
  // flows back need not outlive the layer it is meant for.
  static void Deliver(const ir::Graph& graph, const std::map<ValueKey, ir::Value>& gradients,
                      ir::Node& optimizer) {
    const auto& params = optimizer.attrs().Get<std::vector<std::string>>("params");
    std::vector<std::pair<ir::Value, std::string>> delivered;
    for (const ir::Node* node : graph.variable_nodes()) {
      const std::string& name = node->attrs().GetString("name");
      const auto found = gradients.find(KeyOf(node->output()));
      if (found == gradients.end()) continue;
      if (std::find(params.begin(), params.end(), name) == params.end()) continue;
      delivered.emplace_back(found->second, name);
    }
    std::stable_sort(delivered.begin(), delivered.end(),
                     [](const auto& a, const auto& b) { return KeyOf(a.first) < KeyOf(b.first); });
    std::vector<std::string> grad_params;
    for (const auto& [gradient, name] : delivered) {
      optimizer.add_input(gradient);
      grad_params.push_back(name);
    }
    optimizer.mutable_attrs().Set("grad_params", grad_params);
  }

  static absl::StatusOr<ir::Value> ZeroOf(const ir::Node& marker, ir::Value x) {
    ir::Builder b = BuilderLike(marker, "autodiff");
    ir::Expr zero = b.Scalar(x.dtype(), 0);
    const absl::Span<const int64_t> dims = x.shape().dims();
    if (!dims.empty()) {
      zero =
          b.Op("broadcast_to", {zero}, {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
    }
    HT_RETURN_IF_ERROR(b.status());
    return zero.value();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeAutodiff() { return std::make_unique<Autodiff>(); }

}  // namespace halftone::passes
