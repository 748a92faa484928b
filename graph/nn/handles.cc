#include "halftone/graph/nn/handles.h"

#include <cmath>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/nn/scaler_watch.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {

double GroupHandle::lr() const {
  if (graph_ == nullptr) return 0;
  return graph_->impl_->state.Scalar(optim::LearningRateVariable(optimizer_, index_), std::nan(""));
}

absl::Status GroupHandle::set_lr(double lr) {
  if (!(lr >= 0 && lr <= MaxFinite(DType::kF32))) {
    return InvalidArgument("set_lr: lr = ", lr, "; expected a number >= 0 that is finite in f32");
  }
  if (graph_ == nullptr) return FailedPrecondition("set_lr: the handle belongs to no graph");
  HT_RETURN_IF_ERROR(internal::CheckMayChange(graph_->impl_->declared.info(), "set_lr"));
  const OptimizerEntry* entry = graph_->impl_->declared.FindOptimizer(optimizer_);
  if (entry != nullptr && index_ >= entry->optimizer.groups().size()) {
    return absl::OutOfRangeError(Concat("set_lr: group ", index_, " of ", optimizer_,
                                        "; expected 0..", entry->optimizer.groups().size() - 1));
  }
  return graph_->impl_->state.SetScalar(optim::LearningRateVariable(optimizer_, index_), lr);
}

std::vector<std::string> GroupHandle::parameters() const {
  const OptimizerEntry* entry =
      graph_ == nullptr ? nullptr : graph_->impl_->declared.FindOptimizer(optimizer_);
  if (entry == nullptr || index_ >= entry->optimizer.groups().size()) return {};
  return entry->GroupNames(index_);
}

size_t OptimizerHandle::num_groups() const {
  const OptimizerEntry* entry =
      graph_ == nullptr ? nullptr : graph_->impl_->declared.FindOptimizer(name_);
  return entry == nullptr ? 0 : entry->optimizer.groups().size();
}

double OptimizerHandle::lr() const { return group(0).lr(); }

absl::Status OptimizerHandle::set_lr(double lr) {
  HT_RETURN_IF_ERROR(group(0).set_lr(lr));
  for (size_t i = 1; i < num_groups(); ++i) HT_RETURN_IF_ERROR(group(i).set_lr(lr));
  return absl::OkStatus();
}

int64_t OptimizerHandle::applied_steps() const {
  if (graph_ == nullptr) return 0;
  return static_cast<int64_t>(graph_->impl_->state.Scalar(optim::AppliedStepsVariable(name_), 0));
}

double OptimizerHandle::grad_norm() const {
  const OptimizerEntry* entry =
      graph_ == nullptr ? nullptr : graph_->impl_->declared.FindOptimizer(name_);
  if (entry == nullptr) return std::nan("");
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  graph_->impl_->under_way.Settle();
  return static_cast<double>(entry->last.grad_norm);
}

bool OptimizerHandle::last_step_skipped() const {
  const OptimizerEntry* entry =
      graph_ == nullptr ? nullptr : graph_->impl_->declared.FindOptimizer(name_);
  if (entry == nullptr) return false;
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  graph_->impl_->under_way.Settle();
  return !entry->last.applied;
}

double PlateauHandle::State(const char* state, double fallback) const {
  if (graph_ == nullptr) return fallback;
  return graph_->impl_->state.Scalar(optim::PlateauVariable(optimizer_, state), fallback);
}

double PlateauHandle::best() const { return State("best", std::nan("")); }
int64_t PlateauHandle::num_bad_epochs() const {
  return static_cast<int64_t>(State("num_bad_epochs", 0));
}
int64_t PlateauHandle::cooldown_counter() const {
  return static_cast<int64_t>(State("cooldown_counter", 0));
}

