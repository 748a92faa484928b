// GraphNotes: the remarks that Graph::notes returns, and when a graph has something to say.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/nn/compiled_step.h"
#include "halftone/graph/nn/notes.h"

namespace halftone::nn {

class GraphNotes {
 public:
  explicit GraphNotes(std::string graph) : graph_(std::move(graph)) {}
  // Whether all go to standard error, not the first of each kind alone.
  void set_print(bool print) { print_ = print; }
  const std::vector<std::string>& texts() const { return notes_.texts(); }

  void Add(NoteKind kind, std::string text) { notes_.Add(kind, std::move(text), graph_, print_); }
  // On entries of the policy that matched nothing in the step just compiled, and in none before; a
  // note on one that matched something now is taken back. `complete`: whether the step has
  // all nodes that patterns may mean.
  void AddEntries(const amp::Policy& policy, const std::map<std::string, std::string>& unmatched,
                  bool complete);
  // Of a traced graph that calls backward() and has no optimizer.
  void AddUnreadBackward(const ir::Graph& traced);
  // Of a compiled step: what works and yet is hardly meant.
  void AddSurprises(const CompiledStep& step, const Device& device);
  // Before a step runs.
  void AddCompilesAnew(CompiledStep& step, int cache_size);

 private:
  bool AddFloat64(const CompiledStep& step, const Device& device);
  void AddNothingLow(const CompiledStep& step, const Device& device, DType low);
  void AddMemory(const CompiledStep& step, const Device& device);

  std::string graph_;
  bool print_ = false;
  Notes notes_;
  // Calls that dropped a compiled step for a new one, less those that found theirs.
  int compiled_anew_ = 0;
  // Of amp policies: entries that a compilation matched, and the notes on those that none has.
  std::set<std::string> matched_entries_;
  std::map<std::string, std::string> entry_notes_;
};

}  // namespace halftone::nn
