// Gradients that need not be whole: the part of insert-optimizers that gives an update of rows the
// rows that it wants.
//
// before:  %d = embedding_grad(%dy, %i) {rows=1000, sparse=true}
//          %e = embedding_grad(%dz, %j) {rows=1000, sparse=true}
//          %dw = add(%d, %e)
// after:   %rows, %ids = embedding_grad_rows(concat(%dy, %dz), concat(%i, %j)) {rows=1000}
//
// Which op has such rows, and by which op they are made, its record says (OpRecord::rows_op).
#pragma once

#include <optional>
#include <string>

#include "halftone/graph/ir/builder.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/pass.h"

namespace halftone::passes {

struct RowGradient {
  ir::Expr rows;  // [n, D], in f32 or, of f64, in f64
  ir::Expr ids;   // [n] i64: see embedding_grad_rows
};

// Whose gradient it is, for messages.
struct GradientOwner {
  std::string optimizer, rule_name, parameter;
};

// The rows of a gradient, in nodes of `b`; nothing where it is dense. It is sparse where it is a sum
// of sparse gradients alone that agree in their attributes; rows that several have are summed. A
// gradient that is dense although a part of it is sparse is a note. Errors: InvalidArgument for a
// sparse gradient under a rule that changes other rows too, and a dense one under a rule for rows
// alone.
absl::StatusOr<std::optional<RowGradient>> FindRows(ir::Builder& b, ir::Value gradient,
                                                    const optim::UpdateRule& rule,
                                                    const GradientOwner& owner,
                                                    PassContext& context);

}  // namespace halftone::passes
