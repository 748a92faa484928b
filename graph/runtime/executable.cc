#include "halftone/graph/runtime/executable.h"

#include <utility>

#include "halftone/graph/runtime/device_executable.h"
#include "halftone/graph/runtime/host_executable.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/group_updates.h"

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

absl::StatusOr<std::unique_ptr<Executable>> Executable::Create(std::unique_ptr<ir::Graph> graph,
                                                               const Device& device, uint64_t seed,
                                                               VariableStore& store,
                                                               std::shared_ptr<Arena> arena) {
  if (device.kind != Device::Kind::kCuda) {
    return HostExecutable::Create(std::move(graph), device, seed, store, std::move(arena));
  }
  HT_ASSIGN_OR_RETURN(kernels::DeviceBackend * backend, kernels::OpenCuda(device.index));
  return DeviceExecutable::Create(std::move(graph), *backend, seed, store, std::move(arena));
}

absl::Status Executable::Run(const void* const* inputs, void* const* outputs, uint64_t run_count) {
  HT_RETURN_IF_ERROR(Start(inputs, outputs, &run_count));
  return Finish();
}

absl::Status Executable::SelectKernels(Device::Kind device, bool joins_updates) {
  const kernels::KernelRegistry& registry = kernels::KernelRegistry::Global();
  for (const std::unique_ptr<ir::Node>& node : graph_->nodes()) {
    if (!Computes(*node)) continue;
    std::string refusals;
    auto kernel = registry.Select(*node, device, &refusals);
    if (!kernel.ok()) return Annotate(kernel.status(), Where(*node));
    kernel_log_ += Concat("%", node->name(), " = ", node->op().name, ": ", (*kernel)->name());
    if (!(*kernel)->implementation().empty()) {
      kernel_log_ += " (" + (*kernel)->implementation() + ")";
    }
    kernel_log_ += "\n" + refusals;
    selected_[node->id()] = *std::move(kernel);
  }
  if (!joins_updates) return absl::OkStatus();
  std::map<int, std::vector<const ir::Node*>> launches;
  const std::vector<int> firsts = passes::LaunchesOf(*graph_);
  for (size_t p = 0; p < firsts.size(); ++p) {
    launches[firsts[p]].push_back(graph_->nodes()[p].get());
  }
  for (const auto& [first, nodes] : launches) {
    if (nodes.size() == 1) continue;
    HT_ASSIGN_OR_RETURN(const std::shared_ptr<kernels::Kernel> kernel,
                        registry.SelectGroup(nodes, device));
    kernel_log_ += Concat("%", nodes[0]->name(), " and ", nodes.size() - 1, " more: one ",
                          kernel->name(), "\n");
    for (const ir::Node* node : nodes) selected_[node->id()] = kernel;
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

void Executable::Plan(passes::MemoryPlanOptions options) {
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
    const std::shared_ptr<kernels::Kernel>& kernel = selected_.at(node.id());
    if (!plan.joins || calls_.back().kernel != kernel) {
      calls_.push_back({{},
                        kernel,
                        input_slots_.size(),
                        output_slots_.size(),
                        plan.workspace_offset,
                        node.op().can_fault});
    }
    calls_.back().nodes.push_back(&node);
    for (const ir::Value& v : node.inputs())
      input_slots_.push_back(slots.at({v.node->id(), v.index}));
    output_slots_.insert(output_slots_.end(), plan.outputs.begin(), plan.outputs.end());
  }
  selected_.clear();
  for (const ir::Output& output : graph_->outputs()) output_types_.push_back(output.value.type());
}

absl::Status Executable::FaultOf(const ir::Node& node, const kernels::Fault& fault) const {
  return Annotate(kernels::FaultError(node, fault), Where(node));
}

std::vector<Executable::Step> Executable::steps() const {
  std::vector<Step> steps;
  for (const Call& call : calls_) steps.push_back({call.nodes[0], call.kernel.get()});
  return steps;
}

}  // namespace halftone::runtime
