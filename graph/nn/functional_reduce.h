// Reductions. `axes` lists the axes that disappear (negative: from the end; none: all); with
// `keepdim` they stay with extent 1. Errors (of the trace): axis out of range or named twice.
#pragma once

#include <vector>

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

// Accumulates in f32 for 16-bit x; dtype of x.
inline Value sum(const Value& x, const std::vector<int64_t>& axes = {}, bool keepdim = false,
                 Loc loc = Loc::current()) {
  return internal::Op("sum", {x},
                      {{"axes", internal::Axes("sum", x, axes, loc)}, {"keepdim", keepdim}}, loc);
}
// Accumulates in f32 for 16-bit x; dtype of x.
inline Value mean(const Value& x, const std::vector<int64_t>& axes = {}, bool keepdim = false,
                  Loc loc = Loc::current()) {
  return internal::Op("mean", {x},
                      {{"axes", internal::Axes("mean", x, axes, loc)}, {"keepdim", keepdim}}, loc);
}
// The largest element; equal largest elements share the gradient.
inline Value max(const Value& x, const std::vector<int64_t>& axes = {}, bool keepdim = false,
                 Loc loc = Loc::current()) {
  return internal::Op("max", {x},
                      {{"axes", internal::Axes("max", x, axes, loc)}, {"keepdim", keepdim}}, loc);
}
// Index (i64) of the first largest element along `axis`; no gradient.
inline Value argmax(const Value& x, int64_t axis, bool keepdim = false, Loc loc = Loc::current()) {
  return internal::Op(
      "argmax", {x}, {{"axis", internal::Axis("argmax", x, axis, loc)}, {"keepdim", keepdim}}, loc);
}

}  // namespace halftone::nn
