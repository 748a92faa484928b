// ValueRange: where the elements of a value lie, as far as constants, masks and functions with
// bounded results tell. Mixed precision asks it what may leave f16's range, and which differences
// may be small.
//
// Most values of a model are of a size that nothing says: a weight, an activation, an input. They
// are `unknown`, in units of their ordinary size, and what is added to them or multiplied with them
// is followed: scores with a mask are [-1e9, 0] and an unknown.
#pragma once

#include <vector>

namespace halftone::ir {

struct ValueRange {
  double lo = 0, hi = 0;  // what is known
  // Besides that up to so many times something of ordinary size; 0: [lo, hi] is all there is.
  double unknown = 1;
  bool whole = false;  // whole numbers only

  static ValueRange Unknown() { return {}; }
  static ValueRange Between(double lo, double hi) { return {lo, hi, 0, false}; }

  bool is_closed() const { return unknown == 0; }
  // The largest known magnitude.
  double magnitude() const;
  bool excludes_zero() const { return is_closed() && (lo > 0 || hi < 0); }
};

// Ranges of elementwise results. Where nothing bounds a result (a divisor that may be 0), Unknown.
ValueRange operator-(const ValueRange& a);
ValueRange operator+(const ValueRange& a, const ValueRange& b);
ValueRange operator-(const ValueRange& a, const ValueRange& b);
ValueRange operator*(const ValueRange& a, const ValueRange& b);
ValueRange operator/(const ValueRange& a, const ValueRange& b);
ValueRange Larger(const ValueRange& a, const ValueRange& b);
ValueRange Smaller(const ValueRange& a, const ValueRange& b);
// Of a value whose elements are taken from either.
ValueRange Either(const ValueRange& a, const ValueRange& b);
// By a function that rises everywhere: its values at the ends, if there are ends; else Unknown.
ValueRange Rising(double (*f)(double), const ValueRange& a);

// Whether a - b may be near 0 by what bounds a and b: 1 - p with p in [0, 1]. Not of whole numbers,
// whose difference is exact.
bool DifferenceMayVanish(const ValueRange& a, const ValueRange& b);

}  // namespace halftone::ir
