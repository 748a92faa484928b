#include "halftone/passes/autodiff/accumulate_gradients.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "halftone/optim/update_nodes.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/amp/scaling.h"
#include "halftone/passes/autodiff/mixed_scales.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr char kAccumulateGradientsPass[] = "accumulate-gradients";

using ir::Expr;

bool IsOptimizer(const ir::Node& node) { return IsOp(node, "optimizer"); }

// What has to be finite for the buffers of a step to move.
bool GuardsBuffers(const ir::Node& optimizer, const ir::Node* scaler) {
  const ir::Node& says = scaler != nullptr ? *scaler : optimizer;
  const bool skips = scaler != nullptr || optimizer.attrs().GetBool("skip_nonfinite");
  return skips && !says.attrs().GetBool("update_buffers_on_skip");
}

bool HasBufferCommits(const ir::Graph& graph) {
  const std::vector<ir::Node*> commits = graph.commits();
  return std::any_of(commits.begin(), commits.end(), [&graph](const ir::Node* commit) {
    const ir::Variable* found = graph.FindVariable(commit->attrs().GetString("variable"));
    return found != nullptr && found->kind == ir::VariableKind::kBuffer;
  });
}

// The variables of the gradient sums of an optimizer, in the order of its inputs.
absl::StatusOr<std::vector<Expr>> SumsOf(ir::Builder& b, const ir::Node& optimizer) {
  const std::string& name = optimizer.attrs().GetString("name");
  std::vector<Expr> sums;
  for (const std::string& param : optimizer.attrs().Get<std::vector<std::string>>("grad_params")) {
    const ir::Variable* found = b.graph().FindVariable(param);
    if (found == nullptr) {
      return InvalidArgument(name, ": parameter \"", param, "\" is not a variable of the graph");
    }
    // By value: declaring the sum moves the table.
    const ir::ValueType type = optim::GradSumType(found->type);
    sums.push_back(b.Var(
        optim::StateVariable(optim::SlotVariable(name, param, optim::kGradSumSlot), type, 0)));
  }
  HT_RETURN_IF_ERROR(b.status());
  return sums;
}

Expr WindowFinite(ir::Builder& b, const ir::Node& scaler) {
  const std::string name = optim::WindowFiniteVariable(scaler.attrs().GetString("name"));
  return b.Var(optim::StateVariable(name, {DType::kBool, {}}, 1, ir::VariableKind::kScaler));
}

// The step that adds the gradients of a micro-batch.
class AddStep {
 public:
  AddStep(ir::Graph& graph, const ir::Node& origin, PassContext& context)
      : graph_(graph), b_(BuilderLike(origin, kAccumulateGradientsPass)), context_(context) {}

  absl::Status Run(const ir::Node& origin) {
    const std::vector<ir::Node*> optimizers = FindMarkers(graph_, "optimizer");
    const std::vector<ir::Node*> scalers = FindMarkers(graph_, "scaler");
    const Expr before = b_.Var(optim::MicroBatches());
    const Expr one = b_.Scalar(DType::kI64, 1);
    b_.NameNext("micro_batch");
    count_ = b_.Op("add", {before, one});
    const bool has_buffers = HasBufferCommits(graph_);
    for (const ir::Node* optimizer : optimizers) {
      HT_RETURN_IF_ERROR(AddSums(*optimizer, has_buffers));
    }
    b_.Commit(optim::kMicroBatchesVariable, count_);
    for (const ir::Node* scaler : scalers) KeepFlag(*scaler);
    HT_RETURN_IF_ERROR(b_.status());
    if (!flags_.empty()) {
      HT_ASSIGN_OR_RETURN(context_.stats["guarded_buffers"],
                          GuardBuffers(graph_, origin, kAccumulateGradientsPass, flags_));
    }
    std::erase_if(graph_.outputs(),
                  [](const ir::Output& output) { return IsOptimizer(*output.value.node); });
    graph_.Remove(optimizers);
    graph_.Remove(scalers);
    return absl::OkStatus();
  }

