// OptimizerLowering: one optimizer on its way from markers, one for each parameter group, to the nodes of its update.
// insert-optimizers (insert_optimizers.h) makes one for each optimizer of a graph and leads all through the same
// steps: TakeRows, AddStatistics, SetApply, AddUpdates, RemoveMarkers.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/optim/lr_schedule.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/autodiff/row_gradients.h"
#include "halftone/passes/pass.h"

namespace halftone::passes {

// Who commits to which variable.
using ParameterWriters = std::map<std::string, std::string>;

class OptimizerLowering {
 public:
  // `pass` is named in what it makes. `scaler`: null without loss scaling.
  OptimizerLowering(ir::Node* marker, ir::Node* scaler, const char* pass);

  // A further group. Error: InvalidArgument for one that is there already or that disagrees in what
  // holds for the whole optimizer.
  absl::Status AddGroup(ir::Node* marker);

  // What holds for all groups.
  const ir::Attributes& attrs() const { return groups_[0]->attrs(); }
  const std::string& name() const { return attrs().GetString("name"); }
  ir::Builder& builder() { return b_; }
  const ir::Node& origin() const { return *groups_[0]; }

  bool has_gradients() const;
  // Whether it skips steps.
  bool checked() const {
    return has_gradients() && (scaler_ != nullptr || attrs().GetBool("skip_nonfinite"));
  }
  bool skips_on_any() const { return attrs().GetString("skip") == "any"; }
  bool guards_buffers() const {
    return checked() && scaler_ == nullptr && !attrs().GetBool("update_buffers_on_skip");
  }
  // The largest norm over this and other optimizers; 0: none.
  double clip_norm_of_all() const {
    return has_gradients() ? attrs().GetFloat("clip_norm_of_all") : 0;
  }
  ir::Value finite() const { return finite_.value(); }
  ir::Expr norm() const { return norm_; }

  // Takes rows where gradients need not be whole. Of all optimizers before any update, since
  // making rows may fault: parameters are written in place behind the last fault.
  absl::Status TakeRows(PassContext& context);

  // Inverse scale, norm, finite flag and clip coefficient.
  absl::Status AddStatistics();

  // `apply`: the flag that this optimizer obeys.
  void SetApply(ir::Expr apply) { apply_ = apply; }
  ir::Expr apply() const { return apply_; }
  void SetClip(ir::Expr clip) { clip_ = clip; }

  absl::Status AddUpdates(ParameterWriters& writers, PassContext& context);

  void RemoveMarkers();

 private:
  // What the updates of one group have in common.
  struct GroupUpdate {
    optim::UpdateRule rule;
    optim::LRSchedule schedule;
    ir::Expr lr;
  };

  // Of a parameter whose gradient is there: an input of its group, or -1 where another rank has it.
  struct Update {
    size_t group;
    int input;
    std::string param;
  };

  static const std::vector<std::string>& Elsewhere(const ir::Node& group) {
    return group.attrs().Get<std::vector<std::string>>("grads_elsewhere");
  }
  // Whether each rank updates some of the parameters alone.
  bool is_sharded() const { return !attrs().GetInts("owners").empty(); }
  int64_t OwnerOf(size_t group, const std::string& param) const;

  // A node name that tells whose node it is: "optimizer0.step".
  std::string Named(const char* what) const { return name() + "." + what; }

  bool NormIsRead() const;

  const std::string& ParameterOf(size_t group, int input) const {
    const ir::Attributes& attrs = groups_[group]->attrs();
    return attrs.Get<std::vector<std::string>>("grad_params")[static_cast<size_t>(input)];
  }

  // What the statistics see of a gradient: rows have all that is not 0.
  ir::Expr GradientOf(size_t group, int input);

  // One gradient for every parameter, so that grad_stats' index counts in `params`, group after
  // group; a parameter without gradient gets an empty one.
  std::vector<ir::Expr> StatisticsInputs();

  std::vector<ir::Expr> StatsOf(const std::vector<ir::Expr>& inputs);

  // The same bits from the parts that ranks have: of each gradient one has more than 0, so that sums are exact.
  std::vector<ir::Expr> StatsOverRanks(const std::vector<ir::Expr>& inputs);

  absl::StatusOr<std::vector<GroupUpdate>> GroupUpdates();

  // Where an update waits for no other gradient the order is that of the gradients, so that none lives
  // longer than it must; else equal updates stand together. Where ranks have parts it is that of the
  // parameters, which all have.
  std::vector<Update> UpdateOrder() const;

  // Makes this optimizer the one that changes a parameter.
  absl::Status TakeWriter(const Update& at, ParameterWriters& writers) const;

  absl::Status AddUpdate(const GroupUpdate& update, const Update& at, ir::Expr step);

  // Behind all updates, so that launches of neighbours stay whole. Of a parameter without a gradient
  // too, as it is: no average may be left at its first value.
  absl::Status AddAverages(PassContext& context);

  std::vector<ir::Node*> groups_;
  ir::Node* scaler_;  // null: no loss scaling
  ir::Builder b_;
  ir::Expr inverse_scale_, norm_, finite_, clip_, apply_;
  std::map<std::pair<size_t, int>, RowGradient> rows_;  // by group and input, where not dense
  std::map<std::string, ir::Expr> updated_;             // parameters and their new values
};

}  // namespace halftone::passes
