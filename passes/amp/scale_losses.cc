#include "halftone/passes/amp/scale_losses.h"

#include <algorithm>
#include <set>

#include "halftone/passes/amp/scaling.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr char kScaleLossesPass[] = "scale-losses";

bool UsesF16(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (node->output_type(i).dtype == DType::kF16) return true;
    }
  }
  return false;
}

class ScaleLosses : public Pass {
 public:
  const char* name() const override { return kScaleLossesPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    HT_RETURN_IF_ERROR(CheckNames(graph));
    bool changed = DropIdleScalers(graph, context);
    const std::vector<ir::Node*> seeds = FindMarkers(graph, "loss_seed");
    Replacements replacements;
    for (ir::Node* seed : seeds) {
      ir::Builder b = BuilderLike(*seed, kScaleLossesPass);
      ir::Expr value = SeedValue(b, graph, *seed, context);
      HT_RETURN_IF_ERROR(b.status());
      replacements.Replace(seed->output(), value.value());
      changed = true;
    }
    replacements.Finish(graph);
    graph.Remove(seeds);
    if (changed) HT_RETURN_IF_ERROR(graph.Sort());
    return changed;
  }

 private:
  static absl::Status CheckNames(const ir::Graph& graph) {
    std::set<std::string> declared;
    for (const ir::Node* scaler : FindMarkers(graph, "scaler")) {
      const std::string& name = scaler->attrs().GetString("name");
      if (!declared.insert(name).second) {
        return InvalidArgument("scaler \"", name, "\" is declared twice; expected once");
      }
    }
    for (const char* op : {"loss_seed", "optimizer"}) {
      for (const ir::Node* user : FindMarkers(graph, op)) {
        const std::string& name = user->attrs().GetString("scaler");
        if (name.empty() || declared.count(name)) continue;
        std::string known;
        for (const std::string& other : declared) known += (known.empty() ? "" : ", ") + other;
        return InvalidArgument(user->Label(), ": scaler \"", name,
                               "\" is not declared; known: ", known.empty() ? "none" : known);
      }
    }
    return absl::OkStatus();
  }

  static bool DropIdleScalers(ir::Graph& graph, PassContext& context) {
    const bool uses_f16 = UsesF16(graph);
    bool dropped = false;
    for (ir::Node* scaler : FindMarkers(graph, "scaler")) {
      const std::string name = scaler->attrs().GetString("name");
      const bool disabled = scaler->attrs().GetString("mode") == "disabled";
      const bool automatic = scaler->attrs().GetBool("automatic");
      const bool unneeded = automatic && !uses_f16;
      if (automatic && uses_f16) {
        context.notes.push_back(Concat(name,
                                       ": a grad scaler was added, as gradients in f16 need one; "
                                       "set_grad_scaler sets another"));
      }
      if (!disabled && !unneeded) continue;
      if (!disabled) {
        context.notes.push_back(Concat(name,
                                       ": no value is f16, so gradients need no loss scale; "
                                       "the automatic scaler is off"));
      }
      for (const char* op : {"loss_seed", "optimizer"}) {
        for (ir::Node* user : FindMarkers(graph, op)) {
          if (user->attrs().GetString("scaler") == name) {
            user->mutable_attrs().Set("scaler", std::string());
          }
          if (!user->attrs().Has("grad_scalers")) continue;
          auto grad_scalers = user->attrs().Get<std::vector<std::string>>("grad_scalers");
          std::replace(grad_scalers.begin(), grad_scalers.end(), name, std::string());
          user->mutable_attrs().Set("grad_scalers", grad_scalers);
        }
      }
      graph.Remove({scaler});
      ++context.stats["dropped_scalers"];
      dropped = true;
    }
    return dropped;
  }

  static ir::Expr SeedValue(ir::Builder& b, const ir::Graph& graph, const ir::Node& seed,
                            PassContext& context) {
    const ir::ValueType& type = seed.output_type();
    const ir::Node* scaler = FindScaler(graph, seed.attrs().GetString("scaler"));
    ir::Expr value;
    if (scaler == nullptr) {
      value = b.Scalar(type.dtype, 1);
    } else {
      value = b.Cast(ScalerVariable(b, *scaler, "scale"), type.dtype);
      ++context.stats["scaled_losses"];
    }
    if (type.shape.rank() == 0) return value;
    const auto dims = type.shape.dims();
    return b.Op("broadcast_to", {value},
                {{"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
  }
};

}  // namespace

std::unique_ptr<Pass> MakeScaleLosses() { return std::make_unique<ScaleLosses>(); }

}  // namespace halftone::passes
