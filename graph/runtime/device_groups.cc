// Which neighbouring calls of a step one multi-tensor kernel does, and which kept casts it writes.
#include <algorithm>
#include <utility>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/graph/runtime/device_executable.h"

namespace halftone::runtime {

// Whether neither call writes what the other reads or writes, so that they may run at once.
bool DeviceExecutable::IsIndependent(const Call& call, const Call& other) const {
  const auto touches = [](const passes::Slot& a, const passes::Slot& b) {
    return a.space == b.space && a.index == b.index && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
  };
  const auto written = [this](const Call& c) {
    std::vector<passes::Slot> slots(
        output_slots_.begin() + static_cast<int64_t>(c.first_output),
        output_slots_.begin() + static_cast<int64_t>(c.first_output) + c.node->num_outputs());
    passes::Slot scratch;
    scratch.offset = c.workspace;
    scratch.bytes = static_cast<int64_t>(c.kernel->workspace_bytes());
    slots.push_back(scratch);
    return slots;
  };
  const auto used = [this, &written](const Call& c) {
    std::vector<passes::Slot> slots = written(c);
    slots.insert(slots.end(), input_slots_.begin() + static_cast<int64_t>(c.first_input),
                 input_slots_.begin() + static_cast<int64_t>(c.first_input) + c.node->num_inputs());
    return slots;
  };
  const auto conflict = [&](const Call& writer, const Call& user) {
    for (const passes::Slot& a : written(writer)) {
      for (const passes::Slot& b : used(user)) {
        if (touches(a, b)) return true;
      }
    }
    return false;
  };
  return !conflict(call, other) && !conflict(other, call);
}

absl::StatusOr<int> DeviceExecutable::KeptThatUpdates(const Call& call) const {
  if (!call.node->attrs().Has("low")) return -1;
  const std::optional<DType> low = ops::LowCopyOf(*call.node);
  if (!low.has_value()) return -1;
  const passes::Slot& slot = output_slots_[call.first_output];
  for (size_t k = 0; k < kept_.size(); ++k) {
    if (slot.space == Space::kVariable && kept_[k].variable == static_cast<size_t>(slot.index) &&
        kept_[k].dtype == *low) {
      return static_cast<int>(k);
    }
  }
  return Internal(call.node->Label(), ": writes a copy in ", Name(*low),
                  ", but its parameter not in place, or no such cast of it is kept");
}

absl::Status DeviceExecutable::GroupCalls() {
  const kernels::KernelRegistry& registry = kernels::KernelRegistry::Global();
  std::vector<Call> grouped;
  for (size_t first = 0, end = 0; first < calls_.size(); first = end) {
    end = first + 1;
    const Call& call = calls_[first];
    const kernels::KernelCandidate* candidate =
        registry.Find(call.node->op().name, call.kernel->name());
    const bool groups = candidate->can_group && candidate->create_group;
    const auto joins = [&](const Call& next) {
      if (next.kernel->name() != call.kernel->name()) return false;
      if (!candidate->can_group(*call.node, *next.node)) return false;
      return std::all_of(calls_.begin() + static_cast<int64_t>(first),
                         calls_.begin() + static_cast<int64_t>(end),
                         [&](const Call& member) { return IsIndependent(member, next); });
    };
    while (groups && end < calls_.size() && joins(calls_[end])) ++end;
    std::vector<kernels::GroupMember> members;
    std::vector<int> copies;
    for (size_t c = first; groups && c < end; ++c) {
      HT_ASSIGN_OR_RETURN(const int kept, KeptThatUpdates(calls_[c]));
      copies.push_back(kept);
      members.push_back(
          {calls_[c].node, kept < 0 ? std::nullopt : std::optional<DType>(kept_[kept].dtype)});
    }
    if (!groups) {
      grouped.push_back(std::move(calls_[first]));
      call_copies_.emplace_back();
      continue;
    }
    HT_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Kernel> kernel,
                        registry.CreateGroup(*candidate, members));
    kernel_log_ += Concat("%", call.node->name(), " and ", end - first - 1, " more: one ",
                          kernel->name(), "\n");
    for (const int kept : copies) {
      if (kept >= 0) kept_[static_cast<size_t>(kept)].written_by_update = true;
    }
    Call joined;
    joined.node = call.node;
    joined.kernel = std::move(kernel);
    joined.first_input = call.first_input;
    joined.first_output = call.first_output;
    joined.workspace = -1;
    group_workspaces_.resize(grouped.size() + 1);
    HT_ASSIGN_OR_RETURN(group_workspaces_.back(),
                        backend_.Allocate(joined.kernel->workspace_bytes()));
    grouped.push_back(std::move(joined));
    call_copies_.push_back(std::move(copies));
  }
  calls_ = std::move(grouped);
  return absl::OkStatus();
}

}  // namespace halftone::runtime
