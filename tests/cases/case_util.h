// What the case tests share. Recipes and right values: the public reports named in each file; exact
// unless a tolerance is given.
#pragma once

#include <vector>

#include "gtest/gtest.h"
#include "halftone/tests/support/fn_graph.h"

namespace halftone::testing {

// Devices that every case runs on.
inline std::vector<Device> CaseDevices() { return {Device::Cpu(), Device::Reference()}; }

// Runs one step; a failure is a test failure and gives no tensors.
inline std::vector<Tensor> Step(nn::Graph& graph, const std::vector<Tensor>& in) {
  auto out = graph(in);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : std::vector<Tensor>{};
}

inline void ExpectValues(const Tensor& got, const std::vector<double>& expected, double rtol = 0,
                         double atol = 0) {
  ASSERT_TRUE(got.defined());
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    EXPECT_NEAR(got.at(i), expected[i], rtol * std::abs(expected[i]) + atol) << "element " << i;
  }
}

}  // namespace halftone::testing
