// Short spellings for literal checks of ops on the reference device.
#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {

using Reals64 = std::vector<double>;

// f64 unless said, so that a literal shows the formula and not a rounding.
inline Tensor T(const Shape& shape, const Reals64& values, DType dtype = DType::kF64) {
  return Tensor::Of(dtype, shape, values);
}
inline Tensor Vec(const Reals64& values, DType dtype = DType::kF64) {
  return T({static_cast<int64_t>(values.size())}, values, dtype);
}

// First output of op.
inline Tensor Apply(const std::string& op, const std::vector<Tensor>& inputs,
                    ir::Attributes attrs = {}) {
  return RunOp(op, inputs, std::move(attrs))[0];
}

MATCHER_P2(Holds, shape, values, "") {
  const Reals64 expected = values;
  if (arg.shape() != shape) {
    *result_listener << "shape " << arg.shape();
    return false;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const double got = arg.at(static_cast<int64_t>(i)), want = expected[i];
    const bool close = std::isnan(want)
                           ? std::isnan(got)
                           : got == want || std::abs(got - want) <= 1e-13 * std::abs(want);
    if (!close) {
      *result_listener << "element " << i << " is " << got << ", expected " << want;
      return false;
    }
  }
  return static_cast<size_t>(arg.num_elements()) == expected.size();
}

// A vector of these values, to the last digits of f64.
inline auto Is(const Reals64& values) {
  return Holds(Shape{static_cast<int64_t>(values.size())}, values);
}
inline auto Is(const Shape& shape, const Reals64& values) { return Holds(shape, values); }

}  // namespace halftone::testing
