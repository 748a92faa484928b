// What differs between two graphs: what `halftone_dump --diff A B` prints.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

enum class DifferenceKind : uint8_t {
  kRemoved,    // a node of A only
  kAdded,      // a node of B only
  kDType,      // of an output
  kType,       // shape or layout of an output, where the dtype is the same
  kAttribute,  // value of one
  kInput,      // an operand is another value
  kName,       // the node is called otherwise
  kScope,      // the module it stands in
  kOutput,     // what the graph returns at a place
  kVariable,   // a variable that no node reads: declared, or declared otherwise
};

struct Difference {
  DifferenceKind kind;
  std::string node;  // "%h"; as B calls it, or A what was removed
  std::string what;  // which attribute, operand or output; "" where there is only one
  std::string from;  // "" for what was added
  std::string to;    // "" for what was removed
};

// In the order of the kinds, then of the nodes. Names of graphs, source locations, provenance and
// precision decisions are not compared. Requires: sorted, verified graphs.
std::vector<Difference> DiffGraphs(const ir::Graph& a, const ir::Graph& b);

// A section for each kind that occurs and a summary, or "no differences".
std::string ToText(const std::vector<Difference>& differences);
// {"same", "differences": [{"kind", "node", "what", "from", "to"}]}; "kind" is removed, added,
// dtype, type, attribute, input, name, scope, output or variable; keys without a value are absent.
std::string ToJson(const std::vector<Difference>& differences);

}  // namespace halftone::tools
