#include "halftone/graph/runtime/runner.h"

#include <chrono>

namespace halftone::runtime {

void* Places::AddressOf(const passes::Slot& slot) const {
  using Space = passes::Slot::Space;
  const auto index = static_cast<size_t>(slot.index);
  switch (slot.space) {
    case Space::kArena:
      return arena + slot.offset;
    case Space::kInput:
      return inputs[index];
    case Space::kOutput:
      return outputs[index];
    case Space::kConstant:
      return constants[index];
    case Space::kVariable:
      return variables[index];
    case Space::kKept:
      return kept[index];
  }
  return nullptr;
}

void ArgumentTables::Fill(const StepPlan& plan, const Places& places) {
  inputs.clear();
  outputs.clear();
  workspaces.clear();
  copies.clear();
  packed.clear();
  for (const passes::Slot& slot : plan.input_slots) inputs.push_back(places.AddressOf(slot));
  for (const passes::Slot& slot : plan.output_slots) outputs.push_back(places.AddressOf(slot));
  for (const StepPlan::Call& call : plan.calls) {
    const bool has_none = call.kernel->workspace_bytes() == 0;
    workspaces.push_back(has_none ? nullptr : places.arena + call.workspace);
    packed.push_back(call.packed < 0 ? nullptr : places.packed[static_cast<size_t>(call.packed)]);
  }
  for (const int kept : plan.copies) {
    copies.push_back(kept < 0 ? nullptr : places.kept[static_cast<size_t>(kept)]);
  }
}

kernels::KernelArgs ArgumentTables::ArgsOf(const StepPlan& plan, size_t call,
                                           kernels::RunState* state) const {
  const StepPlan::Call& c = plan.calls[call];
  return {inputs.data() + c.first_input,
          outputs.data() + c.first_output,
          workspaces[call],
          state,
          /*fault_id=*/static_cast<int64_t>(call) + 1,
          copies.data() + c.first_copy,
          packed[call]};
}

absl::Status RunObserved(const Observers& observers, const StepPlan::Call& call,
                         void* const* outputs, const ObservedCall& observed) {
  const auto start = std::chrono::steady_clock::now();
  HT_RETURN_IF_ERROR(observed.run());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (observers.profile != nullptr) {
    observers.profile(*call.nodes[0], *call.kernel, taken.count());
  }
  if (observers.watch == nullptr) return absl::OkStatus();
  for (const ir::Node* node : call.nodes) {
    for (int i = 0; i < node->num_outputs(); ++i, ++outputs) {
      const ir::ValueType& type = node->output_type(i);
      HT_ASSIGN_OR_RETURN(const Tensor tensor, Tensor::Allocate(type.dtype, type.shape));
      if (tensor.num_bytes() > 0) {
        HT_RETURN_IF_ERROR(observed.copy_to_host(tensor.raw(), *outputs, tensor.num_bytes()));
      }
      HT_RETURN_IF_ERROR(observers.watch(node->output(i), tensor));
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::runtime
