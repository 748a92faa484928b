#include "halftone/passes/memory/memory_plan_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "halftone/core/allocator.h"
#include "halftone/graph/ir/in_place.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using Space = Slot::Space;

// What one buffer holds: disjoint byte intervals, each with the value written there last.
class Bytes {
 public:
  void Write(int64_t from, int64_t to, const std::string& value) {
    if (from == to) return;
    SplitAt(from);
    SplitAt(to);
    pieces_.erase(pieces_.lower_bound(from), pieces_.lower_bound(to));
    pieces_[from] = {to, value};
  }

  // "" if [from, to) holds `value` throughout, else what is found instead.
  std::string Foreign(int64_t from, int64_t to, const std::string& value) const {
    auto it = pieces_.upper_bound(from);
    if (it != pieces_.begin()) --it;
    while (from < to) {
      if (it == pieces_.end() || it->first > from || it->second.to <= from) return "nothing";
      if (it->second.value != value) return it->second.value;
      from = it->second.to;
      ++it;
    }
    return "";
  }

 private:
  struct Piece {
    int64_t to;
    std::string value;
  };

  void SplitAt(int64_t at) {
    auto it = pieces_.lower_bound(at);
    if (it == pieces_.begin()) return;
    --it;
    if (it->second.to <= at) return;
    pieces_[at] = it->second;
    it->second.to = at;
  }

  std::map<int64_t, Piece> pieces_;
};

