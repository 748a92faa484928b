// How the drawings of a graph tell its nodes apart.
#pragma once

#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::tools {

enum class NodeKind {
  kCast,
  kLow,    // its first operand or its result is 16-bit
  kF32,    // else, its result is f32
  kOther,  // another dtype, or no result
};
NodeKind KindOf(const ir::Node& node);

// Inputs, constants, variables, commits: what comes from outside the step or goes there.
bool IsState(const ir::Node& node);
// What a caller or a checkpoint calls it: the name of an input, or of the variable that is read or
// committed; "" for other nodes.
std::string StateName(const ir::Node& node);

}  // namespace halftone::tools
