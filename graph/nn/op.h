// Op: adding nodes to the current trace. A function over values for an op of one's own is one line:
//
//   nn::Value softsign(const nn::Value& x, nn::Loc loc = nn::Loc::current()) {
//     return nn::Op("softsign", {x}, {}, loc);
//   }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/ir/attribute.h"
#include "halftone/graph/nn/value.h"

namespace halftone::nn {

// Adds op `name` over `inputs` and gives its first output. Attributes that have a default may be
// left out. Outside build() and after an error it gives poison.
// Errors (of the trace): no such op; inputs or attributes that it does not take.
Value Op(const std::string& name, const std::vector<Value>& inputs, ir::Attributes attrs = {},
         Loc loc = Loc::current());
// The same with all outputs.
Values Ops(const std::string& name, const std::vector<Value>& inputs, ir::Attributes attrs = {},
           Loc loc = Loc::current());
// An error of the trace at `loc`, for functions that check their arguments; gives poison:
// return Fail(loc, InvalidArgument("window: size is ", size, "; expected at least 1")).
Value Fail(Loc loc, absl::Status status);

}  // namespace halftone::nn

// What the functions of this folder share.
namespace halftone::nn::internal {

// Op `name` after casting every input to the common dtype (Promote over all).
Value Promoted(const std::string& name, const std::vector<Value>& inputs, ir::Attributes attrs,
               Loc loc);
// Those that are there.
std::vector<Value> Present(const std::vector<OptionalValue>& inputs);
// The operands of an operator: a number becomes a constant of the other's dtype, then both are cast
// to their common dtype. Two numbers are an error of the trace that names `op`.
std::vector<Value> Operands(const char* op, const Located& a, const Located& b, Loc loc);
// Op `name` over them.
Value Operator(const char* name, const Located& a, const Located& b, Loc loc);

// The value itself if its dtype is `to`.
Value CastTo(const Value& x, DType to, Loc loc);
// Inputs cast to their common dtype.
std::vector<Value> PromoteAll(const std::vector<Value>& inputs, Loc loc);

// Negative axes counted from the end; out of range is an error of the trace that names `op`.
// Nothing after that error, and for poison: a function that computes with the axis ends there.
std::optional<int64_t> FindAxis(const char* op, const Value& x, int64_t axis, Loc loc);
// The same as an attribute. What it is after an error does not matter: no node is made any more.
int64_t Axis(const char* op, const Value& x, int64_t axis, Loc loc);
std::vector<int64_t> Axes(const char* op, const Value& x, const std::vector<int64_t>& axes,
                          Loc loc);
// Where the innermost module was called.
Loc CallSite();

}  // namespace halftone::nn::internal
