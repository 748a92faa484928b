#include "halftone/passes/memory/value_lives.h"

#include <algorithm>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/arena_packing.h"
#include "halftone/passes/rewrite/graph_phase.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

bool MayRunTwice(const ir::Node& node, bool keeps_low_weights) {
  const ir::OpRecord& op = node.op();
  if (IsSource(node) || op.has_side_effect || op.is_marker || op.communicates) return false;
  if (op.can_fault()) return false;
  return !(keeps_low_weights && IsCast(node) && IsOp(*node.input(0).node, "variable"));
}

}  // namespace

ValueLives::ValueLives(const ir::Graph& graph, bool keeps_low_weights)
    : end_(static_cast<int>(graph.nodes().size())) {
  const std::vector<Phase> phases = PhasesOf(graph);
  std::vector<std::vector<int>> backward_readers;
  for (int p = 0; p < end_; ++p) {
    ir::Node& node = *graph.nodes()[p];
    const Phase phase = phases[p];
    Declare(node, p, phase == Phase::kForward && MayRunTwice(node, keeps_low_weights));
    backward_readers.resize(lives_.size());
    if (IsStorageAlias(node)) continue;  // its readers count
    const bool at_end = IsOp(node, "commit");
    const int when = at_end ? end_ : p;
    for (const ir::Value& v : node.inputs()) {
      const int read = Of(v);
      ValueLife& life = lives_[read];
      life.last = std::max(life.last, when);
      if (phase == Phase::kBackward && !at_end) {
        backward_readers[read].push_back(p);
      } else {
        life.turn = std::max(life.turn, when);
      }
    }
  }
  for (const ir::Output& output : graph.outputs()) {
    ValueLife& life = lives_[Of(output.value)];
    life.turn = life.last = end_;
  }
  for (int i = 0; i < size(); ++i) {
    const std::vector<int>& readers = backward_readers[i];
    const auto after = std::upper_bound(readers.begin(), readers.end(), lives_[i].turn);
    if (after != readers.end()) lives_[i].again = *after;
  }
}

void ValueLives::Declare(ir::Node& node, int position, bool repeatable) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ir::Value value = node.output(i);
    if (IsStorageAlias(node)) {
      life_of_[{node.id(), i}] = Of(node.input(0));
      continue;
    }
    life_of_[{node.id(), i}] = size();
    ValueLife life;
    life.value = value;
    life.bytes = AlignedBytes(value.type().num_bytes());
    life.first = life.turn = life.last = position;
    life.repeatable = repeatable;
    lives_.push_back(life);
  }
}

const Slot& SlotOf(const ValueLife& life, const MemoryPlan& plan) {
  return plan.nodes[static_cast<size_t>(life.first)].outputs[static_cast<size_t>(life.value.index)];
}

}  // namespace halftone::passes
