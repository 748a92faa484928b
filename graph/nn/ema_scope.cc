#include "halftone/graph/nn/ema_scope.h"

#include <memory>
#include <utility>
#include <vector>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

using Storage = std::shared_ptr<runtime::VariableStorage>;

// Parameters with an average that has seen an update, and those.
std::vector<std::pair<Storage, Storage>> Averaged(const Declaration& declared,
                                                  const GraphState& state) {
  std::vector<std::pair<Storage, Storage>> pairs;
  for (const OptimizerEntry& entry : declared.optimizers()) {
    if (state.Scalar(optim::EmaStepsVariable(entry.name), 0) == 0) continue;
    for (const std::string& name : entry.parameter_names) {
      const Storage average =
          declared.store().Find(optim::SlotVariable(entry.name, name, optim::kEmaSlot));
      if (average == nullptr) continue;
      pairs.emplace_back(declared.store().Find(name), average);
    }
  }
  return pairs;
}

// Exchanges the values. An error changes nothing.
absl::Status Exchange(const std::vector<std::pair<Storage, Storage>>& pairs) {
  for (const auto& [parameter, average] : pairs) {
    HT_RETURN_IF_ERROR(parameter->FetchToHost());
    HT_RETURN_IF_ERROR(average->FetchToHost());
  }
  for (const auto& [parameter, average] : pairs) {
    const Tensor value = parameter->value().Clone();
    HT_RETURN_IF_ERROR(parameter->Assign(average->value()));
    HT_RETURN_IF_ERROR(average->Assign(value));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Graph::Impl::EnterAverages(uint64_t seed) {
  HT_RETURN_IF_ERROR(internal::CheckMayChange(declared.info(), "EmaScope"));
  const runtime::StateLock lock = declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  if (averages_in_place) {
    return FailedPrecondition("graph @", declared.name(),
                              ": an EmaScope lives already; expected one at a time");
  }
  under_way.Settle();
  HT_RETURN_IF_ERROR(state.Initialize(seed));
  HT_RETURN_IF_ERROR(Exchange(Averaged(declared, state)));
  averages_in_place = true;
  return absl::OkStatus();
}

absl::Status Graph::Impl::LeaveAverages() {
  const runtime::StateLock lock = declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  under_way.Settle();
  averages_in_place = false;
  return Exchange(Averaged(declared, state));
}

absl::Status Graph::Impl::CheckNoAverages(const char* what) const {
  if (!averages_in_place) return absl::OkStatus();
  return FailedPrecondition("graph @", declared.name(), ": ", what,
                            " while an EmaScope lives: averages stand in the parameters' place");
}

EmaScope::EmaScope(Graph& graph)
    : graph_(graph), status_(graph.impl_->EnterAverages(graph.config.seed)) {}

EmaScope::~EmaScope() {
  if (status_.ok()) graph_.impl_->LeaveAverages().IgnoreError();
}

}  // namespace halftone::nn
