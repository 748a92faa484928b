// Range lint: constants that a 16-bit type cannot hold. An eps of 1e-8 is 0 in f16 and a mask of
// -1e9 is -inf there; the node that reads such a constant, and what reads that node up to the next
// allowed op, has to stay f32. So has a node whose own result may leave the range, by what flowed
// forward from constants and masks (ValueRanges).
#pragma once

#include <optional>
#include <string>

#include "halftone/core/tensor.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/value_ranges.h"

namespace halftone::passes {

struct RangeProblem {
  std::string text;  // "constant_2 = -1e+09 overflows f16"
  bool overflows = false;
};

// A finite element that becomes infinite, or a constant whose non-zero elements all become 0.
// Single small elements among larger ones are ordinary rounding.
std::optional<RangeProblem> RangeProblemOf(const ir::Node& constant, DType low);

// The problem of the constants that vertex `v` reads on main ports, of another f32 operand that lies
// beyond `low`, or of its own result, if any. For an op of class allow only a constant or an operand
// that overflows counts.
std::optional<RangeProblem> RangeProblemOfVertex(const AmpGraph& graph, int v,
                                                 const ValueRanges& ranges, DType low);

// Whether every element survives the round trip through `low` unchanged.
bool IsExactIn(const ir::Node& constant, DType low);

}  // namespace halftone::passes
