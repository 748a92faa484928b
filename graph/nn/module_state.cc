// state_dict and load_state_dict of modules: a store of names for the time of the call.
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/graph/runtime/load_rename.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::nn {
namespace {

absl::Status BindAll(const Module& module, runtime::VariableStore& store) {
  HT_RETURN_IF_ERROR(module.status());
  for (const auto& named : {module.named_parameters(), module.named_buffers()}) {
    for (const auto& [name, parameter] : named) {
      HT_RETURN_IF_ERROR(store.Bind(name, parameter.storage()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<runtime::StateDict> Module::state_dict() const {
  runtime::VariableStore store;
  HT_RETURN_IF_ERROR(BindAll(*this, store));
  const runtime::StateLock lock(store.guards());
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(store.MaterialiseAll(0));
  return store.Save();
}

absl::StatusOr<runtime::LoadReport> Module::load_state_dict(const runtime::StateDict& state,
                                                            const runtime::LoadOptions& options) {
  HT_RETURN_IF_ERROR(internal::CheckMayChange(*this, "load_state_dict"));
  runtime::VariableStore store;
  HT_RETURN_IF_ERROR(BindAll(*this, store));
  const runtime::StateLock lock(store.guards());
  HT_RETURN_IF_ERROR(lock.status());
  for (const auto& [name, storage] : store.names()) {
    HT_RETURN_IF_ERROR(storage->CheckNoAverage("load_state_dict"));
  }
  std::vector<std::string> unused;
  HT_ASSIGN_OR_RETURN(const runtime::StateDict renamed, Renamed(state, options, &unused));
  HT_ASSIGN_OR_RETURN(runtime::LoadReport report,
                      store.Load(renamed, {.strict = options.strict, .convert = options.convert}));
  report.unused_renames = std::move(unused);
  return report;
}

}  // namespace halftone::nn
