#include "halftone/passes/memory/memory_plan.h"

#include <algorithm>
#include <set>

#include "halftone/graph/ir/in_place.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/arena_packing.h"
#include "halftone/passes/memory/fault_order.h"
#include "halftone/passes/memory/group_updates.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Bytes that several values may share, at one place for their whole life.
struct Storage {
  Slot slot;
  bool fixed = false;  // has its place outside the arena
  int writer = 0;      // position of the node that writes it
  int first = 0;       // of the first node of the launch in which it is written
  int last = 0;        // position of its last reader; the number of nodes: read after the last one
  int merged_into = -1;
};

// One operand of one node.
struct Read {
  int position = 0;  // of the node; the number of nodes: read after the last one
  int port = 0;
};

// Who needs a variable as it was at the start of the step.
struct OldValue {
  std::vector<Read> reads;
  bool is_output = false;
};

class Planner {
 public:
  Planner(const ir::Graph& graph, const MemoryPlanOptions& options)
      : graph_(graph),
        options_(options),
        end_(static_cast<int>(graph.nodes().size())),
        begins_(LaunchesOf(graph)),
        ends_(begins_.size()),
        may_fault_first_(NodesThatMayFaultFirst(graph)) {
    for (int p = 0; p < end_; ++p) ends_[begins_[p]] = p;
    for (int p = 0; p < end_; ++p) ends_[p] = ends_[begins_[p]];
  }

  MemoryPlan Run() {
    CreateStorages();
    FindLastReaders();
    PlaceOutputs();
    PlaceCommits();
    if (options_.reuse_operands) ReuseOperands();
    PackAll();
    FillSlots();
    return std::move(plan_);
  }

 private:
  using ValueId = std::pair<int64_t, int>;

  int StorageOf(ir::Value v) const { return Root(storage_of_.at({v.node->id(), v.index})); }

  // The storage that `s` has been merged into, or `s`.
  int Root(int s) const {
    while (storages_[s].merged_into >= 0) s = storages_[s].merged_into;
    return s;
  }

  int NewStorage(int position, int64_t bytes) {
    Storage storage;
    storage.slot.bytes = bytes;
    storage.writer = position;
    storage.first = begins_[position];
    storage.last = ends_[position];
    storages_.push_back(storage);
    return static_cast<int>(storages_.size()) - 1;
  }

  // The place of an input, variable or constant; `counts` numbers inputs and constants.
  Slot SourceSlot(const ir::Node& node) {
    Slot slot;
    slot.bytes = node.output_type().num_bytes();
    if (IsOp(node, "input")) {
      slot.space = Slot::Space::kInput;
      slot.index = inputs_++;
    } else if (IsOp(node, "constant")) {
      slot.space = Slot::Space::kConstant;
      slot.index = constants_++;
    } else {
      slot.space = Slot::Space::kVariable;
      slot.index = VariableIndex(node.attrs().GetString("name"));
    }
    return slot;
  }

  int VariableIndex(const std::string& name) const {
    const int index = graph_.VariableIndex(name);
    HT_CHECK(index >= 0, "a variable node without a variable");
    return index;
  }

  void CreateStorages() {
    plan_.nodes.resize(graph_.nodes().size());
    old_values_.resize(graph_.variables().size());
    for (int p = 0; p < end_; ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      NodePlan& plan = plan_.nodes[p];
      HT_CHECK(!node.op().is_marker, "memory is planned after the last marker is lowered");
      const bool is_kept = options_.keep_casts && IsKeptCast(node);
      plan.runs = !IsSource(node) && !IsOp(node, "commit") && !IsStorageAlias(node) && !is_kept;
      for (int i = 0; i < node.num_outputs(); ++i) {
        const ValueId id{node.id(), i};
        if (IsStorageAlias(node)) {
          storage_of_[id] = StorageOf(node.input(0));
          continue;
        }
        const int s = storage_of_[id] = NewStorage(p, node.output_type(i).num_bytes());
        if (IsSource(node)) {
          storages_[s].fixed = true;
          storages_[s].slot = SourceSlot(node);
        } else if (is_kept) {
          storages_[s].fixed = true;
          storages_[s].slot.space = Slot::Space::kKept;
          storages_[s].slot.index = kept_++;
        }
      }
      plan.joins = plan.runs && begins_[p] != p;
      if (plan.runs && !plan.joins && options_.workspace_bytes) {
        plan.workspace_bytes = options_.workspace_bytes(node);
      }
    }
  }

