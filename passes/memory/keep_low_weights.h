// keep-low-weights: 16-bit casts of variables stay from step to step, and updates write them.
//
// Before:      %w_f16 = cast(%w) {to=f16}
//              %h = linear(%x, %w_f16)
//              ...
//              %n = sgd_update(%w, %dw, %lr, %inv_scale, %clip, %apply, %step)
//              commit "w" = %n
// After:       %w_f16 = cast(%w) {kept=true, to=f16}
//              ...
//              %n = sgd_update(%w, %dw, %lr, %inv_scale, %clip, %apply, %step) {low=f16}
// Requires:    PassContext::target; no markers (else nothing happens).
// Guarantees:  a kept cast is one of a variable; it has a place of its own beside the variable and
//              does not run in the step. An update with `low` writes its parameter in place, and
//              over its kept casts in that dtype, which nothing reads any more. Whoever runs the
//              step casts again after any other write. No value changes.
// Never:       touches the graph for a target that does not keep low weights.
// Order:       last: whether a parameter is written in place, and what reads a cast later, is that
//              of the finished graph.
// Stats:       "kept_casts", "written_by_updates".
#pragma once

#include <memory>

#include "halftone/passes/pass.h"

namespace halftone::passes {

std::unique_ptr<Pass> MakeKeepLowWeights();

// Whether `node` is a cast of a variable that the pass marks where the target keeps any.
bool MayBeKept(const ir::Node& node);

// Whether it is marked.
bool IsKeptCast(const ir::Node& node);

// Whether `node` is an update that may write kept casts besides its parameter: whether its attribute
// `low` is a dtype. Other ops have a number of that name.
bool MayWriteLow(const ir::Node& node);

}  // namespace halftone::passes
