// How many bytes the values of a step hold while it runs: what `halftone_dump --memory` prints.
//
// A value holds its bytes from the node that computes it to its last reader; a value to be
// committed holds them to the end. Where the memory plan lets a node write over an operand, the
// result takes over the operand's bytes. Inputs, constants, variables, kept casts of them, packed weights and graph outputs have
// their place outside the arena and are only summed up. Scratch of kernels is not counted: it depends on
// the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

struct MemoryStep {
  const ir::Node* node = nullptr;
  int64_t adds = 0;   // bytes of results that take a place of their own
  int64_t frees = 0;  // bytes given up after the node
  int64_t live = 0;   // bytes held while it runs
};

struct MemoryHolder {
  ir::Value value;
  int64_t bytes = 0;
  const ir::Node* last_reader = nullptr;  // null: held to the end of the step
};

struct MemoryReport {
  std::string graph;
  // Whether the memory plan has the say. A graph that still has markers has no plan; its values
  // follow from the order of the nodes alone: nothing is written over an operand or in place.
  bool planned = false;
  int64_t arena_bytes = 0;        // by the plan; with the gaps and the rounding that packing leaves
  std::vector<MemoryStep> steps;  // nodes that run, in order
  int peak = -1;                  // the first step with the most bytes; -1 if there is no step
  std::vector<MemoryHolder> held_at_peak;  // the largest first
  int64_t input_bytes = 0, constant_bytes = 0, variable_bytes = 0, output_bytes = 0;
  int64_t kept_bytes = 0;  // 16-bit casts that stay beside their variables
  int64_t packed_bytes =
      0;  // weights in the order of kernels, by op; as many as they are otherwise
  // Nodes that compute a value again for the backward pass, and what the step would take without.
  int repeats = 0;
  int64_t arena_bytes_without = 0, peak_bytes_without = 0;

  int64_t peak_bytes() const { return peak < 0 ? 0 : steps[peak].live; }
};

// Requires: a sorted, verified graph; it must outlive the report.
MemoryReport MakeMemoryReport(const ir::Graph& graph);

// The peak, its holders, and a line for each step.
std::string ToText(const MemoryReport& report);
// {"graph", "planned", "arena_bytes",
//  "peak": {"step", "bytes", "held": [{"value", "type", "bytes", "last_reader"}]},
//  "outside": {"inputs", "constants", "variables", "outputs"}, with "kept" and "packed" where casts and weights are,
//  "recomputed": {"nodes", "arena_bytes_without", "peak_bytes_without"}, where values are,
//  "steps": [{"node", "op", "adds", "frees", "live"}]}
// "last_reader" is null for what is held to the end; "arena_bytes" and "peak" are null where there
// is none.
std::string ToJson(const MemoryReport& report);

}  // namespace halftone::tools