  void FindLastReaders() {
    for (int p = 0; p < end_; ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      if (IsStorageAlias(node)) continue;  // its readers count
      if (may_fault_first_.contains(&node)) last_fault_ = p;
      const int when = IsOp(node, "commit") ? end_ : p;
      for (int port = 0; port < node.num_inputs(); ++port) {
        Storage& storage = storages_[StorageOf(node.input(port))];
        storage.last = std::max(storage.last, when == end_ ? end_ : ends_[p]);
        if (IsOldValue(storage)) old_values_[storage.slot.index].reads.push_back({when, port});
      }
    }
    for (const ir::Output& output : graph_.outputs()) {
      Storage& storage = storages_[StorageOf(output.value)];
      storage.last = end_;
      if (IsOldValue(storage)) old_values_[storage.slot.index].is_output = true;
    }
  }

  void PlaceOutputs() {
    for (int i = 0; i < static_cast<int>(graph_.outputs().size()); ++i) {
      Storage& storage = storages_[StorageOf(graph_.outputs()[i].value)];
      if (storage.fixed) {
        plan_.output_copies.push_back({i, storage.slot});
        continue;
      }
      storage.fixed = true;
      storage.slot.space = Slot::Space::kOutput;
      storage.slot.index = i;
    }
  }

  void PlaceCommits() {
    for (const ir::Node* commit : graph_.commits()) {
      const int variable = VariableIndex(commit->attrs().GetString("variable"));
      const int s = StorageOf(commit->input(0));
      Storage& storage = storages_[s];
      if (!storage.fixed && options_.write_variables_in_place && CanWriteInPlace(s, variable)) {
        storage.fixed = true;
        storage.slot.space = Slot::Space::kVariable;
        storage.slot.index = variable;
        ++plan_.variables_in_place;
        continue;
      }
      commits_to_copy_.emplace_back(variable, s);
    }
  }

  // Whether it is a variable at the start of the step. Requires: no commit is placed yet.
  static bool IsOldValue(const Storage& storage) {
    return storage.fixed && storage.slot.space == Slot::Space::kVariable;
  }

  // Whether nothing needs the old value of `variable` once storage `s` is written, and the step
  // cannot fail any more.
  bool CanWriteInPlace(int s, int variable) const {
    const int writer = storages_[s].writer;
    if (options_.may_write_variable && !options_.may_write_variable(*graph_.nodes()[writer])) {
      return false;
    }
    if (last_fault_ >= writer || old_values_[variable].is_output) return false;
    const std::vector<Read>& reads = old_values_[variable].reads;
    return std::all_of(reads.begin(), reads.end(), [&](const Read& read) {
      return read.position < begins_[writer] ||
             (read.position == writer && IsWrittenOver(*graph_.nodes()[writer], read.port, s));
    });
  }

  // Whether `node` may write storage `s` over its operand at `port`, which no other port reads.
  bool IsWrittenOver(const ir::Node& node, int port, int s) const {
    for (const ir::InPlacePair& pair : node.op().in_place) {
      if (pair.input == port && pair.output < node.num_outputs() &&
          StorageOf(node.output(pair.output)) == s && MayShare(node, pair)) {
        return true;
      }
    }
    return false;
  }

  bool MayShare(const ir::Node& node, const ir::InPlacePair& pair) const {
    if (!ir::FitsInPlace(node.input_type(pair.input), node.output_type(pair.output))) return false;
    const int operand = StorageOf(node.input(pair.input));
    for (int port = 0; port < node.num_inputs(); ++port) {
      if (port != pair.input && StorageOf(node.input(port)) == operand) return false;
    }
    return true;
  }

  void ReuseOperands() {
    for (int p = 0; p < end_; ++p) {
      // In a launch of several nothing is over before the rest.
      if (!plan_.nodes[p].runs || begins_[p] != ends_[p]) continue;
      const ir::Node& node = *graph_.nodes()[p];
      std::vector<int> reused;
      for (const ir::InPlacePair& pair : node.op().in_place) {
        if (pair.input >= node.num_inputs() || pair.output >= node.num_outputs()) continue;
        const int in = StorageOf(node.input(pair.input));
        const int out = StorageOf(node.output(pair.output));
        Storage& from = storages_[in];
        Storage& to = storages_[out];
        if (in == out || from.fixed || to.fixed || from.last != p || to.first != p) continue;
        if (std::find(reused.begin(), reused.end(), in) != reused.end()) continue;
        if (!MayShare(node, pair)) continue;
        to.merged_into = in;
        from.last = to.last;
        reused.push_back(in);
        ++plan_.operands_reused;
      }
    }
  }

