// Small questions and edits that several passes share.
#pragma once

#include <vector>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

// Passes that work on one structural op (cast, reshape, constant, ...) ask here; what is a property
// of an op is asked of its record.
bool IsOp(const ir::Node& node, const char* name);
bool IsCast(const ir::Node& node);
// A node without operands that stands for something from outside the step: input, variable,
// constant.
bool IsSource(const ir::Node& node);

// Whether it makes a value anew for the backward pass, as the pass of that name has it. Not to be
// merged with what it repeats.
inline constexpr const char* kRematerialise = "rematerialise";
bool IsRecomputed(const ir::Node& node);

// The markers of one op, in node order; the first of them, or null.
std::vector<ir::Node*> FindMarkers(const ir::Graph& graph, const char* op);
ir::Node* FindMarker(const ir::Graph& graph, const char* op);

// The tensor of a constant; null for everything else.
const Tensor* ConstantValue(ir::Value v);
// Whether `v` is a constant all of whose elements equal `value`; the sign of a zero counts.
bool IsSplat(ir::Value v, double value);

// Whether every value of `from` survives a cast to `to` unchanged.
bool IsLossless(DType from, DType to);

// For the lists of ports in traits.
bool Contains(const std::vector<int>& ports, int port);

// The nodes as they are now: safe to walk while nodes are added.
std::vector<ir::Node*> Snapshot(const ir::Graph& graph);

// A builder whose nodes get the location, scope and user's wishes of `origin` and say that `pass`
// made them from it.
ir::Builder BuilderLike(const ir::Node& origin, const char* pass);

// Infers the output types anew after an edit of inputs or attributes. Error: what inference says.
absl::Status Reinfer(ir::Node& node);

}  // namespace halftone::passes
