// Adjoints of one node, for checks of gradient formulas without the autodiff pass.
#pragma once

#include <vector>

#include "halftone/graph/ir/builder.h"

namespace halftone::testing {

// One expression per input of `node` (poison where no gradient flows), from `dys` per output
// (poison where none arrives), by the record's gradient or, where it has none, through its
// decomposition.
std::vector<ir::Expr> AdjointsOf(ir::Builder& b, const ir::Node& node, std::vector<ir::Expr> dys);

}  // namespace halftone::testing
