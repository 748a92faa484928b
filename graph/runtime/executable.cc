#include "halftone/graph/runtime/executable.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "halftone/core/threads.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/storage_alias.h"

namespace halftone::runtime {
namespace {

// Nodes that stand for a place, not for a computation.
bool Computes(const ir::Node& node) {
  const std::string& op = node.op().name;
  return op != "input" && op != "variable" && op != "constant" && op != "commit" &&
         !passes::IsStorageAlias(node);
}

std::string Where(const ir::Node& node) {
  const std::string where = node.location.ToString();
  return where.empty() ? "" : where + ": ";
}

}  // namespace

Executable::~Executable() = default;

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(std::unique_ptr<ir::Graph> graph,
                                                               const Device& device, uint64_t seed,
                                                               VariableStore& store,
                                                               std::shared_ptr<Arena> arena) {
  std::unique_ptr<Executable> executable(new Executable());
  executable->graph_ = std::move(graph);
  executable->arena_ = std::move(arena);
  HT_RETURN_IF_ERROR(executable->SelectKernels(device));
  HT_RETURN_IF_ERROR(executable->ResolveVariables(seed, store));
  executable->Plan();
  HT_RETURN_IF_ERROR(
      executable->arena_->Reserve(static_cast<size_t>(executable->plan_.arena_bytes)));
  executable->Bind();
  return executable;
}

absl::Status Executable::SelectKernels(const Device& device) {
  for (const std::unique_ptr<ir::Node>& node : graph_->nodes()) {
    if (!Computes(*node)) continue;
    std::string refusals;
    auto kernel = kernels::KernelRegistry::Global().Select(*node, device.kind, &refusals);
    if (!kernel.ok()) return Annotate(kernel.status(), Where(*node));
    kernel_log_ += Concat("%", node->name(), " = ", node->op().name, ": ", (*kernel)->name());
    if (!(*kernel)->implementation().empty()) {
      kernel_log_ += " (" + (*kernel)->implementation() + ")";
    }
    kernel_log_ += "\n" + refusals;
    selected_[node->id()] = *std::move(kernel);
  }
  return absl::OkStatus();
}

absl::Status Executable::ResolveVariables(uint64_t seed, VariableStore& store) {
  std::map<std::string, VariableStorage*> by_name;
  for (const ir::Variable& variable : graph_->variables()) {
    HT_ASSIGN_OR_RETURN(std::shared_ptr<VariableStorage> storage, store.Resolve(variable, seed));
    by_name[variable.name] = storage.get();
    variables_.push_back(std::move(storage));
  }
  for (const ir::Node* commit : graph_->commits()) {
    written_.push_back(by_name.at(commit->attrs().GetString("variable")));
  }
  return absl::OkStatus();
}

void Executable::Plan() {
  passes::MemoryPlanOptions options;
  options.workspace_bytes = [this](const ir::Node& node) {
    return static_cast<int64_t>(selected_.at(node.id())->workspace_bytes());
  };
  plan_ = passes::PlanMemory(*graph_, options);

  std::map<std::pair<int64_t, int>, passes::Slot> slots;
  for (size_t i = 0; i < graph_->nodes().size(); ++i) {
    const ir::Node& node = *graph_->nodes()[i];
    const passes::NodePlan& plan = plan_.nodes[i];
    for (int out = 0; out < node.num_outputs(); ++out) {
      slots[{node.id(), out}] = plan.outputs[static_cast<size_t>(out)];
    }
    if (node.op().name == "input") input_types_.push_back(node.output_type());
    if (node.op().name == "constant") constants_.push_back(node.attrs().Get<Tensor>("value"));
    if (!plan.runs) continue;
    Call call;
    call.node = &node;
    call.kernel = std::move(selected_.at(node.id()));
    call.first_input = input_slots_.size();
    call.first_output = output_slots_.size();
    call.workspace = plan.workspace_offset;
    call.can_fault = node.op().can_fault;
    for (const ir::Value& v : node.inputs())
      input_slots_.push_back(slots.at({v.node->id(), v.index}));
    output_slots_.insert(output_slots_.end(), plan.outputs.begin(), plan.outputs.end());
    calls_.push_back(std::move(call));
  }
  selected_.clear();
  for (const ir::Output& output : graph_->outputs()) output_types_.push_back(output.value.type());

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

void* Executable::Fixed(const passes::Slot& slot) const {
  const auto index = static_cast<size_t>(slot.index);
  switch (slot.space) {
    case Space::kArena:
      return static_cast<char*>(arena_->data()) + slot.offset;
    case Space::kConstant:
      return constants_[index].raw();
    case Space::kVariable:
      return variables_[index]->data();
    case Space::kInput:
    case Space::kOutput:
      break;
  }
  return nullptr;
}

const void* Executable::Address(const passes::Slot& slot, const void* const* inputs,
                                void* const* outputs) const {
  if (slot.space == Space::kInput) return inputs[slot.index];
  if (slot.space == Space::kOutput) return outputs[slot.index];
  return Fixed(slot);
}

void Executable::Bind() {
  for (size_t i = 0; i < input_slots_.size(); ++i) input_table_[i] = Fixed(input_slots_[i]);
  for (size_t i = 0; i < output_slots_.size(); ++i) output_table_[i] = Fixed(output_slots_[i]);
  bound_generation_ = arena_->generation();
}

absl::Status Executable::RunKernels(uint64_t run_count) {
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
      profile_(*call.node, *call.kernel, taken.count());
    }
    if (call.can_fault && state.fault.raised) {
      return Annotate(kernels::FaultError(*call.node, state.fault), Where(*call.node));
    }
  }
  return absl::OkStatus();
}

absl::Status Executable::Run(const void* const* inputs, void* const* outputs, uint64_t run_count) {
  UseNumThreads();
  // Another executable of the graph may have made the arena grow.
  if (bound_generation_ != arena_->generation()) Bind();
  for (const Patch& patch : input_patches_) {
    input_table_[patch.table_index] =
        patch.space == Space::kInput ? inputs[patch.argument] : outputs[patch.argument];
  }
  for (const Patch& patch : output_patches_) {
    output_table_[patch.table_index] = outputs[patch.argument];
  }
  HT_RETURN_IF_ERROR(RunKernels(run_count));

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
    std::memcpy(variables_[static_cast<size_t>(copy.variable)]->data(), from,
                static_cast<size_t>(copy.from.bytes));
  }
  for (VariableStorage* variable : written_) variable->BumpVersion();
  return absl::OkStatus();
}

std::vector<Executable::Step> Executable::steps() const {
  std::vector<Step> steps;
  for (const Call& call : calls_) steps.push_back({call.node, call.kernel.get()});
  return steps;
}

}  // namespace halftone::runtime
