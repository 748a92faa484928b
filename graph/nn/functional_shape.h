// Rearranging without arithmetic. The dtype stays; negative axes count from the end.
#pragma once

#include <vector>

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// The same elements in row-major order under other extents; one of them may be -1: what is left.
// Errors: element counts differ, more than one -1.
Value reshape(const Value& x, const std::vector<int64_t>& shape, Loc loc = Loc::current());
// Joins axes first..last into one. Shapes: [N,C,H,W] with first 1 -> [N,C*H*W].
Value flatten(const Value& x, int64_t first = 1, int64_t last = -1, Loc loc = Loc::current());
// Adds an axis of extent 1 before `axis` (-1: at the end).
Value unsqueeze(const Value& x, int64_t axis, Loc loc = Loc::current());
// Removes an axis of extent 1. Errors: another extent.
Value squeeze(const Value& x, int64_t axis, Loc loc = Loc::current());
// Exchanges two axes. A 0-d value, which has none, is its own transpose along axes 0 and -1.
Value transpose(const Value& x, int64_t axis0, int64_t axis1, Loc loc = Loc::current());
// Elements start, start+step, ... below limit, along one axis. Negative start and limit count from
// the end; both are clamped to the extent as in Python. Errors: step < 1.
Value slice(const Value& x, int64_t axis, int64_t start, int64_t limit, int64_t step = 1,
            Loc loc = Loc::current());
// Joins values that agree in every extent but `axis`; mixed dtypes meet in their promotion.
Value concat(const std::vector<Value>& values, int64_t axis, Loc loc = Loc::current());

// Output axis i is axis perm[i] of x.
inline Value permute(const Value& x, const std::vector<int64_t>& perm, Loc loc = Loc::current()) {
  return internal::Op("transpose", {x}, {{"perm", internal::Axes("permute", x, perm, loc)}}, loc);
}
// Repeats along axes of extent 1 and new leading axes, as in NumPy.
inline Value broadcast_to(const Value& x, const std::vector<int64_t>& shape,
                          Loc loc = Loc::current()) {
  return internal::Op("broadcast_to", {x}, {{"shape", shape}}, loc);
}

}  // namespace halftone::nn
