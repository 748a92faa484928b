#include "halftone/passes/insert_optimizers.h"

#include <deque>
#include <map>
#include <set>

#include "halftone/optim/update_nodes.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/rewrite.h"
#include "halftone/passes/scaling.h"

namespace halftone::passes {
namespace {

constexpr char kInsertOptimizersPass[] = "insert-optimizers";

using ir::Expr;

ir::Variable StateVariable(const std::string& name, const ir::ValueType& type, double init,
                           ir::VariableKind kind = ir::VariableKind::kOptimizer) {
  ir::Variable variable;
  variable.name = name;
  variable.type = type;
  variable.kind = kind;
  variable.trainable = false;
  variable.init.a = init;
  return variable;
}

// One optimizer on its way from marker to nodes.
class Lowering {
 public:
  Lowering(ir::Node* marker, ir::Node* scaler)
      : marker_(marker), scaler_(scaler), b_(BuilderLike(*marker, kInsertOptimizersPass)) {}

  bool has_gradients() const { return marker_->num_inputs() > 0; }
  bool checked() const { return scaler_ != nullptr && has_gradients(); }
  ir::Value finite() const { return finite_.value(); }

  // Inverse scale, norm, finite flag and clip coefficient.
  absl::Status AddStatistics() {
    const ir::Attributes& attrs = marker_->attrs();
    const double clip_norm = attrs.GetFloat("clip_norm");
    const Expr one = b_.Scalar(DType::kF32, 1);
    inverse_scale_ = one;
    clip_ = one;
    if (!has_gradients()) {
      norm_ = b_.Scalar(DType::kF32, 0);
      return b_.status();
    }
    if (scaler_ != nullptr) {
      inverse_scale_ = optim::InverseScaleNodes(ScalerVariable(b_, *scaler_, "scale"));
    }
    if (scaler_ == nullptr && clip_norm == 0 && !NormIsRead()) return b_.status();
    b_.NameNext(Named("grad_stats"));
    std::vector<Expr> stats = b_.Make("grad_stats", StatisticsInputs());
    HT_RETURN_IF_ERROR(b_.status());
    finite_ = stats[0];
    norm_ = stats[1];
    if (clip_norm > 0) clip_ = optim::ClipCoefficientNodes(norm_, finite_, clip_norm);
    if (scaler_ != nullptr) {
      scaler_->add_input(finite_.value());
      const std::string name = optim::FirstNonFiniteVariable(attrs.GetString("name"));
      b_.Var(StateVariable(name, {DType::kI32, {}}, -1, ir::VariableKind::kScaler));
      b_.Commit(name, stats[2]);
    }
    return b_.status();
  }

  // `apply`: the flag that this optimizer obeys. `writers`: who commits to which variable.
  absl::Status AddUpdates(Expr apply, std::map<std::string, std::string>& writers,
                          PassContext& context) {
    const ir::Attributes& attrs = marker_->attrs();
    const std::string name = attrs.GetString("name");
    HT_ASSIGN_OR_RETURN(optim::UpdateRule rule, optim::RuleOfMarker(attrs));
    HT_ASSIGN_OR_RETURN(optim::LRSchedule schedule,
                        optim::LRSchedule::Parse(attrs.GetString("schedule")));
    Expr base_lr = b_.Var(
        StateVariable(optim::LearningRateVariable(name), {DType::kF32, {}}, attrs.GetFloat("lr")));
    const std::string steps_name = optim::AppliedStepsVariable(name);
    Expr steps = b_.Var(StateVariable(steps_name, {DType::kI64, {}}, 0));
    HT_RETURN_IF_ERROR(b_.status());
    if (has_gradients()) {
      Expr lr = optim::LearningRateNodes(schedule, base_lr, steps);
      const Expr one = b_.Scalar(DType::kI64, 1);
      b_.NameNext(Named("step"));
      Expr step = b_.Op("add", {steps, one});
      const std::vector<Expr> common = {lr, inverse_scale_, clip_, apply, step};
      for (int i = 0; i < marker_->num_inputs(); ++i) {
        HT_RETURN_IF_ERROR(AddUpdate(rule, name, i, common, writers));
        ++context.stats["updates"];
      }
      b_.Commit(steps_name,
                IsSplat(apply.value(), 1) ? step : b_.Op("where", {apply, step, steps}));
    }
    ir::Graph& graph = marker_->graph();
    if (norm_.valid()) graph.ReplaceUses(marker_->output(0), norm_.value());
    graph.ReplaceUses(marker_->output(1), apply.value());
    graph.Remove({marker_});
    ++context.stats["optimizers"];
    return b_.status();
  }

  ir::Builder& builder() { return b_; }
  bool skips_on_any() const { return marker_->attrs().GetString("skip") == "any"; }

