// Values that a pass replaces, put in place as it walks the graph: one look at every operand in
// all, where Graph::ReplaceUses looks at every operand for each replaced value.
#pragma once

#include <unordered_map>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// A pass that visits a sorted graph calls Update on each node before it looks at the node's
// operands, Replace for what it replaces, and Finish at the end; until then nodes that it did not
// update still read the old values.
class Replacements {
 public:
  // `to` stands for `from` from now on. Requires: `from` has not been replaced, and `to` is not
  // computed from it.
  void Replace(ir::Value from, ir::Value to);
  // What stands for `v`.
  ir::Value Current(ir::Value v) const;
  // Makes `node` read what stands for its operands.
  void Update(ir::Node& node) const;
  // Updates all nodes and graph outputs.
  void Finish(ir::Graph& graph) const;

 private:
  struct Hash {
    size_t operator()(const ir::Value& v) const {
      return std::hash<const ir::Node*>()(v.node) * 31 + static_cast<size_t>(v.index);
    }
  };
  std::unordered_map<ir::Value, ir::Value, Hash> current_;
};

}  // namespace halftone::passes