  void PackAll() {
    std::vector<Lifetime> lifetimes;
    std::vector<int64_t*> offsets;
    for (Storage& storage : storages_) {
      if (storage.fixed) continue;
      plan_.unshared_bytes += AlignedBytes(storage.slot.bytes);
      if (storage.merged_into >= 0) continue;
      lifetimes.push_back({storage.slot.bytes, storage.first, storage.last});
      offsets.push_back(&storage.slot.offset);
    }
    for (int p = 0; p < end_; ++p) {
      NodePlan& plan = plan_.nodes[p];
      plan_.unshared_bytes += AlignedBytes(plan.workspace_bytes);
      lifetimes.push_back({plan.workspace_bytes, begins_[p], ends_[p]});
      offsets.push_back(&plan.workspace_offset);
    }
    MakeCommitCopies();
    for (CommitCopy& copy : plan_.commit_copies) {
      if (!copy.staged) continue;
      lifetimes.push_back({copy.from.bytes, end_, end_});
      offsets.push_back(&copy.staging_offset);
    }
    const Packing packing = PackArena(lifetimes);
    for (size_t i = 0; i < offsets.size(); ++i) *offsets[i] = packing.offsets[i];
    plan_.arena_bytes = packing.arena_bytes;
    for (size_t i = 0; i < commits_copied_.size(); ++i) {
      plan_.commit_copies[i].from = storages_[commits_copied_[i]].slot;
    }
  }

  void MakeCommitCopies() {
    for (const auto& [variable, storage] : commits_to_copy_) {
      const int s = Root(storage);  // it may have been merged since
      const Slot& from = storages_[s].slot;
      const bool is_variable = from.space == Slot::Space::kVariable;
      if (is_variable && from.index == variable) continue;  // the old value again
      plan_.commit_copies.push_back({variable, from, is_variable, 0});
      commits_copied_.push_back(s);
    }
  }

  void FillSlots() {
    for (int p = 0; p < end_; ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      for (int i = 0; i < node.num_outputs(); ++i) {
        plan_.nodes[p].outputs.push_back(storages_[StorageOf(node.output(i))].slot);
      }
    }
    for (OutputCopy& copy : plan_.output_copies) {
      copy.from = storages_[StorageOf(graph_.outputs()[copy.output].value)].slot;
    }
  }

  const ir::Graph& graph_;
  const MemoryPlanOptions& options_;
  const int end_;
  std::vector<int> begins_, ends_;  // by position: the first and last node of the launch
  const std::set<const ir::Node*> may_fault_first_;
  int inputs_ = 0;
  int constants_ = 0;
  int kept_ = 0;
  std::vector<Storage> storages_;
  std::map<ValueId, int> storage_of_;
  std::vector<OldValue> old_values_;  // by position in graph.variables()
  int last_fault_ = -1;               // position of the last node that may fault first
  std::vector<std::pair<int, int>> commits_to_copy_;  // variable, storage
  std::vector<int> commits_copied_;                   // storage of each commit copy
  MemoryPlan plan_;
};

}  // namespace

StepTraits StepTraitsOf(const ir::Target& target) {
  return {target.KeepsLowWeights(), target.RunsOnAfterFault()};
}

MemoryPlanOptions PlanOptionsFor(
    const ir::Graph& graph, const StepTraits& device,
    const std::function<ir::KernelTraits(const ir::Node&)>& traits_of) {
  MemoryPlanOptions options;
  options.workspace_bytes = [traits_of](const ir::Node& node) {
    return traits_of(node).workspace_bytes;
  };
  options.keep_casts = device.keeps_low_weights;
  const bool may_fault = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                     [](const auto& node) { return node->op().can_fault(); });
  if (device.runs_on_after_fault && may_fault) {
    options.may_write_variable = [traits_of](const ir::Node& node) {
      return traits_of(node).keeps_state_on_fault;
    };
  }
  return options;
}

MemoryPlan PlanMemory(const ir::Graph& graph, const MemoryPlanOptions& options) {
  return Planner(graph, options).Run();
}

}  // namespace halftone::passes
