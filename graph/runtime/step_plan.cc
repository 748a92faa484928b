#include "halftone/graph/runtime/step_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/group_updates.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::runtime {
namespace {

using Slot = passes::Slot;
using Space = Slot::Space;

// Nodes that stand for a place, not for a computation.
bool Computes(const ir::Node& node) {
  return !passes::IsSource(node) && !passes::IsOp(node, "commit") && !passes::IsStorageAlias(node);
}

class StepPlanner {
 public:
  StepPlanner(std::unique_ptr<ir::Graph> graph, Device::Kind device,
              const passes::StepTraits& traits)
      : device_(device), traits_(traits), graph_(*graph) {
    plan_.graph = std::move(graph);
  }

  absl::StatusOr<StepPlan> Run() {
    HT_RETURN_IF_ERROR(SelectKernels());
    if (device_ == Device::Kind::kCuda) HT_RETURN_IF_ERROR(JoinUpdates());
    if (traits_.keeps_low_weights) CollectKept();
    PlanMemory();
    LayOutCalls();
    LayOutCopies();
    HT_RETURN_IF_ERROR(FindCopiesOfUpdates());
    HT_RETURN_IF_ERROR(FindPacked());
    return std::move(plan_);
  }

 private:
  absl::Status SelectKernels() {
    for (const auto& node : graph_.nodes()) {
      if (!Computes(*node)) continue;
      std::string refusals;
      auto kernel = registry_.Select(*node, device_, &refusals);
      if (!kernel.ok()) return Annotate(kernel.status(), WhereOf(*node));
      plan_.kernel_log +=
          Concat("%", node->name(), " = ", node->op().name, ": ", (*kernel)->name());
      if (!(*kernel)->implementation().empty()) {
        plan_.kernel_log += " (" + (*kernel)->implementation() + ")";
      }
      plan_.kernel_log += "\n" + refusals;
      kernels_[node->id()] = *std::move(kernel);
    }
    return absl::OkStatus();
  }

  // One kernel for the updates of a group.
  absl::Status JoinUpdates() {
    std::map<int, std::vector<const ir::Node*>> launches;
    const std::vector<int> firsts = passes::LaunchesOf(graph_);
    for (size_t p = 0; p < firsts.size(); ++p) {
      launches[firsts[p]].push_back(graph_.nodes()[p].get());
    }
    for (const auto& [first, nodes] : launches) {
      if (nodes.size() == 1) continue;
      HT_ASSIGN_OR_RETURN(const std::shared_ptr<kernels::Kernel> kernel,
                          registry_.SelectGroup(nodes, device_));
      plan_.kernel_log += Concat("%", nodes[0]->name(), " and ", nodes.size() - 1, " more: one ",
                                 kernel->name(), "\n");
      for (const ir::Node* node : nodes) kernels_[node->id()] = kernel;
    }
    return absl::OkStatus();
  }

  void CollectKept() {
    for (const auto& node : graph_.nodes()) {
      if (!passes::IsKeptCast(*node)) continue;
      const std::string& name = node->input(0).node->attrs().GetString("name");
      StepPlan::KeptCast& kept = plan_.kept.emplace_back();
      kept.variable = graph_.VariableIndex(name);
      kept.dtype = node->output_type().dtype;
      kept.call.nodes = {node.get()};
      kept.call.kernel = kernels_.at(node->id());
    }
  }

  void PlanMemory() {
    plan_.memory = passes::PlanMemory(
        graph_, passes::PlanOptionsFor(graph_, traits_, [this](const ir::Node& node) {
          const kernels::Kernel& kernel = *kernels_.at(node.id());
          return ir::KernelTraits{static_cast<int64_t>(kernel.workspace_bytes()),
                                  kernel.keeps_state_on_fault()};
        }));
  }

  void LayOutCalls() {
    std::map<std::pair<int64_t, int>, Slot> slots;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = *graph_.nodes()[i];
      const passes::NodePlan& places = plan_.memory.nodes[i];
      for (int out = 0; out < node.num_outputs(); ++out) {
        slots[{node.id(), out}] = places.outputs[static_cast<size_t>(out)];
      }
      if (passes::IsOp(node, "input")) plan_.input_types.push_back(node.output_type());
      if (const Tensor* value =
              node.num_outputs() == 1 ? passes::ConstantValue(node.output()) : nullptr) {
        plan_.constants.push_back(*value);
      }
      if (!places.runs) continue;
      const std::shared_ptr<kernels::Kernel>& kernel = kernels_.at(node.id());
      if (!places.joins || plan_.calls.back().kernel != kernel) {
        plan_.calls.push_back({{},
                               kernel,
                               plan_.input_slots.size(),
                               plan_.output_slots.size(),
                               plan_.copies.size(),
                               places.workspace_offset,
                               /*packed=*/-1,
                               node.op().can_fault(),
                               node.op().communicates});
        plan_.communicates = plan_.communicates || node.op().communicates;
      }
      plan_.calls.back().nodes.push_back(&node);
      plan_.copies.push_back(-1);
      for (const ir::Value& v : node.inputs()) {
        plan_.input_slots.push_back(slots.at({v.node->id(), v.index}));
      }
      plan_.output_slots.insert(plan_.output_slots.end(), places.outputs.begin(),
                                places.outputs.end());
    }
    for (const ir::Output& output : graph_.outputs()) {
      plan_.output_types.push_back(output.value.type());
    }
    for (const ir::Node* commit : graph_.commits()) {
      plan_.written.push_back(graph_.VariableIndex(commit->attrs().GetString("variable")));
    }
  }

