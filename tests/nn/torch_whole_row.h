// Functions beside PyTorch's: values and gradients of operands that hold small whole numbers, in
// f64, and what central differences and 16 bit say of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "halftone/tests/nn/torch_row.h"

namespace halftone::nn {

struct TorchWholeRow {
  const char* name;
  Value (*f)(const Values& in);
  std::vector<Shape> in;  // operand k holds Whole(shape, k)
  // y, and the gradients of y_0 + 2 y_1 + 3 y_2 .. in every operand.
  std::vector<double> y;
  std::vector<std::vector<double>> gradients;
  bool has_slopes = true;  // false where equal maxima leave the function without
};

// Element i is ((7 i + 3 k) mod 5) - 2.
inline std::vector<double> Whole(const Shape& shape, size_t k) {
  std::vector<double> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((7 * i + 3 * k) % 5) - 2;
  }
  return values;
}

inline std::vector<Tensor> OperandsOf(const TorchWholeRow& row, DType dtype) {
  std::vector<Tensor> operands;
  for (size_t k = 0; k < row.in.size(); ++k) {
    operands.push_back(Tensor::Of(dtype, row.in[k], Whole(row.in[k], k)));
  }
  return operands;
}

inline void ExpectClose(const Tensor& got, const std::vector<double>& want, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size())) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    const double bound = tolerance * std::max(1.0, std::abs(want[i]));
    EXPECT_NEAR(got.at(static_cast<int64_t>(i)), want[i], bound) << what << "[" << i << "]";
  }
}

// The scalar whose gradients a row holds.
inline Value WeightedSum(const Value& y) {
  std::vector<double> weights(static_cast<size_t>(y.shape().num_elements()));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i) + 1;
  return sum(y * constant(Tensor::Of(y.dtype(), y.shape(), weights)));
}

inline void CheckTorchWholeRow(const TorchWholeRow& row) {
  FnGraph graph([&row](const Values& in) -> Values {
    const Value y = row.f(in), loss = WeightedSum(y);
    Values out = gradients(loss, in.vector());
    out.push_back(y);
    out.push_back(loss);
    return out;
  });
  const size_t count = row.in.size();
  std::vector<Tensor> operands = OperandsOf(row, DType::kF64);
  const std::vector<Tensor> out = Call(graph, operands);
  ASSERT_EQ(out.size(), count + 2) << row.name;
  ExpectClose(out[count], row.y, 1e-11, row.name);
  ASSERT_EQ(row.gradients.size(), count);
  constexpr double kStep = 1e-4;
  for (size_t k = 0; k < count; ++k) {
    ExpectClose(out[k], row.gradients[k], 1e-11, Concat(row.name, ", gradient ", k));
    if (!row.has_slopes) continue;
    const std::vector<double> values = operands[k].ToVector();
    std::vector<double> slopes;
    for (size_t i = 0; i < values.size(); ++i) {
      double at[2];
      for (int side : {0, 1}) {
        std::vector<double> moved = values;
        moved[i] += side == 0 ? -kStep : kStep;
        std::vector<Tensor> in = operands;
        in[k] = Tensor::Of(DType::kF64, row.in[k], moved);
        at[side] = Call(graph, in).at(count + 1).item();
      }
      slopes.push_back((at[1] - at[0]) / (2 * kStep));
    }
    ExpectClose(out[k], slopes, 1e-4, Concat(row.name, ", slope ", k));
  }
  for (const DType low : {DType::kF16, DType::kBF16}) {
    FnGraph forward([&row](const Values& in) -> Values { return {row.f(in)}; });
    const std::vector<Tensor> y = Call(forward, OperandsOf(row, low));
    ASSERT_EQ(y.size(), 1u) << row.name;
    EXPECT_EQ(y[0].dtype(), low);
    ExpectClose(y[0], row.y, 2 * Epsilon(low), Concat(row.name, " in ", Name(low)));
  }
}

}  // namespace halftone::nn
