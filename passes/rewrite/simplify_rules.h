// The rules of simplify, by family.
#pragma once

#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// `apply` looks at one node of op `op` with one output. It gives an invalid value where the rule
// does not fire, the node's own output after an edit in place, and else the value, of the same
// type, that takes the node's place.
struct SimplifyRule {
  const char* op;
  const char* name;  // as counted in the statistics
  ir::Value (*apply)(ir::Node& node);
  // Whether it waits until mixed precision is decided: a type may not be the last word.
  bool after_precision = false;
};

const std::vector<SimplifyRule>& ArithmeticRules();
const std::vector<SimplifyRule>& CastRules();
const std::vector<SimplifyRule>& ShapeRules();

}  // namespace halftone::passes
