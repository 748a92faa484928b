#include "halftone/graph/ir/value_range.h"

#include <algorithm>
#include <cmath>

namespace halftone::ir {
namespace {

// 0 times infinity is 0 here: an end that nothing reaches.
double Times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

ValueRange Checked(ValueRange range) {
  const bool bounded =
      std::isfinite(range.lo) && std::isfinite(range.hi) && std::isfinite(range.unknown);
  return bounded ? range : ValueRange::Unknown();
}

}  // namespace

double ValueRange::magnitude() const { return std::max(std::abs(lo), std::abs(hi)); }

ValueRange operator-(const ValueRange& a) { return {-a.hi, -a.lo, a.unknown, a.whole}; }

// Two unknowns have one size: a model whose sums grew would not train in f32 either.
ValueRange operator+(const ValueRange& a, const ValueRange& b) {
  return Checked({a.lo + b.lo, a.hi + b.hi, std::max(a.unknown, b.unknown), a.whole && b.whole});
}

ValueRange operator-(const ValueRange& a, const ValueRange& b) { return a + -b; }

ValueRange operator*(const ValueRange& a, const ValueRange& b) {
  const auto [lo, hi] =
      std::minmax({Times(a.lo, b.lo), Times(a.lo, b.hi), Times(a.hi, b.lo), Times(a.hi, b.hi)});
  double unknown = std::max(a.magnitude() * b.unknown, b.magnitude() * a.unknown);
  if (!a.is_closed() && !b.is_closed()) unknown = std::max({unknown, a.unknown, b.unknown});
  return Checked({lo, hi, unknown, a.whole && b.whole});
}

ValueRange operator/(const ValueRange& a, const ValueRange& b) {
  if (!b.excludes_zero()) return ValueRange::Unknown();
  return a * ValueRange::Between(1 / b.hi, 1 / b.lo);
}

ValueRange Larger(const ValueRange& a, const ValueRange& b) {
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), std::max(a.unknown, b.unknown),
          a.whole && b.whole};
}

ValueRange Smaller(const ValueRange& a, const ValueRange& b) { return -Larger(-a, -b); }

ValueRange Either(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), std::max(a.unknown, b.unknown),
          a.whole && b.whole};
}

ValueRange Rising(double (*f)(double), const ValueRange& a) {
  if (!a.is_closed()) return ValueRange::Unknown();
  return Checked(ValueRange::Between(f(a.lo), f(a.hi)));
}

bool DifferenceMayVanish(const ValueRange& a, const ValueRange& b) {
  if (!a.is_closed() || !b.is_closed() || (a.whole && b.whole)) return false;
  return (a.lo == b.hi && a.lo != 0) || (a.hi == b.lo && a.hi != 0);
}

}  // namespace halftone::ir