 private:
  // A node name that tells whose node it is: "optimizer0.step".
  std::string Named(const char* what) const {
    return marker_->attrs().GetString("name") + "." + what;
  }

  bool NormIsRead() const {
    const ir::UseMap uses(marker_->graph());
    return uses.is_output(marker_->output(0)) || !uses.uses(marker_->output(0)).empty();
  }

  // One gradient for every parameter, so that grad_stats' index counts in `params`; a parameter
  // without gradient gets an empty one.
  std::vector<Expr> StatisticsInputs() {
    std::map<std::string, ir::Value> gradients;
    const auto& with_gradient = marker_->attrs().Get<std::vector<std::string>>("grad_params");
    for (size_t i = 0; i < with_gradient.size(); ++i) {
      gradients[with_gradient[i]] = marker_->input(static_cast<int>(i));
    }
    std::vector<Expr> inputs = {inverse_scale_};
    for (const std::string& name : marker_->attrs().Get<std::vector<std::string>>("params")) {
      auto it = gradients.find(name);
      inputs.push_back(it != gradients.end() ? b_.Wrap(it->second)
                                             : b_.Constant(Tensor::Zeros(DType::kF32, Shape{0})));
    }
    return inputs;
  }

  absl::Status AddUpdate(const optim::UpdateRule& rule, const std::string& optimizer, int i,
                         const std::vector<Expr>& common,
                         std::map<std::string, std::string>& writers) {
    const auto& names = marker_->attrs().Get<std::vector<std::string>>("grad_params");
    const std::string name = names[i];
    const ir::Variable* found = marker_->graph().FindVariable(name);
    if (found == nullptr) {
      return InvalidArgument(optimizer, ": parameter \"", name,
                             "\" is not a variable of the graph");
    }
    auto [writer, is_first] = writers.emplace(name, optimizer);
    if (!is_first) {
      return InvalidArgument(optimizer, ": parameter \"", name, "\" is already changed by ",
                             writer->second, "; expected one writer");
    }
    const ir::Variable parameter = *found;  // declaring state moves the table
    Expr param = b_.Var(parameter);
    std::vector<Expr> inputs = {param, b_.Cast(b_.Wrap(marker_->input(i)), parameter.type.dtype)};
    inputs.insert(inputs.end(), common.begin(), common.end());
    std::vector<std::string> committed = {name};
    for (const std::string& slot : rule.slots) {
      committed.push_back(optim::SlotVariable(optimizer, name, slot));
      inputs.push_back(b_.Var(StateVariable(committed.back(), parameter.type, 0)));
    }
    b_.NameNext(name + "_next");
    std::vector<Expr> outputs = b_.Make(rule.op, inputs, rule.attrs);
    HT_RETURN_IF_ERROR(b_.status());
    for (size_t k = 0; k < committed.size(); ++k) b_.Commit(committed[k], outputs[k]);
    return b_.status();
  }

  ir::Node* marker_;
  ir::Node* scaler_;  // null: no loss scaling
  ir::Builder b_;
  Expr inverse_scale_, norm_, finite_, clip_;
};

class InsertOptimizers : public Pass {
 public:
  const char* name() const override { return kInsertOptimizersPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    std::deque<Lowering> lowerings;  // values point to their builder, which must not move
    std::set<std::string> names;
    for (ir::Node* marker : FindMarkers(graph, "optimizer")) {
      const std::string& name = marker->attrs().GetString("name");
      if (!names.insert(name).second) {
        return InvalidArgument("optimizer \"", name, "\" is declared twice; expected once");
      }
      lowerings.emplace_back(marker, FindScaler(graph, marker->attrs().GetString("scaler")));
    }
    if (lowerings.empty()) return false;
    std::map<std::string, std::string> writers;
    for (const ir::Node* commit : graph.commits()) {
      writers[commit->attrs().GetString("variable")] = "a commit";
    }
    std::vector<ir::Value> flags;
    for (Lowering& lowering : lowerings) {
      HT_RETURN_IF_ERROR(lowering.AddStatistics());
      if (lowering.checked()) flags.push_back(lowering.finite());
    }
    for (Lowering& lowering : lowerings) {
      HT_RETURN_IF_ERROR(lowering.AddUpdates(ApplyFlag(lowering, flags), writers, context));
    }
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }

 private:
  static Expr ApplyFlag(Lowering& lowering, const std::vector<ir::Value>& flags) {
    ir::Builder& b = lowering.builder();
    if (!lowering.has_gradients()) return b.Scalar(DType::kBool, 0);
    if (lowering.skips_on_any()) return AllOf(b, flags);
    return lowering.checked() ? b.Wrap(lowering.finite()) : b.Scalar(DType::kBool, 1);
  }
};

}  // namespace

std::unique_ptr<Pass> MakeInsertOptimizers() { return std::make_unique<InsertOptimizers>(); }

}  // namespace halftone::passes
