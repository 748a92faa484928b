// Helpers of scale-losses, insert-optimizers and update-scalers: finding a scaler and its
// variables, guarding the commits of buffers, joining flags.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ir/builder.h"

namespace halftone::passes {

// The `scaler` marker named `name`, or null.
ir::Node* FindScaler(const ir::Graph& graph, const std::string& name);

// The variable node of a scaler's state, declared on first use. `field`: "scale", "growth_tracker",
// ... ; the builder makes the node.
ir::Expr ScalerVariable(ir::Builder& b, const ir::Node& scaler, const std::string& field);

// Lets the commits of buffers (norm statistics, averages) happen only where all `flags` hold. Nodes
// look as if made from `origin` by `pass`. Returns how many commits there are.
absl::StatusOr<int64_t> GuardBuffers(ir::Graph& graph, const ir::Node& origin, const char* pass,
                                     const std::vector<ir::Value>& flags);

// The conjunction of flags; a constant true for none.
ir::Expr AllOf(ir::Builder& b, const std::vector<ir::Value>& flags);

}  // namespace halftone::passes
