#include "halftone/passes/amp/update_scalers.h"

#include "halftone/optim/grad_scaler.h"
#include "halftone/passes/amp/scaling.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr char kUpdateScalersPass[] = "update-scalers";

using ir::Expr;

class UpdateScalers : public Pass {
 public:
  const char* name() const override { return kUpdateScalersPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> scalers = FindMarkers(graph, "scaler");
    if (scalers.empty()) return false;
    std::vector<ir::Value> flags;
    for (const ir::Node* scaler : scalers) {
      HT_RETURN_IF_ERROR(AddUpdate(*scaler));
      if (!scaler->attrs().GetBool("update_buffers_on_skip")) {
        flags.insert(flags.end(), scaler->inputs().begin(), scaler->inputs().end());
      }
      ++context.stats["scalers"];
    }
    if (!flags.empty()) {
      HT_ASSIGN_OR_RETURN(const int64_t guarded,
                          GuardBuffers(graph, *scalers[0], kUpdateScalersPass, flags));
      context.stats["guarded_buffers"] += guarded;
    }
    graph.Remove(scalers);
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }

 private:
  static absl::Status AddUpdate(const ir::Node& scaler) {
    ir::Builder b = BuilderLike(scaler, kUpdateScalersPass);
    const ir::Attributes& attrs = scaler.attrs();
    std::vector<std::string> names;
    std::vector<Expr> inputs;
    for (const ir::Variable& variable : amp::ScalerVariables(
             attrs.GetString("name"), attrs.GetFloat("init_scale"), attrs.GetInt("hysteresis"))) {
      names.push_back(variable.name);
      inputs.push_back(b.Var(variable));
    }
    if (scaler.num_inputs() == 0) return b.status();
    inputs.push_back(AllOf(b, scaler.inputs()));
    ir::Attributes update{{"dynamic", attrs.GetString("mode") == "dynamic"}};
    for (const char* copied : {"growth_factor", "backoff_factor", "growth_interval", "min_scale",
                               "max_scale", "hysteresis"}) {
      update.Set(copied, *attrs.Find(copied));
    }
    b.NameNext(attrs.GetString("name") + ".next");
    std::vector<Expr> next = b.Make("loss_scale_update", inputs, update);
    HT_RETURN_IF_ERROR(b.status());
    for (size_t i = 0; i < names.size(); ++i) b.Commit(names[i], next[i]);
    return b.status();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeUpdateScalers() { return std::make_unique<UpdateScalers>(); }

}  // namespace halftone::passes
