// What functions that are formulas of other functions are written with.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/graph/nn/op.h"

namespace halftone::nn::internal {

// Operands with the line of the user's call: At at(loc); at(a) * at(b).
class At {
 public:
  explicit At(Loc loc) : loc_(loc) {}
  Located operator()(const Value& value) const { return {value, loc_}; }
  Located operator()(double number) const { return {number, loc_}; }

 private:
  Loc loc_;
};

// 16-bit values as f32, whole numbers too.
Value Wide(const Value& x, Loc loc);
// Whether x, if there is one, is of floats; if not, an error of the trace that names `op`.
bool CheckFloats(const char* op, const Value& x, Loc loc);
// 0, 1, .. along the first of `rank` axes, i64.
Value Counting(int64_t count, int rank, Loc loc);

// Of losses. Whether `reduction` is "mean", "sum", "none" or `extra`; if not, an error of the
// trace.
bool CheckReduction(const char* op, const std::string& reduction, Loc loc,
                    const char* extra = nullptr);
// Whether `other`, called `what`, has the shape of `x`; if not, an error of the trace.
bool CheckAlike(const char* op, const char* what, const Value& other, const Value& x, Loc loc);
// The loss from that of each element.
Value Reduced(const Value& each, const std::string& reduction, Loc loc);

}  // namespace halftone::nn::internal
