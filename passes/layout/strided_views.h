// Values that are views of others: slices, transposes and reshapes, as strides over what they are of.
#pragma once

#include <optional>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/operand_view.h"

namespace halftone::passes {

struct ViewedValue {
  ir::Value base;
  ops::OperandView view;
};

// `v` as a view of the value furthest back from which slices, transposes and reshapes alone lead to it,
// and of which it is one set of strides; of `v` itself if there is none. Plain layouts only.
ViewedValue ViewedFrom(ir::Value v);

}  // namespace halftone::passes
