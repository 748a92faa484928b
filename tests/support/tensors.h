// Comparison of tensors with messages that name the worst element, and random tensors. Header only,
// so that tests of low layers can use it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <source_location>
#include <string>

#include "halftone/core/philox.h"
#include "halftone/core/strings.h"
#include "halftone/core/tensor.h"

namespace halftone::testing {

// |got - expected|; 0 for equal infinities and for NaN with NaN, inf where only one is NaN or inf.
inline double AbsError(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  const double error = std::abs(got - expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// "[1,0,3]": the position of row-major element `i`.
inline std::string IndexString(const Shape& shape, int64_t i) {
  std::string text = "]";
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text.insert(0, std::to_string(i % shape[axis]));
    if (axis > 0) text.insert(0, ",");
    i /= shape[axis];
  }
  text.insert(0, "[");
  return text;
}

// Largest |got - expected| over largest finite |expected| (over 1 if that is 0). Relative to the
// whole tensor, so that elements which cancel to nearly 0 do not rule. Requires equal shapes.
inline double MaxRelError(const Tensor& got, const Tensor& expected) {
  HT_CHECK(got.shape() == expected.shape(), "MaxRelError: shapes differ");
  double error = 0;
  double scale = 0;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    error = std::max(error, AbsError(got.at(i), expected.at(i)));
    if (std::isfinite(expected.at(i))) scale = std::max(scale, std::abs(expected.at(i)));
  }
  return error / (scale == 0 ? 1 : scale);
}

// Success if |got - expected| <= atol + rtol * |expected| for every element. Dtypes may differ.
inline ::testing::AssertionResult IsClose(const Tensor& got, const Tensor& expected, double rtol,
                                          double atol) {
  if (!got.defined() || !expected.defined()) {
    return ::testing::AssertionFailure() << "undefined tensor";
  }
  if (got.shape() != expected.shape()) {
    return ::testing::AssertionFailure()
           << "got " << got.TypeString() << ", expected " << expected.TypeString();
  }
  int64_t bad = 0;
  int64_t worst = 0;
  double worst_excess = 0;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const double want = expected.at(i);
    const double error = AbsError(got.at(i), want);
    // An infinite expectation would allow any error.
    const double allowed = std::isinf(want) ? 0 : atol + rtol * std::abs(want);
    if (!std::isnan(want) ? error <= allowed : error == 0) continue;
    ++bad;
    const double excess = allowed > 0 ? error / allowed : std::numeric_limits<double>::infinity();
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (bad == 0) return ::testing::AssertionSuccess();
  const auto number = [](double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", x);
    return std::string(text);
  };
  return ::testing::AssertionFailure()
         << bad << " of " << got.num_elements() << " elements of " << got.TypeString()
         << " differ; worst at " << IndexString(got.shape(), worst) << ": got "
         << number(got.at(worst)) << ", expected " << number(expected.at(worst)) << " (error "
         << number(AbsError(got.at(worst), expected.at(worst))) << ", rtol " << rtol << ", atol "
         << atol << ")";
}

// Fails the running test, at the caller's line, unless IsClose.
inline void ExpectClose(const Tensor& got, const Tensor& expected, double rtol, double atol = 0,
                        std::source_location where = std::source_location::current()) {
  const ::testing::AssertionResult result = IsClose(got, expected, rtol, atol);
  if (!result) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << result.message();
  }
}

// Floats uniform in [lo, hi), rounded to `dtype`; integers uniform in lo..hi-1; bools fair.
inline Tensor RandomTensor(DType dtype, const Shape& shape, uint64_t seed, double lo = -1,
                           double hi = 1) {
  Tensor t = Tensor::Empty(dtype, shape);
  PhiloxStream random(seed);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (IsFloat(dtype)) {
      t.set(i, lo + (hi - lo) * static_cast<double>(random.Uniform()));
    } else if (dtype == DType::kBool) {
      t.set(i, static_cast<double>(random.Below(2)));
    } else {
      const auto choices = static_cast<uint64_t>(std::max(hi - lo, 1.0));
      t.set(i, lo + static_cast<double>(random.Below(choices)));
    }
  }
  return t;
}

}  // namespace halftone::testing
