// When the values of a step are read: in the forward pass, and again in the backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/memory/memory_plan.h"

namespace halftone::passes {

// Of a value and of all reshapes of it, which share its bytes. Positions are those of nodes in the
// graph; their number stands for the end of the step.
struct ValueLife {
  ir::Value value;
  int64_t bytes = 0;  // in an arena
  int first = 0;      // position of its node
  int turn = 0;       // of its last reader outside the backward pass; `first` if there is none
  int again = -1;     // of its first reader after that; -1: none
  int last = 0;       // of its last reader; `first` if there is none
  // Whether its node may run twice: one of the forward pass that cannot fault and writes nothing.
  bool repeatable = false;
};

class ValueLives {
 public:
  // `keeps_low_weights`: 16-bit casts of variables are kept from step to step, and not repeated.
  // Requires: a sorted graph.
  ValueLives(const ir::Graph& graph, bool keeps_low_weights);

  // In the order of their nodes.
  const std::vector<ValueLife>& lives() const { return lives_; }
  const ValueLife& operator[](int life) const { return lives_[static_cast<size_t>(life)]; }
  int size() const { return static_cast<int>(lives_.size()); }
  // Which of them is that of `v`.
  int Of(ir::Value v) const { return life_of_.at({v.node->id(), v.index}); }
  // The number of nodes.
  int end() const { return end_; }

 private:
  void Declare(ir::Node& node, int position, bool repeatable);

  const int end_;
  std::vector<ValueLife> lives_;
  std::map<std::pair<int64_t, int>, int> life_of_;
};

// Where the plan of the same graph has the value.
const Slot& SlotOf(const ValueLife& life, const MemoryPlan& plan);

}  // namespace halftone::passes
