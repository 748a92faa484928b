// What the records of lstm and gru share: one layer of a recurrent network in one direction, over
// steps of gates that the input has made already.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {

// Extents: `steps` T, `batch` B, `hidden` H, and `features` P of each h, which is H unless projected.
struct RecurrenceSize {
  int64_t steps, batch, hidden, features;
};

// Of inputs 0, called `name`: gates [T,B,count H]; and 1: w [count H,P]. Errors: shapes that do not fit,
// no step.
absl::StatusOr<RecurrenceSize> CheckRecurrence(const ir::InferContext& ctx, const char* name,
                                               int64_t count);

// The h that each step read, [T,B,P]: h0, then h but its last step; in reverse likewise from the end.
ir::Expr PreviousStates(ir::Expr h0, ir::Expr h, bool reverse);
// [T,B,n] as [T B,n].
ir::Expr StepsAsRows(ir::Expr x);
// The gradient of a weight [m,n] that multiplied x [T,B,n] to values of gradient dy [T,B,m].
ir::Expr WeightGradient(ir::Expr dy, ir::Expr x);
// x[..., from:to].
ir::Expr LastAxisSlice(ir::Expr x, int64_t from, int64_t to);
// The ops that the functions above emit.
std::vector<std::string> RecurrenceGradientOps(std::vector<std::string> more);

// Source, attributes and mixed precision of the four ops.
ir::OpRecord RecurrenceRecord(const char* name, const char* source);

// The cost of a node that multiplies `weights` numbers by each row of each step.
ir::Cost RecurrenceCost(const ir::Node& node, int64_t weights);

}  // namespace halftone::ops
