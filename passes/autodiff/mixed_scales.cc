#include "halftone/passes/autodiff/mixed_scales.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/ops/support/nn.h"
#include "halftone/optim/update_nodes.h"
#include "halftone/passes/amp/scaling.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Expr;
using Names = std::vector<std::string>;

const Names& GradScalers(const ir::Node& marker) {
  return marker.attrs().Get<Names>("grad_scalers");
}

const std::string& ScalerOf(const ir::Node& marker, int input) {
  const Names& scalers = GradScalers(marker);
  return scalers.empty() ? marker.attrs().GetString("scaler") : scalers[static_cast<size_t>(input)];
}

// How an optimizer skips that has its gradients from these scalers. All its groups skip together,
// also those that no scaled loss reaches.
struct Skipping {
  bool at_all = false;
  bool update_buffers = true;

  Skipping(const ir::Graph& graph, const std::set<std::string>& scalers) {
    for (const std::string& name : scalers) {
      const ir::Node* scaler = FindScaler(graph, name);
      if (scaler == nullptr) continue;  // not scaled
      at_all = true;
      update_buffers &= scaler->attrs().GetBool("update_buffers_on_skip");
    }
  }
};

// One marker on its way to true gradients.
class Unscaling {
 public:
  Unscaling(ir::Node& marker, const Skipping& skipping, const char* pass)
      : marker_(marker), skipping_(skipping), b_(BuilderLike(marker, pass)) {}

  absl::Status Run() {
    std::map<std::string, Expr> inverses;
    for (const std::string& name : Scalers()) {
      ir::Node* scaler = FindScaler(marker_.graph(), name);
      if (scaler == nullptr) continue;  // not scaled
      inverses[name] = optim::InverseScaleNodes(ScalerVariable(b_, *scaler, "scale"));
      HT_RETURN_IF_ERROR(Check(*scaler, inverses[name]));
    }
    std::vector<Expr> sums;
    Names params;
    const Names& grad_params = marker_.attrs().Get<Names>("grad_params");
    for (int i = 0; i < marker_.num_inputs(); ++i) {
      const std::string& param = grad_params[static_cast<size_t>(i)];
      const auto inverse = inverses.find(ScalerOf(marker_, i));
      Expr part = b_.Cast(b_.Wrap(marker_.input(i)), ops::WideDType(marker_.input(i).dtype()));
      if (inverse != inverses.end()) part = part * b_.Cast(inverse->second, part.dtype());
      const auto at = std::find(params.begin(), params.end(), param) - params.begin();
      if (static_cast<size_t>(at) == params.size()) {
        params.push_back(param);
        sums.push_back(part);
      } else {
        sums[static_cast<size_t>(at)] = sums[static_cast<size_t>(at)] + part;
      }
    }
    return Replace(sums, params);
  }

 private:
  std::set<std::string> Scalers() const {
    std::set<std::string> scalers;
    for (int i = 0; i < marker_.num_inputs(); ++i) scalers.insert(ScalerOf(marker_, i));
    return scalers;
  }

  // Tells `scaler` whether its gradients are finite.
  absl::Status Check(ir::Node& scaler, Expr inverse_scale) {
    std::vector<Expr> inputs = {inverse_scale};
    for (int i = 0; i < marker_.num_inputs(); ++i) {
      if (ScalerOf(marker_, i) != scaler.attrs().GetString("name")) continue;
      inputs.push_back(b_.Wrap(marker_.input(i)));
    }
    b_.NameNext(Concat(marker_.attrs().GetString("name"), ".", scaler.attrs().GetString("name"),
                       ".grad_stats"));
    const std::vector<Expr> stats = b_.Make("grad_stats", inputs);
    HT_RETURN_IF_ERROR(b_.status());
    scaler.add_input(stats[0].value());
    return absl::OkStatus();
  }

  absl::Status Replace(const std::vector<Expr>& gradients, const Names& params) {
    ir::Attributes attrs = marker_.attrs();
    attrs.Set("grad_params", params);
    attrs.Set("grad_scalers", Names());
    attrs.Set("scaler", std::string());
    if (skipping_.at_all) {
      attrs.Set("skip_nonfinite", true);
      attrs.Set("update_buffers_on_skip", skipping_.update_buffers);
    }
    b_.NameNext(marker_.name());
    const std::vector<Expr> outputs = b_.Make("optimizer", gradients, attrs);
    HT_RETURN_IF_ERROR(b_.status());
    ir::Graph& graph = marker_.graph();
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph.ReplaceUses(marker_.output(static_cast<int>(i)), outputs[i].value());
    }
    graph.Remove({&marker_});
    return absl::OkStatus();
  }

  ir::Node& marker_;
  const Skipping skipping_;
  ir::Builder b_;
};

}  // namespace

absl::Status LowerMixedScales(ir::Graph& graph, const char* pass) {
  std::map<std::string, std::vector<ir::Node*>> optimizers;  // by name; its parameter groups
  std::map<std::string, std::set<std::string>> scalers;
  std::set<std::string> of_others;
  for (ir::Node* marker : FindMarkers(graph, "optimizer")) {
    const std::string& name = marker->attrs().GetString("name");
    optimizers[name].push_back(marker);
    for (int i = 0; i < marker->num_inputs(); ++i) scalers[name].insert(ScalerOf(*marker, i));
    if (!GradScalers(*marker).empty()) of_others.insert(name);
  }
  for (const std::string& name : of_others) {
    const Skipping skipping(graph, scalers[name]);
    for (ir::Node* marker : optimizers[name]) {
      // Names that were several may be one, "", now that idle scalers are dropped.
      if (scalers[name].size() > 1 || scalers[name].contains("")) {
        HT_RETURN_IF_ERROR(Unscaling(*marker, skipping, pass).Run());
        continue;
      }
      marker->mutable_attrs().Set("scaler", *scalers[name].begin());
      marker->mutable_attrs().Set("grad_scalers", Names());
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::passes