absl::StatusOr<bool> PlateauHandle::step(double metric) {
  if (graph_ == nullptr) return FailedPrecondition("step: the handle belongs to no graph");
  Graph::Impl& impl = *graph_->impl_;
  HT_RETURN_IF_ERROR(internal::CheckMayChange(impl.declared.info(), "step"));
  const runtime::StateLock lock = impl.declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const OptimizerEntry* entry = impl.declared.FindOptimizer(optimizer_);
  if (entry == nullptr || !entry->plateau.has_value()) {
    return FailedPrecondition("step: ", optimizer_, " has no ReduceLROnPlateau");
  }
  optim::PlateauState state{best(), num_bad_epochs(), cooldown_counter()};
  const bool reduce = entry->plateau->Step(metric, state);
  for (const auto& [name, value] :
       {std::pair{"best", state.best},
        {"num_bad_epochs", static_cast<double>(state.num_bad_epochs)},
        {"cooldown_counter", static_cast<double>(state.cooldown_counter)}}) {
    HT_RETURN_IF_ERROR(impl.state.SetScalar(optim::PlateauVariable(optimizer_, name), value));
  }
  if (!reduce) return false;
  OptimizerHandle optimizer(graph_, optimizer_);
  bool changed = false;
  for (size_t i = 0; i < optimizer.num_groups(); ++i) {
    GroupHandle group = optimizer.group(i);
    const double before = group.lr();
    HT_RETURN_IF_ERROR(group.set_lr(entry->plateau->Reduced(before)));
    changed = changed || group.lr() != before;
  }
  return changed;
}

const std::string& ScalerHandle::name() const {
  return graph_ != nullptr && name_.empty() ? graph_->impl_->declared.info().default_scaler : name_;
}

absl::Status ScalerHandle::Find(const char* what) const {
  if (graph_ == nullptr) return FailedPrecondition(what, ": the handle belongs to no graph");
  HT_RETURN_IF_ERROR(graph_->impl_->AddAutomaticScaler(graph_->config));
  if (graph_->impl_->declared.FindScaler(name()) != nullptr) return absl::OkStatus();
  return FailedPrecondition(what, ": graph @", graph_->name(),
                            " has no grad scaler; expected set_grad_scaler");
}

absl::Status ScalerHandle::CheckMayChange(const char* what) const {
  if (graph_ != nullptr) {
    HT_RETURN_IF_ERROR(internal::CheckMayChange(graph_->impl_->declared.info(), what));
  }
  return Find(what);
}

double ScalerHandle::scale() const {
  return graph_ == nullptr ? 1 : graph_->impl_->state.Scalar(name() + ".scale", 1);
}

absl::Status ScalerHandle::set_scale(double scale) {
  if (!amp::IsLossScale(scale)) {
    return InvalidArgument("set_scale: scale = ", scale, "; expected ", amp::kLossScaleRange);
  }
  HT_RETURN_IF_ERROR(CheckMayChange("set_scale"));
  Graph::Impl& impl = *graph_->impl_;
  const runtime::StateLock lock = impl.declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  NoteScales(impl.declared);
  HT_RETURN_IF_ERROR(impl.state.SetScalar(name() + ".scale", scale));
  NoteScales(impl.declared, /*are_set=*/true);
  return absl::OkStatus();
}

amp::GradScalerOptions ScalerHandle::Options() const {
  if (graph_ == nullptr) return {};
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  const ScalerEntry* entry = graph_->impl_->declared.FindScaler(name());
  return entry == nullptr ? amp::GradScalerOptions() : entry->scaler().options();
}

template <typename T>
absl::Status ScalerHandle::SetOption(const char* what, T amp::GradScalerOptions::*option, T value) {
  HT_RETURN_IF_ERROR(CheckMayChange(what));
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  ScalerEntry* entry = graph_->impl_->declared.FindScaler(name());
  amp::GradScalerOptions options = entry->scaler().options();
  if (options.*option == value) return absl::OkStatus();
  options.*option = value;
  amp::GradScaler changed(options);
  HT_RETURN_IF_ERROR(Annotate(changed.Validate(), Concat(what, ": ")));
  changed.set_state(entry->scaler().state());
  entry->rule->scaler = changed;
  ++entry->rule->version;
  return absl::OkStatus();
}

absl::Status ScalerHandle::set_growth_factor(double factor) {
  return SetOption("set_growth_factor", &amp::GradScalerOptions::growth_factor, factor);
}

