// Values as strides over what they are slices, transposes and reshapes of.
#include "halftone/passes/layout/strided_views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/tests/support/graph_runner.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

// A random slice, transpose or reshape of x.
ir::Expr RandomMove(ir::Expr x, std::mt19937_64& random) {
  const auto rank = static_cast<size_t>(x.shape().rank());
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  ir::Builder& b = *x.builder();
  switch (below(3)) {
    case 0: {
      Ints starts, limits, strides;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t extent = x.shape()[static_cast<int>(i)];
        starts.push_back(extent > 1 ? below(2) : 0);
        limits.push_back(extent);
        strides.push_back(1 + below(2));
      }
      return b.Op("slice", {x}, {{"starts", starts}, {"limits", limits}, {"strides", strides}});
    }
    case 1: {
      Ints perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), random);
      return b.Op("transpose", {x}, {{"perm", perm}});
    }
    default: {
      Ints shape;
      int64_t left = x.shape().num_elements();
      while (left > 1 && shape.size() < 4) {
        const int64_t wanted = 2 + below(3);
        const int64_t extent = left % wanted == 0 ? wanted : left % 2 == 0 ? 2 : left;
        shape.push_back(extent);
        left /= extent;
      }
      shape.push_back(left);
      std::shuffle(shape.begin(), shape.end(), random);
      return b.Op("reshape", {x}, {{"shape", shape}});
    }
  }
}

// Elements are numbered, so that the value itself says which of the base's each one is.
TEST(StridedViews, ReadWhatTheMovesGive) {
  const kernels::ReferenceEvaluator evaluator;
  int viewed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    ir::Graph graph("g");
    ir::Builder b(&graph);
    const Shape shape{2, 6, 4, 3};
    Tensor numbers = Tensor::Empty(DType::kF32, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) numbers.set(i, static_cast<double>(i));
    const ir::Expr base = b.Input("x", {DType::kF32, shape});
    ir::Expr x = base;
    const int moves = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < moves; ++i) x = RandomMove(x, random);
    ASSERT_TRUE(b.status().ok()) << b.status();
    const passes::ViewedValue found = passes::ViewedFrom(x.value());
    ASSERT_EQ(found.view.shape, x.shape()) << "seed " << seed;
    graph.outputs() = {{"base", found.base}, {"x", x.value()}};
    const auto results = RunGraph(graph, {{{"x", numbers}}, {}}, evaluator);
    ASSERT_TRUE(results.ok()) << results.status();
    const Tensor &from = results->outputs[0], &to = results->outputs[1];
    for (int64_t i = 0; i < to.num_elements(); ++i) {
      int64_t at = found.view.offset, rest = i;
      for (int axis = x.shape().rank() - 1; axis >= 0; --axis) {
        at += rest % x.shape()[axis] * found.view.strides[static_cast<size_t>(axis)];
        rest /= x.shape()[axis];
      }
      ASSERT_LT(at, from.num_elements()) << "seed " << seed;
      ASSERT_EQ(from.at(at), to.at(i)) << "seed " << seed << ", element " << i;
    }
    viewed += found.base == base.value() ? 1 : 0;
  }
  EXPECT_GT(viewed, 200) << "few chains were one set of strides";
}

}  // namespace
}  // namespace halftone::testing
