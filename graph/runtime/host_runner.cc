#include "halftone/graph/runtime/host_runner.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "halftone/core/fork.h"
#include "halftone/core/threads.h"
#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"

namespace halftone::runtime {
namespace {

std::vector<size_t> FindArguments(const std::vector<passes::Slot>& slots) {
  std::vector<size_t> found;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].space == passes::Slot::Space::kInput ||
        slots[i].space == passes::Slot::Space::kOutput) {
      found.push_back(i);
    }
  }
  return found;
}

absl::Status CopyOnHost(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> HostRunner::Create(
    const StepPlan& plan, std::vector<std::shared_ptr<VariableStorage>> variables,
    std::shared_ptr<Arena> arena) {
  HT_RETURN_IF_ERROR(arena->Reserve(static_cast<size_t>(plan.memory.arena_bytes)));
  std::vector<HostCast*> kept;
  for (const StepPlan::KeptCast& cast : plan.kept) {
    if (cast.only_packed) {
      kept.push_back(nullptr);
      continue;
    }
    VariableStorage& variable = *variables[static_cast<size_t>(cast.variable)];
    HT_ASSIGN_OR_RETURN(HostCast * copy, variable.LowOnHost(cast.dtype));
    kept.push_back(copy);
  }
  std::vector<std::shared_ptr<HostPacked>> held;
  std::map<std::pair<int, std::string>, std::shared_ptr<HostPacked>> constants;
  size_t cast_bytes = 0;
  for (const StepPlan::Packed& weight : plan.packed) {
    const StepPlan::Call& call = plan.calls[weight.call];
    const kernels::Packing& packing = call.kernel->packing();
    const passes::Slot& slot = plan.input_slots[call.first_input + 1];
    if (weight.variable < 0) {
      std::shared_ptr<HostPacked>& packed = constants[{slot.index, packing.format}];
      if (packed == nullptr) {
        HT_ASSIGN_OR_RETURN(packed, MakePacked(packing));
      }
      held.push_back(packed);
      continue;
    }
    const auto& variable = variables[static_cast<size_t>(weight.variable)];
    HT_ASSIGN_OR_RETURN(std::shared_ptr<HostPacked> packed, variable->PackedOnHost(packing));
    held.push_back(std::move(packed));
    if (weight.kept >= 0 && kept[static_cast<size_t>(weight.kept)] == nullptr) {
      cast_bytes = std::max(cast_bytes, static_cast<size_t>(slot.bytes));
    }
  }
  HT_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> cast, Buffer::Allocate(cast_bytes));
  return std::unique_ptr<Runner>(new HostRunner(plan, std::move(variables), std::move(kept),
                                                std::move(held), std::move(cast),
                                                std::move(arena)));
}

HostRunner::HostRunner(const StepPlan& plan,
                       std::vector<std::shared_ptr<VariableStorage>> variables,
                       std::vector<HostCast*> kept, std::vector<std::shared_ptr<HostPacked>> packed,
                       std::shared_ptr<Buffer> cast, std::shared_ptr<Arena> arena)
    : plan_(plan),
      variables_(std::move(variables)),
      kept_(std::move(kept)),
      packed_(std::move(packed)),
      cast_(std::move(cast)),
      arena_(std::move(arena)),
      patched_inputs_(FindArguments(plan.input_slots)),
      patched_outputs_(FindArguments(plan.output_slots)) {
  places_.inputs.resize(plan.input_types.size());
  places_.outputs.resize(plan.output_types.size());
  for (const Tensor& constant : plan.constants) places_.constants.push_back(constant.raw());
  for (const auto& variable : variables_) places_.variables.push_back(variable->host_data());
  for (HostCast* cast : kept_) {
    places_.kept.push_back(cast == nullptr ? nullptr : cast->value.raw());
  }
  for (const auto& packed : packed_) places_.packed.push_back(packed->bytes.raw());
  Bind();
}

void HostRunner::Bind() {
  places_.arena = static_cast<char*>(arena_->data());
  tables_.Fill(plan_, places_);
  bound_generation_ = arena_->generation();
}

void HostRunner::BindArguments(const void* const* inputs, void* const* outputs) {
  for (size_t i = 0; i < places_.inputs.size(); ++i) {
    places_.inputs[i] = const_cast<void*>(inputs[i]);
  }
  std::copy_n(outputs, places_.outputs.size(), places_.outputs.begin());
  for (const size_t i : patched_inputs_) {
    tables_.inputs[i] = places_.AddressOf(plan_.input_slots[i]);
  }
  for (const size_t i : patched_outputs_) {
    tables_.outputs[i] = places_.AddressOf(plan_.output_slots[i]);
  }
}

absl::Status HostRunner::FetchVariables() const {
  for (const std::shared_ptr<VariableStorage>& variable : variables_) {
    if (!variable->host_is_newest()) HT_RETURN_IF_ERROR(variable->FetchToHost());
  }
  return absl::OkStatus();
}

absl::Status HostRunner::DeriveKept(const Observers& observers) {
  for (size_t k = 0; k < kept_.size(); ++k) {
    const auto variable = static_cast<size_t>(plan_.kept[k].variable);
    const uint64_t version = variables_[variable]->version();
    if (kept_[k] == nullptr || kept_[k]->version == version) continue;
    kernels::RunState state;
    const void* const from = places_.variables[variable];
    void* const to = places_.kept[k];
    const StepPlan::Call& call = plan_.kept[k].call;
    const auto cast = [&] {
      call.kernel->Run({&from, &to, nullptr, &state});
      return absl::OkStatus();
    };
    if (!observers.any()) {
      cast().IgnoreError();
    } else {
      HT_RETURN_IF_ERROR(RunObserved(observers, call, &to, {cast, CopyOnHost}));
    }
    kept_[k]->version = version;
  }
  return absl::OkStatus();
}

