#include "halftone/graph/nn/graph_numbers.h"

#include <algorithm>
#include <cmath>

#include "halftone/graph/nn/graph.h"
#include "halftone/graph/nn/graph_impl.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {

void GraphNumbers::MakeNames() {
  const Declaration& declared = graph_.impl_->declared;
  optimizers_.clear();
  for (const OptimizerEntry& entry : declared.optimizers()) {
    OptimizerNames names;
    for (size_t i = 0; i < entry.optimizer.groups().size(); ++i) {
      names.rates.push_back({Concat(entry.name, "/learning_rate", i == 0 ? "" : Concat("_", i)),
                             optim::LearningRateVariable(entry.name, i)});
    }
    names.norm_tag = entry.name + "/grad_norm";
    names.steps_name = optim::AppliedStepsVariable(entry.name);
    optimizers_.push_back(std::move(names));
  }
  scalers_.clear();
  for (const ScalerEntry& entry : declared.scalers()) {
    scalers_.push_back({entry.name + "/scale", entry.name + ".scale"});
    scalers_.push_back({entry.name + "/skipped_steps", entry.name + ".skipped_steps"});
  }
}

void GraphNumbers::ForEach(absl::FunctionRef<void(std::string_view tag, double value)> visit) {
  Graph::Impl& impl = *graph_.impl_;
  const runtime::StateLock lock = impl.declared.Lock();
  impl.under_way.Settle();
  if (optimizers_.size() != impl.declared.optimizers().size() ||
      scalers_.size() != 2 * impl.declared.scalers().size()) {
    MakeNames();
  }
  const auto visit_known = [&visit](std::string_view tag, double value) {
    if (!std::isnan(value)) visit(tag, value);
  };
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    const OptimizerEntry& entry = impl.declared.optimizers()[i];
    const double applied = impl.state.Scalar(optimizers_[i].steps_name, 0);
    const double before = std::max(0.0, applied - (entry.last.applied ? 1 : 0));
    for (const Variable& rate : optimizers_[i].rates) {
      const double base = impl.state.Scalar(rate.name, std::nan(""));
      visit_known(rate.tag, entry.optimizer.step_options().lr_schedule.At(
                                base, static_cast<int64_t>(before)));
    }
    visit_known(optimizers_[i].norm_tag, entry.last.grad_norm);
  }
  for (const Variable& number : scalers_) {
    visit_known(number.tag, impl.state.Scalar(number.name, std::nan("")));
  }
}

}  // namespace halftone::nn
