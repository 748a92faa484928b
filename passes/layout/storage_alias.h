// Nodes that give the bytes of their operand another type: nothing runs for them.
#pragma once

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Whether values of `shape` lie in the same order in two layouts that it can have, as where there is one
// channel, or one position. Requires: rank 4, or a == b.
bool IsSameOrder(const Shape& shape, ir::Layout a, ir::Layout b);

// Whether output 0 of `node` is operand 0, byte for byte, in the same order: reshape, and relayout
// and transpose where the order does not change, as of channels-last [N,C,H,W] to [N,H,W,C].
bool IsStorageAlias(const ir::Node& node);

}  // namespace halftone::passes
