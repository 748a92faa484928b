#include "halftone/graph/runtime/host_executable.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "halftone/core/fork.h"
#include "halftone/core/threads.h"

namespace halftone::runtime {

absl::StatusOr<std::unique_ptr<Executable>> HostExecutable::Create(std::unique_ptr<ir::Graph> graph,
                                                                   const Device& device,
                                                                   uint64_t seed,
                                                                   VariableStore& store,
                                                                   std::shared_ptr<Arena> arena) {
  std::unique_ptr<HostExecutable> executable(new HostExecutable());
  executable->graph_ = std::move(graph);
  executable->arena_ = std::move(arena);
  HT_RETURN_IF_ERROR(executable->SelectKernels(device.kind, /*joins_updates=*/false));
  HT_RETURN_IF_ERROR(executable->ResolveVariables(seed, store));
  passes::MemoryPlanOptions options;
  options.keep_casts = false;  // a cast is cheaper here than to know whether a kept one is stale
  executable->Plan(std::move(options));
  executable->FindPatches();
  HT_RETURN_IF_ERROR(
      executable->arena_->Reserve(static_cast<size_t>(executable->plan_.arena_bytes)));
  executable->Bind();
  return std::unique_ptr<Executable>(std::move(executable));
}

void HostExecutable::FindPatches() {
  const auto add_patches = [](const std::vector<passes::Slot>& table, std::vector<Patch>* patches) {
    for (size_t i = 0; i < table.size(); ++i) {
      if (table[i].space == Space::kInput || table[i].space == Space::kOutput) {
        patches->push_back({i, table[i].space, static_cast<size_t>(table[i].index)});
      }
    }
  };
  add_patches(input_slots_, &input_patches_);
  add_patches(output_slots_, &output_patches_);
  input_table_.resize(input_slots_.size());
  output_table_.resize(output_slots_.size());
}

void* HostExecutable::Fixed(const passes::Slot& slot) const {
  const auto index = static_cast<size_t>(slot.index);
  switch (slot.space) {
    case Space::kArena:
      return static_cast<char*>(arena_->data()) + slot.offset;
    case Space::kConstant:
      return constants_[index].raw();
    case Space::kVariable:
      return variables_[index]->host_data();
    case Space::kInput:
    case Space::kOutput:
    case Space::kKept:
      break;
  }
  return nullptr;
}

const void* HostExecutable::Address(const passes::Slot& slot, const void* const* inputs,
                                    void* const* outputs) const {
  if (slot.space == Space::kInput) return inputs[slot.index];
  if (slot.space == Space::kOutput) return outputs[slot.index];
  return Fixed(slot);
}

void HostExecutable::Bind() {
  for (size_t i = 0; i < input_slots_.size(); ++i) input_table_[i] = Fixed(input_slots_[i]);
  for (size_t i = 0; i < output_slots_.size(); ++i) output_table_[i] = Fixed(output_slots_[i]);
  bound_generation_ = arena_->generation();
}

absl::Status HostExecutable::FetchVariables() const {
  for (const std::shared_ptr<VariableStorage>& variable : variables_) {
    if (!variable->host_is_newest()) HT_RETURN_IF_ERROR(variable->FetchToHost());
  }
  return absl::OkStatus();
}

absl::Status HostExecutable::RunKernels(uint64_t run_count) {
  kernels::RunState state;
  state.run_count = run_count;
  char* const arena = static_cast<char*>(arena_->data());
  for (const Call& call : calls_) {
    const kernels::KernelArgs args{
        input_table_.data() + call.first_input, output_table_.data() + call.first_output,
        call.kernel->workspace_bytes() == 0 ? nullptr : arena + call.workspace, &state};
    if (profile_ == nullptr) {
      call.kernel->Run(args);
    } else {
      const auto start = std::chrono::steady_clock::now();
      call.kernel->Run(args);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      profile_(*call.nodes[0], *call.kernel, taken.count());
    }
    if (call.can_fault && state.fault.raised) {
      return FaultOf(*call.nodes[0], state.fault);
    }
  }
  return absl::OkStatus();
}

absl::Status HostExecutable::Start(const void* const* inputs, void* const* outputs,
                                   uint64_t* run_count) {
  if (IsForkedThread()) [[unlikely]] {
    return RunBesideForkedThread([&] { return RunStep(inputs, outputs, run_count); });
  }
  return RunStep(inputs, outputs, run_count);
}

absl::Status HostExecutable::RunStep(const void* const* inputs, void* const* outputs,
                                     uint64_t* run_count) {
  HT_RETURN_IF_ERROR(UseNumThreads());
  HT_RETURN_IF_ERROR(FetchVariables());
  // Another executable of the graph may have made the arena grow.
  if (bound_generation_ != arena_->generation()) Bind();
  for (const Patch& patch : input_patches_) {
    input_table_[patch.table_index] =
        patch.space == Space::kInput ? inputs[patch.argument] : outputs[patch.argument];
  }
  for (const Patch& patch : output_patches_) {
    output_table_[patch.table_index] = outputs[patch.argument];
  }
  HT_RETURN_IF_ERROR(RunKernels((*run_count)++));

  for (const passes::OutputCopy& copy : plan_.output_copies) {
    if (copy.from.bytes == 0) continue;
    std::memcpy(outputs[copy.output], Address(copy.from, inputs, outputs),
                static_cast<size_t>(copy.from.bytes));
  }
  char* const arena = static_cast<char*>(arena_->data());
  for (const passes::CommitCopy& copy : plan_.commit_copies) {
    if (!copy.staged || copy.from.bytes == 0) continue;
    std::memcpy(arena + copy.staging_offset, Fixed(copy.from),
                static_cast<size_t>(copy.from.bytes));
  }
  for (const passes::CommitCopy& copy : plan_.commit_copies) {
    if (copy.from.bytes == 0) continue;
    const void* from =
        copy.staged ? arena + copy.staging_offset : Address(copy.from, inputs, outputs);
    std::memcpy(variables_[static_cast<size_t>(copy.variable)]->host_data(), from,
                static_cast<size_t>(copy.from.bytes));
  }
  for (VariableStorage* variable : written_) variable->HostWrote();
  return absl::OkStatus();
}

}  // namespace halftone::runtime
