// A function for every elementwise op that has no attributes: exp(x), add(a, b), less(a, b). Which
// there are, and the formula of each, says graph/ops/support/elementwise.def.
//
// Functions of two values broadcast as in NumPy and cast mixed dtypes to Promote(a, b); either may
// be a number (not of logical_and and logical_or). Comparisons give bool. Errors (of the trace):
// shapes that do not broadcast, dtypes that the op does not take.
#pragma once

#include "halftone/core/doc.h"
#include "halftone/graph/nn/op.h"
#include "halftone/graph/ops/support/elementwise_numbers.h"

namespace halftone::nn {

#define HT_UNARY(op, Formula, ...) \
  HT_DOC(__VA_ARGS__)              \
  inline Value op(const Value& x, Loc loc = Loc::current()) { return Op(#op, {x}, {}, loc); }
#define HT_NUMBER_PARAMETER(name, value) double name = value,
#define HT_NUMBER_ATTRIBUTE(name, value) {#name, name},
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...)                                       \
  HT_DOC(__VA_ARGS__)                                                                      \
  inline Value op(const Value& x,                                                          \
                  HT_EACH_NUMBER(HT_NUMBER_PARAMETER, Numbers) Loc loc = Loc::current()) { \
    return Op(#op, {x}, {HT_EACH_NUMBER(HT_NUMBER_ATTRIBUTE, Numbers)}, loc);              \
  }
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_BINARY(op, Formula, ...) \
  HT_DOC(__VA_ARGS__)               \
  inline Value op(Located a, Located b) { return internal::Operator(#op, a, b, a.loc()); }
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_COMPARE_SWAPPED HT_BINARY
#define HT_LOGICAL(op, Formula, ...)                                          \
  HT_DOC(__VA_ARGS__)                                                         \
  inline Value op(const Value& a, const Value& b, Loc loc = Loc::current()) { \
    return Op(#op, {a, b}, {}, loc);                                          \
  }
#include "halftone/graph/ops/support/elementwise.def"
#undef HT_NUMBER_PARAMETER
#undef HT_NUMBER_ATTRIBUTE

}  // namespace halftone::nn
