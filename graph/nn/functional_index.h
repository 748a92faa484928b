// Selection by indices that are known only when the step runs.
#pragma once

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// NumPy's take: slices of x along `axis`. Shapes: x [.., n, ..], indices [i..] (i64 or i32) -> the
// axis replaced by i... Errors of the run: an index outside [0, n).
inline Value gather(const Value& x, const Value& indices, int64_t axis = 0,
                    Loc loc = Loc::current()) {
  return internal::Op("gather", {x, indices}, {{"axis", internal::Axis("gather", x, axis, loc)}},
                      loc);
}
// Rows of a table. Shapes: indices [..], table [rows, d] -> [.., d]. Row `padding_idx` (-1: none)
// gets no gradient. Errors of the run: an index outside [0, rows).
inline Value embedding(const Value& indices, const Value& table, int64_t padding_idx = -1,
                       Loc loc = Loc::current()) {
  return internal::Op("embedding", {table, indices}, {{"padding_idx", padding_idx}}, loc);
}

}  // namespace halftone::nn
