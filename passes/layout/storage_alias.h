// Nodes that give the bytes of their operand another type: nothing runs for them.
#pragma once

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Whether a rank-4 value is stored in the same order in both layouts: one channel, or one position.
bool IsSameOrderInBothLayouts(const Shape& shape);

// Whether output 0 of `node` is operand 0, byte for byte, in the same order: reshape, and relayout
// and transpose where the order does not change, as of channels-last [N,C,H,W] to [N,H,W,C].
bool IsStorageAlias(const ir::Node& node);

}  // namespace halftone::passes