 private:
  absl::Status AddSums(const ir::Node& optimizer, bool has_buffers) {
    const ir::Node* scaler = FindScaler(graph_, optimizer.attrs().GetString("scaler"));
    const Expr inverse_scale = scaler == nullptr
                                   ? b_.Scalar(DType::kF32, 1)
                                   : optim::InverseScaleNodes(ScalerVariable(b_, *scaler, "scale"));
    HT_ASSIGN_OR_RETURN(const std::vector<Expr> sums, SumsOf(b_, optimizer));
    std::vector<Expr> checked = {inverse_scale};
    for (size_t i = 0; i < sums.size(); ++i) {
      const ir::Value gradient = optimizer.input(static_cast<int>(i));
      const std::string& param = optimizer.attrs().Get<std::vector<std::string>>("grad_params")[i];
      const Expr sum = optim::AccumulatedNode(param + "_grad_sum", sums[i],
                                              b_.Cast(b_.Wrap(gradient), sums[i].dtype()),
                                              inverse_scale, count_);
      HT_RETURN_IF_ERROR(b_.status());
      b_.Commit(
          optim::SlotVariable(optimizer.attrs().GetString("name"), param, optim::kGradSumSlot),
          sum);
      checked.push_back(b_.Wrap(gradient));
      ++context_.stats["sums"];
    }
    if (has_buffers && checked.size() > 1 && GuardsBuffers(optimizer, scaler)) {
      b_.NameNext(optimizer.attrs().GetString("name") + ".grad_stats");
      flags_.push_back(b_.Op("grad_stats", checked).value());
    }
    return b_.status();
  }

  // What a scaler has heard itself, of gradients that are summed with those of others.
  void KeepFlag(const ir::Node& scaler) {
    if (scaler.num_inputs() == 0) return;
    const Expr first = b_.Op("equal", {count_, b_.Scalar(DType::kI64, 1)});
    const Expr so_far = b_.Op("logical_or", {first, WindowFinite(b_, scaler)});
    const Expr all = b_.Op("logical_and", {so_far, AllOf(b_, scaler.inputs())});
    if (!all.valid()) return;
    b_.Commit(optim::WindowFiniteVariable(scaler.attrs().GetString("name")), all);
  }

  ir::Graph& graph_;
  ir::Builder b_;
  PassContext& context_;
  Expr count_;
  std::vector<ir::Value> flags_;
};

// The markers of an update by the sums, and nothing else of the graph.
absl::Status KeepUpdate(ir::Graph& graph, const ir::Node& origin, PassContext& context) {
  ir::Builder b = BuilderLike(origin, kAccumulateGradientsPass);
  std::vector<ir::Node*> before = Snapshot(graph);
  // Those of sums may be there; what nobody reads goes as dead code. And the wish to reduce the sums over
  // ranks is for the next pass.
  std::erase_if(before, [](const ir::Node* node) {
    return IsOp(*node, "variable") || IsOp(*node, "data_parallel");
  });
  std::set<const ir::Node*> made;
  for (ir::Node* marker : before) {
    if (IsOp(*marker, "scaler")) {
      std::vector<Expr> flags;
      if (marker->num_inputs() > 0) flags.push_back(WindowFinite(b, *marker));
      b.NameNext(marker->name());
      b.Root("scaler", flags, marker->attrs());
    } else if (IsOptimizer(*marker)) {
      HT_ASSIGN_OR_RETURN(const std::vector<Expr> sums, SumsOf(b, *marker));
      ir::Attributes attrs = marker->attrs();
      attrs.Set("accumulated", true);
      b.NameNext(marker->name());
      const std::vector<Expr> results = b.Make("optimizer", sums, attrs);
      HT_RETURN_IF_ERROR(b.status());
      for (int i = 0; i < marker->num_outputs(); ++i) {
        graph.ReplaceUses(marker->output(i), results[static_cast<size_t>(i)].value());
      }
      made.insert(results[0].value().node);
      context.stats["sums"] += static_cast<int64_t>(sums.size());
    }
  }
  b.Var(optim::MicroBatches());
  b.Commit(optim::kMicroBatchesVariable, b.Scalar(DType::kI64, 0));
  HT_RETURN_IF_ERROR(b.status());
  std::erase_if(graph.outputs(),
                [&made](const ir::Output& output) { return made.count(output.value.node) == 0; });
  graph.Remove(before);
  return absl::OkStatus();
}

class AccumulateGradients : public Pass {
 public:
  const char* name() const override { return kAccumulateGradientsPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, "accumulation");
    if (markers.empty()) return false;
    if (markers.size() > 1) {
      return InvalidArgument(markers[1]->Label(), ": a second marker; expected one");
    }
    HT_RETURN_IF_ERROR(CheckReaders(graph));
    HT_RETURN_IF_ERROR(LowerMixedScales(graph, name()));
    ir::Node* const marker = markers[0];
    if (marker->attrs().GetString("part") == "update") {
      HT_RETURN_IF_ERROR(KeepUpdate(graph, *marker, context));
    } else {
      HT_RETURN_IF_ERROR(AddStep(graph, *marker, context).Run(*marker));
      graph.Remove({marker});
    }
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }

 private:
  static absl::Status CheckReaders(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (const ir::Value& input : node->inputs()) {
        if (!IsOptimizer(*input.node)) continue;
        return InvalidArgument(node->Label(), ": reads a result of ", input.node->Label(),
                               ", which is not known in every micro-batch; expected no reader");
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeAccumulateGradients() { return std::make_unique<AccumulateGradients>(); }

}  // namespace halftone::passes
