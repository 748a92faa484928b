#include "halftone/passes/autodiff/optimizer_lowering.h"

#include <algorithm>
#include <optional>

#include "halftone/optim/ema.h"
#include "halftone/optim/update_nodes.h"
#include "halftone/passes/amp/scaling.h"
#include "halftone/passes/autodiff/gather_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Expr;
using optim::StateVariable;
using Names = std::vector<std::string>;

}  // namespace

OptimizerLowering::OptimizerLowering(ir::Node* marker, ir::Node* scaler, const char* pass)
    : groups_{marker}, scaler_(scaler), b_(BuilderLike(*marker, pass)) {}

absl::Status OptimizerLowering::AddGroup(ir::Node* marker) {
  const auto number = [](const ir::Node* group) { return group->attrs().GetInt("group"); };
  for (const ir::Node* group : groups_) {
    if (number(group) != number(marker)) continue;
    return InvalidArgument("optimizer \"", name(), "\" is declared twice; expected once");
  }
  for (const char* common :
       {"rule", "scaler", "skip", "skip_nonfinite", "update_buffers_on_skip", "clip_norm",
        "clip_norm_of_all", "accumulated", "ema", "rounding", "seed"}) {
    if (ir::Equal(*attrs().Find(common), *marker->attrs().Find(common))) continue;
    return InvalidArgument("optimizer \"", name(), "\": ", common, " of group ", number(marker),
                           " is not that of group ", number(groups_[0]),
                           "; expected one for the optimizer");
  }
  groups_.push_back(marker);
  return absl::OkStatus();
}

bool OptimizerLowering::has_gradients() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const ir::Node* group) {
    return group->num_inputs() > 0 || !Elsewhere(*group).empty();
  });
}

absl::Status OptimizerLowering::TakeRows(PassContext& context) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    HT_ASSIGN_OR_RETURN(const optim::UpdateRule rule, optim::RuleOfMarker(groups_[g]->attrs()));
    for (int i = 0; i < groups_[g]->num_inputs(); ++i) {
      const GradientOwner owner{name(), attrs().GetString("rule"), ParameterOf(g, i)};
      HT_ASSIGN_OR_RETURN(const std::optional<RowGradient> rows,
                          FindRows(b_, groups_[g]->input(i), rule, owner, context));
      if (rows.has_value()) rows_[{g, i}] = *rows;
    }
  }
  return absl::OkStatus();
}

absl::Status OptimizerLowering::AddStatistics() {
  const double clip_norm = attrs().GetFloat("clip_norm");
  const Expr one = b_.Scalar(DType::kF32, 1);
  inverse_scale_ = one;
  clip_ = one;
  if (!has_gradients()) {
    norm_ = b_.Scalar(DType::kF32, 0);
    return b_.status();
  }
  if (attrs().GetBool("accumulated")) {
    inverse_scale_ = optim::InverseScaleNodes(b_.Var(optim::MicroBatches()));
  } else if (scaler_ != nullptr) {
    inverse_scale_ = optim::InverseScaleNodes(ScalerVariable(b_, *scaler_, "scale"));
  }
  if (!checked() && clip_norm == 0 && clip_norm_of_all() == 0 && !NormIsRead()) {
    return b_.status();
  }
  std::vector<Expr> inputs = StatisticsInputs();
  const std::vector<Expr> stats = is_sharded() ? StatsOverRanks(inputs) : StatsOf(inputs);
  HT_RETURN_IF_ERROR(b_.status());
  finite_ = stats[0];
  norm_ = stats[1];
  if (clip_norm > 0) clip_ = optim::ClipCoefficientNodes(norm_, finite_, clip_norm);
  if (scaler_ != nullptr) scaler_->add_input(finite_.value());
  const std::string first_bad = optim::FirstNonFiniteVariable(name());
  b_.Var(StateVariable(first_bad, {DType::kI32, {}}, -1, ir::VariableKind::kScaler));
  b_.Commit(first_bad, stats[2]);
  return b_.status();
}

