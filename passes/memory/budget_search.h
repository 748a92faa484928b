// Which values to make anew so that a step takes fewer bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/memory/bytes_over_time.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/recomputation.h"
#include "halftone/passes/memory/value_lives.h"

namespace halftone::passes {

// Drops one value after the other until no more than a target lives at any position, the one first
// that costs the least time for what it frees at the peak. A dropped value is made anew before its
// first reader in the backward pass and held to the last one, so that a step computes nothing more
// than twice. Operands that are gone by then are made anew likewise, or kept where they are small.
// What that adds elsewhere stays within the target, which is how values in between come to be kept.
//
// It counts bytes, as a packing without gaps would; the memory plan has the last word.
// Source: Chen, Xu, Zhang, Guestrin: "Training Deep Nets with Sublinear Memory Cost", 2016; the
// greedy choice by cost per byte is that of Kirisame et al.: "Dynamic Tensor Rematerialization",
// ICLR 2021.
class BudgetSearch {
 public:
  // `plan` is that of `graph`; all three outlive the search.
  BudgetSearch(const ir::Graph& graph, const ValueLives& lives, const MemoryPlan& plan);

  // Bytes at the peak if nothing is dropped.
  int64_t peak_bytes() const { return peak_bytes_; }

  struct Result {
    Repeats repeats;
    double effort = 0;  // of all repetitions, see Effort
    int64_t peak_bytes = 0;
  };
  // As far as it gets towards `target` bytes, where no drop costs more effort for a byte that it
  // frees at the peak than `worst`.
  Result Run(int64_t target, double worst = std::numeric_limits<double>::infinity());

 private:
  // What is decided about a value: where the backward pass reads it, repetitions included.
  struct State {
    bool dropped = false;
    int again = -1;  // first such position; -1: none
    int last = -1;   // last one
  };
  struct Read {
    int life = 0;
    int position = 0;
  };

  void Begin();
  bool IsInArena(int life) const { return in_arena_[static_cast<size_t>(life)]; }
  bool CoversPeak(int life) const;
  // Drops a value, and what follows from it. Nothing has changed if that does not fit in the target
  // or frees nothing at the peak. Gives effort over bytes freed, negative if it did not.
  double TryToDrop(int life, int64_t target, double worst);
  void Drop(int life);
  void ReadOperands(int life);
  void ReadAgain(const Read& read, int64_t bytes_dropped);
  void Change(int life, const State& state);
  void Add(int from, int to, int64_t bytes);
  bool Fits(int64_t target) const;
  void Undo();
  Repeats Chosen() const;

  const ValueLives& lives_;
  std::vector<bool> in_arena_;
  std::vector<double> effort_;  // of the node of each value
  int64_t peak_bytes_ = 0;
  const BytesOverTime bytes_at_first_;

  // Of one run.
  BytesOverTime bytes_;
  std::vector<State> states_;
  // Of one try, to be undone.
  struct Added {
    int from, to;
    int64_t bytes;
  };
  std::vector<Added> added_;
  std::vector<std::pair<int, State>> changed_;
  std::vector<Read> to_read_;
  double tried_effort_ = 0;
};

// Time to run a node, in the time of one operation of a product of f32 matrices: of its flops, by
// what they are, and of its bytes.
double Effort(const ir::Node& node);

}  // namespace halftone::passes
