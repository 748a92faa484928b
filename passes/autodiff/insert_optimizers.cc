#include "halftone/passes/autodiff/insert_optimizers.h"

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "halftone/optim/update_nodes.h"
#include "halftone/passes/amp/scaling.h"
#include "halftone/passes/autodiff/mixed_scales.h"
#include "halftone/passes/autodiff/optimizer_lowering.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr char kInsertOptimizersPass[] = "insert-optimizers";

using ir::Expr;

// Values point to their builder, which must not move.
using Lowerings = std::deque<OptimizerLowering>;

class InsertOptimizers : public Pass {
 public:
  const char* name() const override { return kInsertOptimizersPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    HT_RETURN_IF_ERROR(LowerMixedScales(graph, name()));
    Lowerings lowerings;
    HT_RETURN_IF_ERROR(Collect(graph, lowerings));
    if (lowerings.empty()) return false;
    ParameterWriters writers;
    for (const ir::Node* commit : graph.commits()) {
      writers[commit->attrs().GetString("variable")] = "a commit";
    }
    std::vector<ir::Value> flags, buffer_flags;
    for (OptimizerLowering& lowering : lowerings) HT_RETURN_IF_ERROR(lowering.TakeRows(context));
    for (OptimizerLowering& lowering : lowerings) {
      HT_RETURN_IF_ERROR(lowering.AddStatistics());
      if (lowering.checked()) flags.push_back(lowering.finite());
      if (lowering.guards_buffers()) buffer_flags.push_back(lowering.finite());
    }
    for (OptimizerLowering& lowering : lowerings) lowering.SetApply(ApplyFlag(lowering, flags));
    HT_RETURN_IF_ERROR(ClipOverAll(lowerings));
    for (OptimizerLowering& lowering : lowerings) {
      HT_RETURN_IF_ERROR(lowering.AddUpdates(writers, context));
    }
    if (!buffer_flags.empty()) {
      HT_ASSIGN_OR_RETURN(const int64_t guarded, GuardBuffers(graph, lowerings[0].origin(),
                                                              kInsertOptimizersPass, buffer_flags));
      context.stats["guarded_buffers"] += guarded;
    }
    for (OptimizerLowering& lowering : lowerings) lowering.RemoveMarkers();
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }

 private:
  static absl::Status Collect(const ir::Graph& graph, Lowerings& lowerings) {
    std::map<std::string, OptimizerLowering*> known;
    for (ir::Node* marker : FindMarkers(graph, "optimizer")) {
      OptimizerLowering*& lowering = known[marker->attrs().GetString("name")];
      if (lowering != nullptr) {
        HT_RETURN_IF_ERROR(lowering->AddGroup(marker));
        continue;
      }
      lowerings.emplace_back(marker, FindScaler(graph, marker->attrs().GetString("scaler")),
                             kInsertOptimizersPass);
      lowering = &lowerings.back();
    }
    return absl::OkStatus();
  }

  static Expr ApplyFlag(OptimizerLowering& lowering, const std::vector<ir::Value>& flags) {
    ir::Builder& b = lowering.builder();
    if (!lowering.has_gradients()) return b.Scalar(DType::kBool, 0);
    if (lowering.skips_on_any()) return AllOf(b, flags);
    return lowering.checked() ? b.Wrap(lowering.finite()) : b.Scalar(DType::kBool, 1);
  }

  // One coefficient for all optimizers with clip_norm_of_all: their norms after unscaling, summed
  // as squares in f64. One that skips the step is left out; a norm that is not finite although its
  // optimizer goes on clips nothing.
  static absl::Status ClipOverAll(Lowerings& lowerings) {
    std::vector<OptimizerLowering*> members;
    for (OptimizerLowering& lowering : lowerings) {
      if (lowering.clip_norm_of_all() > 0) members.push_back(&lowering);
    }
    if (members.empty()) return absl::OkStatus();
    const double largest = members[0]->clip_norm_of_all();
    ir::Builder& b = members[0]->builder();
    Expr sum = b.Scalar(DType::kF64, 0);
    std::vector<ir::Value> go_on_finite;
    for (const OptimizerLowering* member : members) {
      if (member->clip_norm_of_all() != largest) {
        return InvalidArgument("optimizer \"", member->name(), "\": clip_norm_of_all is ",
                               member->clip_norm_of_all(), ", that of \"", members[0]->name(),
                               "\" is ", largest, "; expected one for all");
      }
      const Expr norm = b.Cast(b.Wrap(member->norm().value()), DType::kF64);
      const Expr square = norm * norm;
      if (member->checked()) {
        const Expr apply = b.Wrap(member->apply().value());
        sum = sum + b.Op("where", {apply, square, b.Scalar(DType::kF64, 0)});
      } else {
        sum = sum + square;
        go_on_finite.push_back(member->finite());
      }
    }
    const Expr norm = b.Cast(b.Op("sqrt", {sum}), DType::kF32);
    const Expr clip = optim::ClipCoefficientNodes(norm, AllOf(b, go_on_finite), largest);
    HT_RETURN_IF_ERROR(b.status());
    for (OptimizerLowering* member : members) member->SetClip(member->builder().Wrap(clip.value()));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeInsertOptimizers() { return std::make_unique<InsertOptimizers>(); }

}  // namespace halftone::passes