absl::Status OptimizerLowering::AddUpdates(ParameterWriters& writers, PassContext& context) {
  HT_ASSIGN_OR_RETURN(std::vector<GroupUpdate> updates, GroupUpdates());
  Expr steps = b_.Var(StateVariable(optim::AppliedStepsVariable(name()), {DType::kI64, {}}, 0));
  HT_RETURN_IF_ERROR(b_.status());
  if (has_gradients()) {
    for (GroupUpdate& update : updates) {
      update.lr = optim::LearningRateNodes(update.schedule, update.lr, steps);
    }
    const Expr one = b_.Scalar(DType::kI64, 1);
    b_.NameNext(Named("step"));
    Expr step = b_.Op("add", {steps, one});
    std::optional<GatherWeights> gathering;
    if (is_sharded()) {
      gathering.emplace(b_, name(), attrs().GetInt("ranks"), attrs().GetInt("rank"),
                        attrs().GetInt("bucket_bytes"));
    }
    for (const Update& at : UpdateOrder()) {
      HT_RETURN_IF_ERROR(TakeWriter(at, writers));
      if (at.input >= 0) {
        HT_RETURN_IF_ERROR(AddUpdate(updates[at.group], at, step));
        ++context.stats["updates"];
      }
      if (!gathering.has_value()) continue;
      HT_RETURN_IF_ERROR(gathering->Add(*groups_[0]->graph().FindVariable(at.param),
                                        OwnerOf(at.group, at.param),
                                        at.input >= 0 ? updated_.at(at.param) : Expr()));
    }
    if (attrs().GetBool("ema")) HT_RETURN_IF_ERROR(AddAverages(context));
    if (gathering.has_value()) HT_RETURN_IF_ERROR(gathering->Finish());
    b_.Commit(optim::AppliedStepsVariable(name()),
              IsSplat(apply_.value(), 1) ? step : b_.Op("where", {apply_, step, steps}));
  }
  ++context.stats["optimizers"];
  return b_.status();
}

void OptimizerLowering::RemoveMarkers() {
  ir::Graph& graph = groups_[0]->graph();
  for (const ir::Node* group : groups_) {
    if (norm_.valid()) graph.ReplaceUses(group->output(0), norm_.value());
    graph.ReplaceUses(group->output(1), apply_.value());
  }
  graph.Remove(groups_);
}

int64_t OptimizerLowering::OwnerOf(size_t group, const std::string& param) const {
  const Names& params = groups_[group]->attrs().Get<Names>("params");
  const auto at = std::find(params.begin(), params.end(), param) - params.begin();
  return groups_[group]->attrs().GetInts("owners")[static_cast<size_t>(at)];
}

bool OptimizerLowering::NormIsRead() const {
  const ir::UseMap uses(groups_[0]->graph());
  return std::any_of(groups_.begin(), groups_.end(), [&uses](const ir::Node* group) {
    return uses.is_output(group->output(0)) || !uses.uses(group->output(0)).empty();
  });
}

Expr OptimizerLowering::GradientOf(size_t group, int input) {
  const auto rows = rows_.find({group, input});
  return rows != rows_.end() ? rows->second.rows : b_.Wrap(groups_[group]->input(input));
}

std::vector<Expr> OptimizerLowering::StatisticsInputs() {
  std::vector<Expr> inputs = {inverse_scale_};
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::map<std::string, Expr> gradients;
    for (int i = 0; i < groups_[g]->num_inputs(); ++i) {
      gradients[ParameterOf(g, i)] = GradientOf(g, i);
    }
    for (const std::string& param : groups_[g]->attrs().Get<Names>("params")) {
      auto it = gradients.find(param);
      inputs.push_back(it != gradients.end() ? it->second
                                             : b_.Constant(Tensor::Zeros(DType::kF32, Shape{0})));
    }
  }
  return inputs;
}

std::vector<Expr> OptimizerLowering::StatsOf(const std::vector<Expr>& inputs) {
  b_.NameNext(Named("grad_stats"));
  return b_.Make("grad_stats", inputs);
}

std::vector<Expr> OptimizerLowering::StatsOverRanks(const std::vector<Expr>& inputs) {
  b_.NameNext(Named("grad_squares"));
  const Expr own = b_.Op("grad_squares", inputs);
  b_.NameNext(Named("grad_squares_of_all"));
  const Expr all = b_.Op("all_reduce", {own},
                         {{"ranks", attrs().GetInt("ranks")}, {"reduction", std::string("sum")}});
  b_.NameNext(Named("grad_stats"));
  return b_.Make("grad_stats_of_squares", {all});
}

absl::StatusOr<std::vector<OptimizerLowering::GroupUpdate>> OptimizerLowering::GroupUpdates() {
  std::vector<GroupUpdate> updates;
  for (const ir::Node* group : groups_) {
    const ir::Attributes& attrs = group->attrs();
    GroupUpdate update;
    HT_ASSIGN_OR_RETURN(update.rule, optim::RuleOfMarker(attrs));
    HT_ASSIGN_OR_RETURN(update.schedule, optim::LRSchedule::Parse(attrs.GetString("schedule")));
    const std::string variable =
        optim::LearningRateVariable(name(), static_cast<size_t>(attrs.GetInt("group")));
    update.lr = b_.Var(StateVariable(variable, {DType::kF32, {}}, attrs.GetFloat("lr")));
    HT_RETURN_IF_ERROR(b_.status());
    updates.push_back(std::move(update));
  }
  return updates;
}

