// Step 2 of painting: which nodes are denied 16 bit, directly or through what they read.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "halftone/passes/amp/amp_graph.h"

namespace halftone::passes {

class DenySpread {
 public:
  DenySpread(const AmpGraph& graph, DType low) : graph_(graph), low_(low) {}

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
  std::string ChainReason(int v) const;
  std::set<const ir::Node*> Losses() const;

  const AmpGraph& graph_;
  const DType low_;
  std::vector<std::string> seed_reason_;
  std::vector<bool> range_;    // denied for a constant out of range
  std::vector<bool> leading_;  // see FindLeadingClear
  std::vector<int> parent_;    // the denied vertex it reads; itself for a seed; -1: not denied
  std::vector<int> seed_;      // where the chain of parents ends
  std::vector<int> depth_;     // how many parents away that is
};

}  // namespace halftone::passes
