// Optimizer: which parameters follow which update rule, with which hyper-parameters. A description:
// it holds no tensors and runs nothing. nn::Graph turns it into `optimizer` markers, passes turn
// the markers into update nodes, and the state lives in graph variables.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/ir/attribute.h"
#include "halftone/optim/options.h"
#include "halftone/optim/parameter_ref.h"

namespace halftone::optim {

// Some of an optimizer's parameters, and the hyper-parameters that they have for themselves, under
// the names of the optimizer marker.
struct ParameterGroup {
  ParameterList parameters;
  ir::Attributes own;
};

class Optimizer {
 public:
  // The name of the description: "sgd", "adam", ...
  const std::string& rule() const { return rule_; }
  // One or more, unless nothing was given; see Validate.
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  // Of all groups, in order.
  ParameterList parameters() const;
  // Puts what `now` gives for each parameter in its place, each once in a group: where parameters
  // were tied there is one for several, where a tie was undone several for one.
  void ReplaceParameters(const std::function<ParameterList(const ParameterRef&)>& now);
  // Hyper-parameters of a group under the names of the optimizer marker: its own, and the
  // optimizer's where it has none.
  ir::Attributes hyper_parameters(size_t group = 0) const;
  double lr(size_t group = 0) const { return hyper_parameters(group).GetFloat("lr"); }
  const StepOptions& step_options() const { return step_; }
  StepOptions& mutable_step_options() { return step_; }

  // Errors: InvalidArgument naming rule, group, option, value and range: "SGD: lr = -1; expected a
  // number >= 0 that is finite in f32"; a group without parameters, a null parameter.
  absl::Status Validate() const;

  // The attributes of the `optimizer` marker of a group. `names` are the graph's names of its
  // parameters. Requires: one name per parameter.
  ir::Attributes ToMarker(const std::string& name, const std::vector<std::string>& names,
                          size_t group = 0) const;

 protected:
  Optimizer(std::string rule, std::vector<ParameterGroup> groups, ir::Attributes hyper,
            StepOptions step);

 private:
  absl::Status ValidateGroup(const std::string& title, size_t group) const;

  std::string rule_;
  std::vector<ParameterGroup> groups_;
  ir::Attributes hyper_;
  StepOptions step_;
};

namespace internal {

// A value as attributes of the marker; nothing for what a group does not set.
void SetAttr(ir::Attributes& attrs, const char* const names[2], double value);
void SetAttr(ir::Attributes& attrs, const char* const names[2], bool value);
void SetAttr(ir::Attributes& attrs, const char* const names[2],
             const std::array<double, 2>& values);
void SetAttr(ir::Attributes& attrs, const char* const names[2], const LRSchedule& schedule);
template <typename T>
void SetAttr(ir::Attributes& attrs, const char* const names[2], const std::optional<T>& value) {
  if (value.has_value()) SetAttr(attrs, names, *value);
}

template <typename Options>
ir::Attributes AttributesOf(const Options& options) {
  ir::Attributes attrs;
  ForEachField(options,
               [&](const auto& field) { SetAttr(attrs, field.attrs, options.*field.member); });
  return attrs;
}

template <typename Options>
StepOptions StepOf(const Options& o) {
  return {o.lr_schedule, o.clip_norm, o.scaler, o.skip, o.skip_nonfinite, o.ema, o.weights};
}

}  // namespace internal

// An optimizer with the options of its rule.
template <typename O, typename G>
class OptimizerOf : public Optimizer {
 public:
  using Options = O;
  using GroupOptions = G;
  // Parameters, and what is different for them. A parameter listed more than once, as tied weights
  // are, counts once.
  struct Group {
    ParameterList parameters;
    G options = {};
  };

  explicit OptimizerOf(ParameterList parameters, O options = {})
      : Optimizer(O::kRule, {{std::move(parameters), {}}}, internal::AttributesOf(options),
                  internal::StepOf(options)) {}
  // Example: AdamW({{decay, {}}, {rest, {.lr = 1e-4, .weight_decay = 0}}}, {.weight_decay = 0.1}).
  // What a group does not set comes from `options`. There is one step count for all groups.
  // NOLINTNEXTLINE(google-explicit-constructor): an optimizer is not a list of groups
  explicit OptimizerOf(std::initializer_list<Group> groups, O options = {})
      : OptimizerOf(std::vector<Group>(groups), std::move(options)) {}
  explicit OptimizerOf(const std::vector<Group>& groups, O options = {})
      : Optimizer(O::kRule, Convert(groups), internal::AttributesOf(options),
                  internal::StepOf(options)) {}

 private:
  static std::vector<ParameterGroup> Convert(const std::vector<Group>& groups) {
    std::vector<ParameterGroup> converted;
    for (const Group& group : groups) {
      converted.push_back({group.parameters, internal::AttributesOf(group.options)});
    }
    return converted;
  }
};

template <typename Options>
using OptimizerWith = OptimizerOf<Options, typename Options::GroupOptions>;

// SGD, Adam, AdamW, ...: one for each description.
#define HT_OPTIMIZER(Class, ...) using Class = OptimizerWith<Class##Options>;
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::optim