  void LayOutCopies() {
    const auto add = [](std::vector<StepPlan::Copy>& copies, const Slot& from, Slot to) {
      to.bytes = from.bytes;
      if (from.bytes > 0) copies.push_back({from, to});
    };
    for (const passes::OutputCopy& copy : plan_.memory.output_copies) {
      add(plan_.output_copies, copy.from, {Space::kOutput, copy.output, 0, 0});
    }
    for (const passes::CommitCopy& copy : plan_.memory.commit_copies) {
      Slot from = copy.from;
      if (copy.staged) {
        const Slot staging{Space::kArena, 0, copy.staging_offset, copy.from.bytes};
        add(plan_.staging_copies, from, staging);
        from = staging;
      }
      add(plan_.commit_copies, from, {Space::kVariable, copy.variable, 0, 0});
    }
  }

  absl::Status FindCopiesOfUpdates() {
    if (!traits_.keeps_low_weights) return absl::OkStatus();
    for (const StepPlan::Call& call : plan_.calls) {
      size_t output = call.first_output, copy = call.first_copy;
      for (const ir::Node* node : call.nodes) {
        if (call.kernel->writes_copies()) {
          HT_ASSIGN_OR_RETURN(plan_.copies[copy], CopyOf(*node, plan_.output_slots[output]));
        }
        ++copy;
        output += static_cast<size_t>(node->num_outputs());
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindPacked() {
    for (size_t c = 0; c < plan_.calls.size(); ++c) {
      StepPlan::Call& call = plan_.calls[c];
      if (call.kernel->packing().bytes == 0) continue;
      const Slot& weight = plan_.input_slots[call.first_input + 1];
      StepPlan::Packed packed{.call = c};
      if (weight.space == Space::kVariable) packed.variable = weight.index;
      if (weight.space == Space::kKept) {
        packed.kept = weight.index;
        packed.variable = plan_.kept[static_cast<size_t>(weight.index)].variable;
      }
      const bool is_written =
          std::count(plan_.written.begin(), plan_.written.end(), packed.variable) > 0;
      if (is_written || (packed.variable < 0 && weight.space != Space::kConstant)) {
        return InvalidArgument(call.nodes[0]->Label(),
                               ": packed is true; expected an input 1 that no step writes");
      }
      call.packed = static_cast<int>(plan_.packed.size());
      plan_.packed.push_back(packed);
    }
    FindOnlyPacked();
    return absl::OkStatus();
  }

  void FindOnlyPacked() {
    std::vector<int> other_reads(plan_.kept.size());
    const auto count = [&](const Slot& slot, int by) {
      if (slot.space == Space::kKept) other_reads[static_cast<size_t>(slot.index)] += by;
    };
    for (const Slot& slot : plan_.input_slots) count(slot, 1);
    for (const auto* copies : {&plan_.output_copies, &plan_.staging_copies, &plan_.commit_copies}) {
      for (const StepPlan::Copy& copy : *copies) count(copy.from, 1);
    }
    for (const StepPlan::Packed& packed : plan_.packed) {
      count(plan_.input_slots[plan_.calls[packed.call].first_input + 1], -1);
      if (packed.kept >= 0) plan_.kept[static_cast<size_t>(packed.kept)].only_packed = true;
    }
    for (size_t k = 0; k < plan_.kept.size(); ++k) {
      plan_.kept[k].only_packed = plan_.kept[k].only_packed && other_reads[k] == 0;
    }
  }

  // The kept cast that a node writes besides the parameter at `param`; -1: none.
  absl::StatusOr<int> CopyOf(const ir::Node& node, const Slot& param) {
    if (!passes::MayWriteLow(node)) return -1;
    const std::optional<DType> low = ops::LowCopyOf(node);
    if (!low.has_value()) return -1;
    for (size_t k = 0; k < plan_.kept.size(); ++k) {
      StepPlan::KeptCast& kept = plan_.kept[k];
      if (param.space != Space::kVariable || kept.variable != param.index || kept.dtype != *low) {
        continue;
      }
      kept.written_by_update = true;
      return static_cast<int>(k);
    }
    return Internal(node.Label(), ": writes a copy in ", Name(*low),
                    ", but its parameter not in place, or no such cast of it is kept");
  }

  const kernels::KernelRegistry& registry_ = kernels::KernelRegistry::Global();
  const Device::Kind device_;
  const passes::StepTraits traits_;
  const ir::Graph& graph_;
  std::map<int64_t, std::shared_ptr<kernels::Kernel>> kernels_;  // by node id
  StepPlan plan_;
};

}  // namespace

absl::StatusOr<StepPlan> PlanStep(std::unique_ptr<ir::Graph> graph, Device::Kind device,
                                  const passes::StepTraits& traits) {
  return StepPlanner(std::move(graph), device, traits).Run();
}

std::string WhereOf(const ir::Node& node) {
  const std::string where = node.location.ToString();
  return where.empty() ? "" : where + ": ";
}

absl::Status FaultOf(const StepPlan::Call& call, const kernels::Fault& fault) {
  const ir::Node& node = *call.nodes[0];
  return Annotate(kernels::FaultError(node, fault), WhereOf(node));
}

}  // namespace halftone::runtime