absl::Status ScalerHandle::set_backoff_factor(double factor) {
  return SetOption("set_backoff_factor", &amp::GradScalerOptions::backoff_factor, factor);
}

absl::Status ScalerHandle::set_growth_interval(int64_t interval) {
  return SetOption("set_growth_interval", &amp::GradScalerOptions::growth_interval, interval);
}

int64_t ScalerHandle::Counter(const char* what) const {
  if (graph_ == nullptr) return 0;
  return static_cast<int64_t>(graph_->impl_->state.Scalar(Concat(name(), ".", what), 0));
}

int64_t ScalerHandle::growth_tracker() const { return Counter("growth_tracker"); }
int64_t ScalerHandle::total_steps() const { return Counter("total_steps"); }
int64_t ScalerHandle::skipped_count() const { return Counter("skipped_steps"); }
int64_t ScalerHandle::consecutive_skips() const { return Counter("consecutive_skips"); }

std::vector<amp::ScaleChange> ScalerHandle::scale_history() const {
  if (graph_ == nullptr) return {};
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  graph_->impl_->under_way.Settle();
  NoteScales(graph_->impl_->declared);
  const ScalerEntry* entry = graph_->impl_->declared.FindScaler(name());
  return entry == nullptr ? std::vector<amp::ScaleChange>() : entry->rule->history.changes();
}

absl::StatusOr<GradientReport> ScalerHandle::measure_gradients(absl::Span<const Tensor> in) const {
  HT_RETURN_IF_ERROR(CheckMayChange("measure_gradients"));
  Graph::Impl& impl = *graph_->impl_;
  const runtime::StateLock lock = impl.declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  if (!impl.training) {
    return FailedPrecondition("measure_gradients: graph @", graph_->name(),
                              " evaluates; expected train() before");
  }
  const auto describe = [this](const Values& values) { return graph_->build(values); };
  HT_ASSIGN_OR_RETURN(const CompiledStep* step, impl.Prepare(graph_->config, describe, in));
  const ScalerEntry* entry = impl.declared.FindScaler(name());
  if (entry->scale == nullptr) {
    return FailedPrecondition("measure_gradients: ", entry->name, " is disabled; expected a scale");
  }
  HT_ASSIGN_OR_RETURN(GradientReport report, impl.MeasureGradients(*entry, *step, in));
  if (report.parameters.empty()) {
    return FailedPrecondition("measure_gradients: ", entry->name,
                              " scales the gradient of no parameter of an optimizer");
  }
  return report;
}

absl::StatusOr<amp::StateDict> ScalerHandle::state_dict() const {
  HT_RETURN_IF_ERROR(Find("state_dict"));
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  amp::GradScaler scaler = graph_->impl_->declared.FindScaler(name())->scaler();
  if (scaler.is_enabled()) {
    std::map<std::string, Tensor> values = scaler.StateTensors(name());
    for (auto& [variable, value] : values) {
      const std::shared_ptr<runtime::VariableStorage> storage =
          graph_->impl_->declared.store().Find(variable);
      if (storage != nullptr && storage->materialised()) value = storage->value();
    }
    HT_RETURN_IF_ERROR(scaler.SetStateTensors(name(), values));
  }
  return scaler.state_dict();
}

absl::Status ScalerHandle::load_state_dict(const amp::StateDict& state) {
  HT_RETURN_IF_ERROR(CheckMayChange("load_state_dict"));
  const runtime::StateLock lock = graph_->impl_->declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  NoteScales(graph_->impl_->declared);
  ScalerEntry* entry = graph_->impl_->declared.FindScaler(name());
  HT_RETURN_IF_ERROR(entry->rule->scaler.load_state_dict(state));
  ++entry->rule->version;
  for (const auto& [variable, value] : entry->scaler().StateTensors(name())) {
    if (const auto storage = graph_->impl_->declared.store().Find(variable)) {
      HT_RETURN_IF_ERROR(storage->Assign(value));
    }
  }
  NoteScales(graph_->impl_->declared, /*are_set=*/true);
  return absl::OkStatus();
}

}  // namespace halftone::nn