std::vector<OptimizerLowering::Update> OptimizerLowering::UpdateOrder() const {
  std::vector<Update> order;
  for (size_t group = 0; group < groups_.size(); ++group) {
    for (int i = 0; i < groups_[group]->num_inputs(); ++i) {
      order.push_back({group, i, ParameterOf(group, i)});
    }
    for (const std::string& param : Elsewhere(*groups_[group])) {
      order.push_back({group, -1, param});
    }
  }
  if (is_sharded()) {
    const auto place = [this](const Update& at) {
      const Names& params = groups_[at.group]->attrs().Get<Names>("params");
      return std::pair(at.group, std::find(params.begin(), params.end(), at.param));
    };
    std::stable_sort(order.begin(), order.end(), [&](const Update& a, const Update& b) {
      return a.group != b.group ? a.group < b.group : place(a).second < place(b).second;
    });
    return order;
  }
  if (finite_.valid()) return order;
  const auto gradient = [this](const Update& at) {
    return KeyOf(groups_[at.group]->input(at.input));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Update& a, const Update& b) { return gradient(a) < gradient(b); });
  return order;
}

absl::Status OptimizerLowering::TakeWriter(const Update& at, ParameterWriters& writers) const {
  if (groups_[at.group]->graph().FindVariable(at.param) == nullptr) {
    return InvalidArgument(name(), ": parameter \"", at.param, "\" is not a variable of the graph");
  }
  const auto [writer, is_first] = writers.emplace(at.param, name());
  if (is_first) return absl::OkStatus();
  return InvalidArgument(name(), ": parameter \"", at.param, "\" is already changed by ",
                         writer->second, "; expected one writer");
}

absl::Status OptimizerLowering::AddUpdate(const GroupUpdate& update, const Update& at, Expr step) {
  const auto& [group, input, param] = at;
  const std::string& optimizer = name();
  const ir::Variable* found = groups_[group]->graph().FindVariable(param);
  const ir::Variable parameter = *found;  // declaring state moves the table
  std::vector<Expr> inputs = {b_.Var(parameter),
                              b_.Cast(GradientOf(group, input), parameter.type.dtype),
                              update.lr,
                              inverse_scale_,
                              clip_,
                              apply_,
                              step};
  const auto rows = rows_.find({group, input});
  if (rows != rows_.end()) inputs.push_back(rows->second.ids);
  std::vector<std::string> committed = {param};
  for (const optim::StateSlot& slot : update.rule.slots) {
    committed.push_back(optim::SlotVariable(optimizer, param, slot.name));
    inputs.push_back(b_.Var(StateVariable(committed.back(), parameter.type, slot.initial)));
  }
  b_.NameNext(param + "_next");
  const std::string& op = rows != rows_.end() ? update.rule.rows_op : update.rule.op;
  ir::Attributes of_node = update.rule.attrs;
  if (IsLow(parameter.type.dtype)) {
    of_node.Set("seed", optim::RoundingSeed(attrs().GetInt("seed"), optimizer, param));
  }
  std::vector<Expr> outputs = b_.Make(op, inputs, of_node);
  HT_RETURN_IF_ERROR(b_.status());
  for (size_t k = 0; k < committed.size(); ++k) b_.Commit(committed[k], outputs[k]);
  updated_.emplace(param, outputs[0]);
  return b_.status();
}

absl::Status OptimizerLowering::AddAverages(PassContext& context) {
  const optim::Ema ema = optim::Ema::Of(attrs());
  HT_RETURN_IF_ERROR(Annotate(ema.Validate(), Concat("optimizer \"", name(), "\": ")));
  const std::string counter = optim::EmaStepsVariable(name());
  const Expr before = b_.Var(StateVariable(counter, {DType::kI64, {}}, 0));
  const Expr one = b_.Scalar(DType::kI64, 1);
  b_.NameNext(Named("ema_step"));
  const Expr update = b_.Op("add", {before, one});
  const Expr weight = optim::EmaWeightNodes(ema, update);
  HT_RETURN_IF_ERROR(b_.status());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const ir::Node* const group = groups_[g];
    for (const std::string& param : group->attrs().Get<Names>("params")) {
      const ir::Variable* variable = group->graph().FindVariable(param);
      if (variable == nullptr) continue;
      if (is_sharded() && OwnerOf(g, param) != attrs().GetInt("rank")) continue;
      const auto updated = updated_.find(param);
      const Expr value =
          updated != updated_.end() ? updated->second : b_.Var(ir::Variable(*variable));
      const std::string slot = optim::SlotVariable(name(), param, optim::kEmaSlot);
      const Expr average = b_.Var(StateVariable(slot, value.type(), 0));
      b_.Commit(slot, optim::EmaNode(param + "_ema_next", average, value, weight, apply_, update));
      HT_RETURN_IF_ERROR(b_.status());
      ++context.stats["averages"];
    }
  }
  b_.Commit(counter,
            IsSplat(apply_.value(), 1) ? update : b_.Op("where", {apply_, update, before}));
  return b_.status();
}

}  // namespace halftone::passes
