#include "halftone/passes/autodiff/autodiff.h"

#include <algorithm>
#include <set>

#include "halftone/graph/ops/support/nn.h"
#include "halftone/passes/autodiff/reverse_sweep.h"
#include "halftone/passes/rewrite/decompose.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

std::vector<ir::Node*> NodesOf(const ir::Graph& graph, const char* op) {
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
// in. Made in f32 (`scale`), where any scale fits, and cast where the loss itself is not f32.
absl::StatusOr<Seed> MakeSeed(const ir::Node& marker, ir::Value* scale = nullptr) {
  const ir::Value loss = marker.input(0);
  ir::Builder b = BuilderLike(marker, "autodiff");
  const ir::Expr seed =
      b.Op("loss_seed", {b.Wrap(loss)}, {{"scaler", marker.attrs().GetString("scaler")}});
  HT_RETURN_IF_ERROR(b.status());
  const ir::Expr cast = b.Cast(seed, loss.dtype());
  HT_RETURN_IF_ERROR(b.status());
  if (scale != nullptr) *scale = seed.value();
  return Seed{loss, cast.value()};
}

// Losses that are differentiated in one sweep: they share a scaler and reach the same optimizers.
struct Group {
  std::string scaler;
  std::vector<std::string> names;  // of the optimizers; none: all
  std::vector<ir::Node*> backwards;
  std::vector<ir::Node*> optimizers;
};

// A gradient on its way to an optimizer.
struct Delivered {
  ir::Value gradient;
  std::string param;
  std::string scaler;
};
using Deliveries = std::map<const ir::Node*, std::vector<Delivered>>;

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
    bool changed = false;
    for (const char* op : {"backward", "gradient", "detach"})
      changed |= !NodesOf(graph, op).empty();
    HT_RETURN_IF_ERROR(LowerGradients(graph, context));
    HT_RETURN_IF_ERROR(LowerBackwards(graph, context));
    RemoveDetaches(graph);
    if (changed) {
      context.stats["nodes_added"] += static_cast<int64_t>(graph.nodes().size()) - nodes_before;
    }
    return changed;
  }

 private:
  // One by one in node order, so that a later loss may use an earlier gradient.
  absl::Status LowerGradients(ir::Graph& graph, PassContext& context) {
    for (ir::Node* marker : NodesOf(graph, "gradient")) {
      const auto wanted = [marker] {
        return std::vector<ir::Value>(marker->inputs().begin() + 1, marker->inputs().end());
      };
      HT_RETURN_IF_ERROR(DecomposePath(graph, {marker}, wanted));
      ir::Value scale;
      HT_ASSIGN_OR_RETURN(const Seed seed, MakeSeed(*marker, &scale));
      using Gradients = std::map<ValueKey, ir::Value>;
      HT_ASSIGN_OR_RETURN(const Gradients gradients, SweepBack(graph, {seed}, wanted()));
      Replacements replacements;
      for (int i = 0; i < marker->num_outputs(); ++i) {
        const ir::Value x = marker->input(i + 1);
        const auto found = gradients.find(KeyOf(x));
        ir::Value gradient;
        if (found != gradients.end()) {
          HT_ASSIGN_OR_RETURN(gradient, Unscaled(*marker, found->second, scale));
        } else {
          HT_ASSIGN_OR_RETURN(gradient, ZeroOf(*marker, marker->output(i)));
        }
        replacements.Replace(marker->output(i), gradient);
      }
      replacements.Finish(graph);
      context.stats["losses"] += 1;
      context.stats["gradients"] += static_cast<int64_t>(gradients.size());
      graph.Remove({marker});
      HT_RETURN_IF_ERROR(graph.Sort());
    }
    return absl::OkStatus();
  }

  absl::Status LowerBackwards(ir::Graph& graph, PassContext& context) {
    HT_ASSIGN_OR_RETURN(const std::vector<Group> groups, Groups(graph, context));
    Deliveries deliveries;
    for (const Group& group : groups) {
      absl::Status unknown_parameter;
      const auto wanted = [&] { return Parameters(graph, group, &unknown_parameter); };
      HT_RETURN_IF_ERROR(DecomposePath(graph, group.backwards, wanted));
      HT_RETURN_IF_ERROR(unknown_parameter);
      std::vector<Seed> seeds;
      for (const ir::Node* marker : group.backwards) {
        HT_ASSIGN_OR_RETURN(const Seed seed, MakeSeed(*marker));
        seeds.push_back(seed);
      }
      using Gradients = std::map<ValueKey, ir::Value>;
      HT_ASSIGN_OR_RETURN(const Gradients gradients, SweepBack(graph, seeds, wanted()));
      for (const ir::Node* optimizer : group.optimizers) {
        HT_RETURN_IF_ERROR(
            Collect(graph, gradients, *optimizer, group.scaler, deliveries[optimizer]));
      }
      context.stats["losses"] += static_cast<int64_t>(group.backwards.size());
      context.stats["gradients"] += static_cast<int64_t>(gradients.size());
      graph.Remove(group.backwards);
      HT_RETURN_IF_ERROR(graph.Sort());
    }
    for (ir::Node* optimizer : NodesOf(graph, "optimizer")) {
      const auto found = deliveries.find(optimizer);
      if (found != deliveries.end()) Deliver(std::move(found->second), *optimizer);
    }
    return graph.Sort();
  }

  // In the order of the first loss of each.
  static absl::StatusOr<std::vector<Group>> Groups(const ir::Graph& graph, PassContext& context) {
    std::vector<Group> groups;
    const std::vector<ir::Node*> optimizers = NodesOf(graph, "optimizer");
    for (ir::Node* marker : NodesOf(graph, "backward")) {
      Group own{marker->attrs().GetString("scaler"),
                marker->attrs().Get<std::vector<std::string>>("optimizers"),
                {marker},
                {}};
      const auto group = std::find_if(groups.begin(), groups.end(), [&own](const Group& other) {
        return other.scaler == own.scaler && other.names == own.names;
      });
      if (group != groups.end()) {
        group->backwards.push_back(marker);
        continue;
      }
      for (const std::string& name : own.names) {
        const auto has_name = [&name](const ir::Node* optimizer) {
          return optimizer->attrs().GetString("name") == name;
        };
        if (std::none_of(optimizers.begin(), optimizers.end(), has_name)) {
          return InvalidArgument(Where(*marker), ": optimizer \"", name,
                                 "\" is not declared; expected that of an optimizer marker");
        }
      }
      groups.push_back(std::move(own));
    }
    if (groups.empty()) return groups;
    for (ir::Node* optimizer : optimizers) {
      HT_RETURN_IF_ERROR(JoinGroups(*optimizer, groups, context));
    }
    return groups;
  }

  // Adds an optimizer to the groups of the losses that reach it.
  static absl::Status JoinGroups(ir::Node& optimizer, std::vector<Group>& groups,
                                 PassContext& context) {
    const std::string& name = optimizer.attrs().GetString("name");
    const std::string& scaler = optimizer.attrs().GetString("scaler");
    std::vector<std::string> scalers;
    for (Group& group : groups) {
      const auto& names = group.names;
      if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
      group.optimizers.push_back(&optimizer);
      scalers.push_back(group.scaler);
    }
    if (scalers.empty()) {
      context.notes.push_back(Concat(name, ": no loss of this step reaches it"));
    } else if (!scaler.empty() &&
               std::find(scalers.begin(), scalers.end(), scaler) == scalers.end()) {
      return InvalidArgument(Where(optimizer), ": no loss has its scaler \"", scaler,
                             "\"; expected that of a backward, such as \"", scalers.front(), "\"");
    }
    return absl::OkStatus();
  }

  // Decomposes what has no gradient of its own. `wanted` is asked again after each edit.
  template <typename Wanted>
  absl::Status DecomposePath(ir::Graph& graph, const std::vector<ir::Node*>& markers,
                             const Wanted& wanted) {
    for (;;) {
      const std::set<ValueKey> path = GradientPath(graph, Losses(markers), wanted());
      const std::vector<ir::Node*> nodes = WithoutGradient(graph, path);
      if (nodes.empty()) return absl::OkStatus();
      HT_RETURN_IF_ERROR(ReplaceByDecompositions(graph, nodes, name()));
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

  // Adds the gradients of one sweep that are meant for `optimizer`. Those that an earlier sweep
  // gave under the same scale are summed, scaled as they are.
  static absl::Status Collect(const ir::Graph& graph,
                              const std::map<ValueKey, ir::Value>& gradients,
                              const ir::Node& optimizer, const std::string& scaler,
                              std::vector<Delivered>& delivered) {
    const auto& names = optimizer.attrs().Get<std::vector<std::string>>("params");
    const std::set<std::string> params(names.begin(), names.end());
    std::map<std::string, size_t> earlier;
    for (size_t i = 0; i < delivered.size(); ++i) {
      if (delivered[i].scaler == scaler) earlier[delivered[i].param] = i;
    }
    ir::Builder b = BuilderLike(optimizer, "autodiff");
    for (const ir::Node* node : graph.variable_nodes()) {
      const std::string& name = node->attrs().GetString("name");
      const auto found = gradients.find(KeyOf(node->output()));
      if (found == gradients.end() || !params.contains(name)) continue;
      const auto at = earlier.find(name);
      if (at == earlier.end()) {
        delivered.push_back({found->second, name, scaler});
        continue;
      }
      ir::Value& sum = delivered[at->second].gradient;
      sum = b.Op("add", {b.Wrap(sum), b.Wrap(found->second)}).value();
      HT_RETURN_IF_ERROR(b.status());
    }
    return absl::OkStatus();
  }

  // In the order in which the sweeps made them: sorting then keeps that order, and the gradient
  // that flows back need not outlive the layer it is meant for.
  static void Deliver(std::vector<Delivered> delivered, ir::Node& optimizer) {
    std::stable_sort(delivered.begin(), delivered.end(), [](const auto& a, const auto& b) {
      return KeyOf(a.gradient) < KeyOf(b.gradient);
    });
    const std::string& own = optimizer.attrs().GetString("scaler");
    std::vector<std::string> grad_params, grad_scalers;
    bool of_other_scalers = false;
    for (const Delivered& d : delivered) {
      optimizer.add_input(d.gradient);
      grad_params.push_back(d.param);
      grad_scalers.push_back(d.scaler);
      of_other_scalers |= d.scaler != own;
    }
    optimizer.mutable_attrs().Set("grad_params", grad_params);
    if (of_other_scalers) optimizer.mutable_attrs().Set("grad_scalers", grad_scalers);
  }

  // A gradient of a sweep that started from `scale`, as the output of the `gradient` marker:
  // without scale, and wide, since 16 bit would lose what the scale has saved. As it is where there
  // is no scaler.
  static absl::StatusOr<ir::Value> Unscaled(const ir::Node& marker, ir::Value gradient,
                                            ir::Value scale) {
    if (marker.attrs().GetString("scaler").empty()) return gradient;
    ir::Builder b = BuilderLike(marker, "autodiff");
    const ir::Expr wide = b.Cast(b.Wrap(gradient), ops::WideDType(gradient.dtype()));
    ir::Expr inverse = 1.0 / b.Cast(b.Wrap(scale), DType::kF64);
    if (inverse.shape().rank() > 0) {
      inverse = b.Op("reshape", {inverse}, {{"shape", std::vector<int64_t>{}}});
    }
    b.NameNext("inverse_scale");
    const ir::Expr unscaled = wide * b.Cast(inverse, wide.dtype());
    HT_RETURN_IF_ERROR(b.status());
    return unscaled.value();
  }

  // Nothing is differentiated any more, so nothing has to be held back.
  static void RemoveDetaches(ir::Graph& graph) {
    const std::vector<ir::Node*> detaches = NodesOf(graph, "detach");
    Replacements replacements;
    for (ir::Node* node : detaches) replacements.Replace(node->output(), node->input(0));
    replacements.Finish(graph);
    graph.Remove(detaches);
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