void HostRunner::DerivePacked() {
  for (size_t p = 0; p < packed_.size(); ++p) {
    const StepPlan::Packed& weight = plan_.packed[p];
    const auto variable = static_cast<size_t>(weight.variable);
    const uint64_t version = weight.variable < 0 ? 1 : variables_[variable]->version();
    if (packed_[p]->version == version) continue;
    kernels::RunState state;
    kernels::KernelArgs args = tables_.ArgsOf(plan_, weight.call, &state);
    const void* inputs[] = {nullptr, args.inputs[1]};
    args.inputs = inputs;
    if (weight.kept >= 0 && kept_[static_cast<size_t>(weight.kept)] == nullptr) {
      const void* const from = places_.variables[variable];
      void* const to = cast_->data();
      plan_.kept[static_cast<size_t>(weight.kept)].call.kernel->Run({&from, &to, nullptr, &state});
      inputs[1] = to;
    }
    plan_.calls[weight.call].kernel->Pack(args, places_.packed[p]);
    packed_[p]->version = version;
  }
}

absl::Status HostRunner::RunCall(size_t c, kernels::RunState& state, const Observers& observers) {
  const StepPlan::Call& call = plan_.calls[c];
  const kernels::KernelArgs args = tables_.ArgsOf(plan_, c, &state);
  const auto run = [&] {
    call.kernel->Run(args);
    return call.can_fault && state.fault.raised ? FaultOf(call, state.fault) : absl::OkStatus();
  };
  return observers.any() && !state.failed_here
             ? RunObserved(observers, call, args.outputs, {run, CopyOnHost})
             : run();
}

// A step that several ranks make: where the part of one fails it takes part in the exchanges that are
// left, with word of its failure, until all have heard it. Then every rank gives the same error.
absl::Status HostRunner::RunWithOthers(kernels::RunState& state, const Observers& observers) {
  distributed::Communicator& world = distributed::World();
  absl::Status failed;
  for (size_t c = 0; c < plan_.calls.size(); ++c) {
    if (state.failed_here && !plan_.calls[c].communicates) continue;
    const absl::Status ran = RunCall(c, state, observers);
    HT_RETURN_IF_ERROR(state.error);
    if (state.failed_elsewhere) {
      HT_RETURN_IF_ERROR(world.Drain());
      HT_RETURN_IF_ERROR(world.Agree(failed, "the end of a failed step"));
      return Internal("a rank has failed and does not say how");
    }
    if (!ran.ok() && failed.ok()) {
      failed = ran;
      state.failed_here = true;
    }
    if (world.any_under_way()) world.Progress();
  }
  return failed;
}

absl::Status HostRunner::RunKernels(uint64_t run_count, const Observers& observers) {
  kernels::RunState state;
  state.run_count = run_count;
  if (plan_.communicates) return RunWithOthers(state, observers);
  for (size_t c = 0; c < plan_.calls.size(); ++c) {
    HT_RETURN_IF_ERROR(RunCall(c, state, observers));
  }
  return absl::OkStatus();
}

absl::Status HostRunner::Start(const void* const* inputs, void* const* outputs, uint64_t* run_count,
                               const Observers& observers) {
  if (IsForkedThread()) [[unlikely]] {
    return RunBesideForkedThread([&] { return RunStep(inputs, outputs, run_count, observers); });
  }
  return RunStep(inputs, outputs, run_count, observers);
}

absl::Status HostRunner::RunStep(const void* const* inputs, void* const* outputs,
                                 uint64_t* run_count, const Observers& observers) {
  HT_RETURN_IF_ERROR(UseNumThreads());
  HT_RETURN_IF_ERROR(FetchVariables());
  HT_RETURN_IF_ERROR(DeriveKept(observers));
  // Another executable of the graph may have made the arena grow.
  if (bound_generation_ != arena_->generation()) Bind();
  DerivePacked();
  BindArguments(inputs, outputs);
  const absl::Status ran = RunKernels((*run_count)++, observers);
  if (!ran.ok()) {
    // An exchange that fails late does so behind updates in place.
    if (plan_.communicates) NoteWrites();
    return ran;
  }
  CopyAll(plan_.output_copies);
  CopyAll(plan_.staging_copies);
  CopyAll(plan_.commit_copies);
  NoteWrites();
  for (size_t k = 0; k < kept_.size(); ++k) {
    const StepPlan::KeptCast& kept = plan_.kept[k];
    if (!kept.written_by_update) continue;  // nor is it only packed
    kept_[k]->version = variables_[static_cast<size_t>(kept.variable)]->version();
  }
  return absl::OkStatus();
}

void HostRunner::NoteWrites() const {
  for (const int i : plan_.written) variables_[static_cast<size_t>(i)]->HostWrote();
}

void HostRunner::CopyAll(const std::vector<StepPlan::Copy>& copies) const {
  for (const StepPlan::Copy& copy : copies) {
    std::memcpy(places_.AddressOf(copy.to), places_.AddressOf(copy.from),
                static_cast<size_t>(copy.from.bytes));
  }
}

}  // namespace halftone::runtime
