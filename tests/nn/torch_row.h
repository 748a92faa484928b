// A function beside PyTorch's numbers for it, which come from f64: values, and gradients of the sum
// of y, 2 y, 3 y, .. over the elements of y.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {

using Doubles = std::vector<double>;

struct TorchRow {
  const char* name;
  Value (*f)(const Values& in);
  std::vector<Tensor> in;
  Doubles y;
  std::vector<Doubles> gradients;  // of the floating-point inputs; empty: not compared
};

#define HT_CALL(...) [](const Values& in) -> Value { return __VA_ARGS__; }

inline void ExpectNear(const Tensor& got, const Doubles& want, const std::string& what) {
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size())) << what;
  double largest = 0;
  for (double v : want) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.at(static_cast<int64_t>(i)), want[i], 2e-6 * std::abs(want[i]) + 3e-7 * largest)
        << what << ", number " << i;
  }
}

inline void ExpectAsInTorch(const TorchRow& row) {
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = row.f(in);
    Doubles factors;
    for (int64_t i = 0; i < y.shape().num_elements(); ++i) factors.push_back(double(i + 1));
    const Value loss = sum(y * constant(Tensor::Of(DType::kF32, y.shape(), factors)));
    std::vector<Value> wrt;
    for (const Value& x : in) {
      if (IsFloat(x.dtype())) wrt.push_back(x);
    }
    Values out = gradients(loss, wrt);
    out.push_back(y);
    return out;
  });
  const std::vector<Tensor> out = Call(graph, row.in);
  ASSERT_EQ(out.size(), row.gradients.size() + 1) << row.name;
  ExpectNear(out.back(), row.y, row.name);
  // Of the operands that PyTorch differentiates: the first, or both of a pair.
  for (size_t i = 0; i < row.gradients.size(); ++i) {
    bool flows = i == 0;
    for (double v : row.gradients[i]) flows = flows || v != 0;
    if (flows) ExpectNear(out[i], row.gradients[i], Concat(row.name, ", gradient ", i));
  }
}

}  // namespace halftone::nn