bool Overlap(const Slot& a, const Slot& b) {
  return a.space == b.space && a.index == b.index && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

class Checker {
 public:
  Checker(const ir::Graph& graph, const MemoryPlan& plan, const MemoryPlanOptions& options)
      : graph_(graph), plan_(plan), options_(options) {}

  absl::Status Run() {
    if (plan_.nodes.size() != graph_.nodes().size()) {
      return Internal("memory plan: ", plan_.nodes.size(), " nodes; expected ",
                      graph_.nodes().size());
    }
    HT_RETURN_IF_ERROR(CollectCommits());
    for (size_t p = 0; p < graph_.nodes().size(); ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      const NodePlan& plan = plan_.nodes[p];
      absl::Status status = CheckSizes(node, plan);
      if (status.ok()) {
        if (IsSource(node)) {
          status = PlaySource(node, plan);
        } else if (IsStorageAlias(node)) {
          status = PlayAlias(node, plan);
        } else if (options_.keep_casts && IsKeptCast(node)) {
          status = PlayKept(node, plan);
        } else if (!IsOp(node, "commit")) {
          status = PlayNode(node, plan);
        }
      }
      HT_RETURN_IF_ERROR(Annotate(status, "memory plan: " + node.Label() + ": "));
    }
    return Annotate(PlayEnd(), "memory plan: ");
  }

 private:
  // The name by which bytes remember a value; shared by reshapes of it.
  const std::string& Content(ir::Value v) const { return content_.at({v.node->id(), v.index}); }
  const Slot& SlotOf(ir::Value v) const { return slot_.at({v.node->id(), v.index}); }
  Bytes& BytesOf(const Slot& slot) { return memory_[{slot.space, slot.index}]; }

  void Write(const Slot& slot, const std::string& value) {
    BytesOf(slot).Write(slot.offset, slot.offset + slot.bytes, value);
  }

  absl::Status Holds(const Slot& slot, const std::string& value) {
    const std::string foreign = BytesOf(slot).Foreign(slot.offset, slot.offset + slot.bytes, value);
    if (foreign.empty()) return absl::OkStatus();
    return Internal("reads ", value, ", whose bytes hold ", foreign);
  }

  absl::Status CollectCommits() {
    for (const ir::Node* commit : graph_.commits()) {
      committed_[VariableIndex(commit->attrs().GetString("variable"))] = commit->input(0);
    }
    for (size_t i = 0; i < graph_.variables().size(); ++i) {
      Slot slot;
      slot.space = Space::kVariable;
      slot.index = static_cast<int>(i);
      slot.bytes = graph_.variables()[i].type.num_bytes();
      Write(slot, OldValue(slot.index));
    }
    return absl::OkStatus();
  }

  int VariableIndex(const std::string& name) const { return graph_.VariableIndex(name); }

  std::string OldValue(int variable) const {
    return "variable \"" + graph_.variables()[variable].name + "\"";
  }

  absl::Status CheckSizes(const ir::Node& node, const NodePlan& plan) {
    if (static_cast<int>(plan.outputs.size()) != node.num_outputs()) {
      return Internal("has slots for ", plan.outputs.size(), " outputs");
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Slot& slot = plan.outputs[i];
      slot_[{node.id(), i}] = slot;
      content_[{node.id(), i}] = node.output(i).ToString();
      if (slot.bytes != node.output_type(i).num_bytes()) {
        return Internal("output ", i, " has ", slot.bytes, " bytes; expected ",
                        node.output_type(i).num_bytes());
      }
      HT_RETURN_IF_ERROR(CheckInArena(slot));
    }
    Slot scratch;
    scratch.offset = plan.workspace_offset;
    scratch.bytes = plan.workspace_bytes;
    HT_RETURN_IF_ERROR(CheckInArena(scratch));
    if (plan.runs && !plan.joins && options_.workspace_bytes &&
        plan.workspace_bytes < options_.workspace_bytes(node)) {
      return Internal("scratch of ", plan.workspace_bytes, " bytes; expected ",
                      options_.workspace_bytes(node));
    }
    return absl::OkStatus();
  }

  absl::Status CheckInArena(const Slot& slot) const {
    if (slot.space != Space::kArena) {
      if (slot.offset == 0) return absl::OkStatus();
      return Internal("a slot outside the arena has offset ", slot.offset);
    }
    if (slot.offset < 0 || slot.offset % static_cast<int64_t>(kBufferAlignment) != 0 ||
        slot.offset + slot.bytes > plan_.arena_bytes) {
      return Internal("bytes ", slot.offset, "..", slot.offset + slot.bytes,
                      " are misaligned or outside the arena of ", plan_.arena_bytes);
    }
    return absl::OkStatus();
  }

  absl::Status PlaySource(const ir::Node& node, const NodePlan& plan) {
    const Slot& slot = plan.outputs[0];
    if (plan.runs) return Internal("runs");
    if (IsOp(node, "variable")) {
      const int variable = VariableIndex(node.attrs().GetString("name"));
      if (slot.space != Space::kVariable || slot.index != variable) {
        return Internal("is not where its variable is");
      }
      content_[{node.id(), 0}] = OldValue(variable);
      return absl::OkStatus();
    }
    const bool is_input = IsOp(node, "input");
    if (slot.space != (is_input ? Space::kInput : Space::kConstant) ||
        slot.index != (is_input ? inputs_++ : constants_++)) {
      return Internal("is not where it is given");
    }
    Write(slot, Content(node.output()));
    return absl::OkStatus();
  }

  absl::Status PlayKept(const ir::Node& node, const NodePlan& plan) {
    const Slot& slot = plan.outputs[0];
    if (plan.runs || slot.space != Space::kKept || slot.index != kept_++) {
      return Internal("is not where kept values are");
    }
    Write(slot, Content(node.output()));
    const int variable = VariableIndex(node.input(0).node->attrs().GetString("name"));
    kept_of_[{variable, node.output_type().dtype}].push_back(slot);
    return absl::OkStatus();
  }

  // The kept casts that an update writes besides its parameter.
  absl::Status PlayLowCopies(const ir::Node& node, const NodePlan& plan) {
    if (!options_.keep_casts || !MayWriteLow(node)) return absl::OkStatus();
    const std::optional<DType> low = ops::LowCopyOf(node);
    if (!low.has_value()) return absl::OkStatus();
    const Slot& param = plan.outputs[0];
    const auto kept = kept_of_.find({param.index, *low});
    if (param.space != Space::kVariable || kept == kept_of_.end()) {
      return Internal("writes a copy in ", Name(*low),
                      ", but its parameter not in place, or no such cast of it is kept");
    }
    for (const Slot& slot : kept->second) Write(slot, "the next " + OldValue(param.index));
    return absl::OkStatus();
  }

  absl::Status PlayAlias(const ir::Node& node, const NodePlan& plan) {
    if (plan.runs || !(plan.outputs[0] == SlotOf(node.input(0)))) {
      return Internal("is not where its operand is");
    }
    content_[{node.id(), 0}] = Content(node.input(0));
    return absl::OkStatus();
  }

  // Whether a node that ran would have raised each fault that this one can raise.
  bool IndicesAreChecked(const ir::Node& node) const {
    const auto found = checked_indices_.find({node.input(1).node->id(), node.input(1).index});
    if (found == checked_indices_.end()) return false;
    const auto ignored = [](const ir::Node& n) {
      return n.attrs().Has("ignore_index") ? std::optional(n.attrs().GetInt("ignore_index"))
                                           : std::nullopt;
    };
    return std::any_of(found->second.begin(), found->second.end(), [&](const ir::Node* ran) {
      const bool ignores_more = ignored(*ran).has_value() && ignored(*ran) != ignored(node);
      return !ignores_more && ran->op().index_extent(*ran) <= node.op().index_extent(node);
    });
  }

  absl::Status PlayNode(const ir::Node& node, const NodePlan& plan) {
    if (!plan.runs) return Internal("does not run");
    if (node.op().can_fault()) {
      if (!IndicesAreChecked(node) && !written_variables_.empty()) {
        return Internal("may fault after ", OldValue(*written_variables_.begin()), " is written");
      }
      checked_indices_[{node.input(1).node->id(), node.input(1).index}].push_back(&node);
    }
    for (ir::Value v : node.inputs()) HT_RETURN_IF_ERROR(Holds(SlotOf(v), Content(v)));
    if (!plan.joins) launch_.clear();
    std::vector<Slot> written = plan.outputs;
    Slot scratch;
    scratch.offset = plan.workspace_offset;
    scratch.bytes = plan.workspace_bytes;
    written.push_back(scratch);
    for (size_t i = 0; i < written.size(); ++i) {
      const bool is_scratch = i + 1 == written.size();
      for (const Slot& used : launch_) {
        if (Overlap(written[i], used)) return Internal("writes what its launch uses");
      }
      for (size_t j = 0; j < i; ++j) {
        if (Overlap(written[i], written[j])) return Internal("outputs overlap");
      }
      HT_RETURN_IF_ERROR(CheckOperands(node, written[i], is_scratch ? -1 : static_cast<int>(i)));
      if (!is_scratch) HT_RETURN_IF_ERROR(CheckMayWrite(node, static_cast<int>(i), written[i]));
    }
    launch_.insert(launch_.end(), written.begin(), written.end());
    for (ir::Value v : node.inputs()) launch_.push_back(SlotOf(v));
    Write(scratch, "scratch of " + node.Label());
    for (int i = 0; i < node.num_outputs(); ++i) Write(plan.outputs[i], Content(node.output(i)));
    return PlayLowCopies(node, plan);
  }

  // `output` is -1 for scratch.
  absl::Status CheckOperands(const ir::Node& node, const Slot& written, int output) const {
    const auto& pairs = node.op().in_place;
    int overlapping = 0;
    for (int port = 0; port < node.num_inputs(); ++port) {
      const Slot& read = SlotOf(node.input(port));
      if (!Overlap(written, read)) continue;
      const bool allowed = std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
        return pair.input == port && pair.output == output &&
               ir::FitsInPlace(node.input_type(port), node.output_type(output));
      });
      if (!allowed || !(read == written) || ++overlapping > 1) {
        return Internal("writes output ", output, " over operand ", port);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckMayWrite(const ir::Node& node, int output, const Slot& slot) {
    const ir::Value value = node.output(output);
    switch (slot.space) {
      case Space::kArena:
        return absl::OkStatus();
      case Space::kInput:
      case Space::kConstant:
        return Internal("writes a graph input or a constant");
      case Space::kKept:
        return Internal("writes a kept value");
      case Space::kOutput:
        if (IsSameOrReshaped(graph_.outputs()[slot.index].value, value)) return absl::OkStatus();
        return Internal("writes the buffer of graph output ", slot.index);
      case Space::kVariable:
        break;
    }
    const auto commit = committed_.find(slot.index);
    if (commit == committed_.end() || !IsSameOrReshaped(commit->second, value)) {
      return Internal("writes ", OldValue(slot.index), ", to which it is not committed");
    }
    if (node.op().can_fault()) return Internal("may fault and writes ", OldValue(slot.index));
    if (options_.may_write_variable && !options_.may_write_variable(node)) {
      return Internal("may not write ", OldValue(slot.index));
    }
    written_variables_.insert(slot.index);
    return absl::OkStatus();
  }

  // Whether `v` is `origin`, perhaps under another shape.
  static bool IsSameOrReshaped(ir::Value v, ir::Value origin) {
    while (!(v == origin) && IsStorageAlias(*v.node)) v = v.node->input(0);
    return v == origin;
  }

  absl::Status PlayEnd() {
    for (const OutputCopy& copy : plan_.output_copies) {
      const ir::Value value = graph_.outputs()[copy.output].value;
      HT_RETURN_IF_ERROR(Holds(copy.from, Content(value)));
      Write(OutputSlot(copy.output), Content(value));
    }
    for (const CommitCopy& copy : plan_.commit_copies) {
      if (!committed_.contains(copy.variable)) {
        return Internal("writes variable ", copy.variable, ", which has no commit");
      }
      if (!copy.staged) continue;
      HT_RETURN_IF_ERROR(Holds(copy.from, Content(committed_.at(copy.variable))));
      HT_RETURN_IF_ERROR(CheckInArena(Staging(copy)));
      Write(Staging(copy), Content(committed_.at(copy.variable)));
    }
    for (const CommitCopy& copy : plan_.commit_copies) {
      const std::string& value = Content(committed_.at(copy.variable));
      HT_RETURN_IF_ERROR(Holds(copy.staged ? Staging(copy) : copy.from, value));
      Write(VariableSlot(copy.variable), value);
    }
    for (int i = 0; i < static_cast<int>(graph_.outputs().size()); ++i) {
      HT_RETURN_IF_ERROR(Holds(OutputSlot(i), Content(graph_.outputs()[i].value)));
    }
    for (int i = 0; i < static_cast<int>(graph_.variables().size()); ++i) {
      const auto commit = committed_.find(i);
      HT_RETURN_IF_ERROR(Holds(VariableSlot(i),
                               commit == committed_.end() ? OldValue(i) : Content(commit->second)));
    }
    return absl::OkStatus();
  }

  Slot OutputSlot(int i) const {
    return {Space::kOutput, i, 0, graph_.outputs()[i].value.type().num_bytes()};
  }
  Slot VariableSlot(int i) const {
    return {Space::kVariable, i, 0, graph_.variables()[i].type.num_bytes()};
  }
  static Slot Staging(const CommitCopy& copy) {
    return {Space::kArena, 0, copy.staging_offset, copy.from.bytes};
  }

  const ir::Graph& graph_;
  const MemoryPlan& plan_;
  const MemoryPlanOptions& options_;
  std::map<std::pair<Space, int>, Bytes> memory_;
  std::map<std::pair<int64_t, int>, std::string> content_;
  std::map<std::pair<int64_t, int>, Slot> slot_;
  std::map<int, ir::Value> committed_;  // variable to its new value
  std::set<int> written_variables_;
  std::map<std::pair<int64_t, int>, std::vector<const ir::Node*>> checked_indices_;
  std::vector<Slot> launch_;  // what the nodes before in this launch read and write
  std::map<std::pair<int, DType>, std::vector<Slot>> kept_of_;  // by variable and dtype
  int inputs_ = 0;
  int constants_ = 0;
  int kept_ = 0;
};

}  // namespace

absl::Status CheckMemoryPlan(const ir::Graph& graph, const MemoryPlan& plan,
                             const MemoryPlanOptions& options) {
  return Checker(graph, plan, options).Run();
}

}  // namespace halftone::passes
