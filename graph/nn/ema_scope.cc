#include "halftone/graph/nn/ema_scope.h"

#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/nn/shards.h"
#include "halftone/optim/ema.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

// Of the process: while there is none, no step looks for averages.
std::atomic<int> live_scopes = 0;

// Those that other ranks keep, for as long as they are looked at.
absl::StatusOr<std::map<std::string, std::shared_ptr<runtime::VariableStorage>>> AveragesOfOthers(
    const Declaration& declared) {
  runtime::StateDict values;
  HT_RETURN_IF_ERROR(GatherState(declared, -1, optim::kEmaSlot, values));
  std::map<std::string, std::shared_ptr<runtime::VariableStorage>> averages;
  for (const auto& [name, value] : values) {
    auto& average = averages[name] = std::make_shared<runtime::VariableStorage>(
        value.dtype(), value.shape(), ir::VariableKind::kOptimizer, /*trainable=*/false,
        ir::Initializer());
    HT_RETURN_IF_ERROR(average->Assign(value));
  }
  return averages;
}

// Parameters with an average that has seen an update.
absl::StatusOr<ExchangedAverages> Averaged(const Declaration& declared, const GraphState& state) {
  ExchangedAverages pairs;
  HT_ASSIGN_OR_RETURN(const auto others, AveragesOfOthers(declared));
  for (const OptimizerEntry& entry : declared.optimizers()) {
    if (state.Scalar(optim::EmaStepsVariable(entry.name), 0) == 0) continue;
    for (const std::string& name : entry.parameter_names) {
      const runtime::VariableStore& store = declared.store();
      const std::string slot = optim::SlotVariable(entry.name, name, optim::kEmaSlot);
      const auto other = others.find(slot);
      const auto average = other != others.end() ? other->second : store.Find(slot);
      if (average != nullptr) pairs.push_back({name, store.Find(name), average});
    }
  }
  return pairs;
}

// Exchanges the values. An error changes nothing.
absl::Status Exchange(const ExchangedAverages& pairs) {
  for (const auto& [name, parameter, average] : pairs) {
    HT_RETURN_IF_ERROR(parameter->FetchToHost());
    HT_RETURN_IF_ERROR(average->FetchToHost());
  }
  for (const auto& [name, parameter, average] : pairs) {
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
  if (exchanged.has_value()) {
    return FailedPrecondition("graph @", declared.name(),
                              ": an EmaScope lives already; expected one at a time");
  }
  under_way.Settle();
  HT_RETURN_IF_ERROR(state.Initialize(seed));
  HT_ASSIGN_OR_RETURN(ExchangedAverages pairs, Averaged(declared, state));
  for (const ExchangedAverage& pair : pairs) {
    HT_RETURN_IF_ERROR(pair.parameter->CheckNoAverage("EmaScope"));
  }
  HT_RETURN_IF_ERROR(Exchange(pairs));
  for (const ExchangedAverage& pair : pairs) pair.parameter->set_average_of(pair.name);
  exchanged = std::move(pairs);
  ++live_scopes;
  return absl::OkStatus();
}

absl::Status Graph::Impl::LeaveAverages() {
  const runtime::StateLock lock = declared.Lock();
  HT_RETURN_IF_ERROR(lock.status());
  under_way.Settle();
  const ExchangedAverages pairs = *std::exchange(exchanged, std::nullopt);
  --live_scopes;
  for (const ExchangedAverage& pair : pairs) pair.parameter->set_average_of("");
  return Exchange(pairs);
}

absl::Status Graph::Impl::CheckNoAverages(const char* what) const {
  if (live_scopes == 0) return absl::OkStatus();
  if (!exchanged.has_value()) {
    for (const auto& [name, storage] : declared.store().names()) {
      HT_RETURN_IF_ERROR(storage->CheckNoAverage(what));
    }
    return absl::OkStatus();
  }
  return FailedPrecondition("graph @", declared.name(), ": ", what,
                            " while an EmaScope lives: averages stand in the parameters' place");
}

EmaScope::EmaScope(Graph& graph)
    : graph_(graph), status_(graph.impl_->EnterAverages(graph.config.seed)) {}

EmaScope::~EmaScope() {
  if (status_.ok()) graph_.impl_->LeaveAverages().IgnoreError();
}

}  // namespace halftone::nn
