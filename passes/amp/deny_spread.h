// Step 2 of painting: which nodes are denied 16 bit: directly, through what they read, or because
// what reads them enlarges their rounding.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/value_ranges.h"

namespace halftone::passes {

class DenySpread {
 public:
  DenySpread(const AmpGraph& graph, const ValueRanges& ranges, DType low)
      : graph_(graph), ranges_(ranges), low_(low) {}

  // Per vertex why it is denied ("f32: denied, because reads exp_3 via add_7"), or "". Range
  // problems of nodes that could otherwise run in 16 bit are added to `notes`.
  std::vector<std::string> Run(const std::vector<std::string>& missing_kernel,
                               std::vector<std::string>* notes);

 private:
  void Seed(const std::vector<std::string>& missing_kernel, std::vector<std::string>* notes);
  // Clear vertices from which an infer or denied vertex is reached through clear vertices.
  void FindLeadingClear();
  // From range seeds, or from the others.
  void Spread(bool range);
  // Upwards from operands whose rounding is enlarged, through arithmetic and through what only moves
  // or selects values: as far as an op that computes in f32 whatever it reads, which is the last, or
  // an allowed op. Where `poles`, from operands near a pole, through what moves or selects, and on to
  // the allowed op.
  void Widen(bool poles);
  std::string Via(int v, const std::vector<int>& next, int count) const;
  std::string ChainReason(int v) const;
  std::set<const ir::Node*> Losses() const;

  const AmpGraph& graph_;
  const ValueRanges& ranges_;
  const DType low_;
  std::vector<std::string> seed_reason_;
  std::vector<bool> range_;    // denied for a constant out of range
  std::vector<bool> leading_;  // see FindLeadingClear
  std::vector<int> parent_;    // the denied vertex it reads; itself for a seed; -1: not denied
  std::vector<int> seed_;      // where the chain of parents ends
  std::vector<int> depth_;     // how many parents away that is
};

}  // namespace halftone::passes
