// Rows of copies as one: random ones give what they gave.
#include "halftone/passes/layout/merge_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/tests/support/graph_runner.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

ir::Expr Plain(ir::Expr x) {
  if (x.type().layout == ir::Layout::kPlain) return x;
  return x.builder()->Op("relayout", {x}, {{"to", std::string("plain")}});
}

// A transpose or reshape of x, or x channels last.
ir::Expr RandomMove(ir::Expr x, std::mt19937_64& random) {
  ir::Builder& b = *x.builder();
  const uint64_t kind = random() % 4;
  if (kind == 0 && x.shape().rank() == 4) {
    const bool last = x.type().layout == ir::Layout::kChannelsLast;
    return b.Op("relayout", {x}, {{"to", std::string(last ? "plain" : "nhwc")}});
  }
  x = Plain(x);
  if (kind <= 2) {
    Ints perm(static_cast<size_t>(x.shape().rank()));
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    return b.Op("transpose", {x}, {{"perm", perm}});
  }
  Ints shape = {1};
  for (int64_t left = x.shape().num_elements(); left > 1;) {
    const int64_t prime = left % 2 == 0 ? 2 : 3;
    if (shape.size() < 4 && random() % 2 == 0) {
      shape.push_back(prime);
    } else {
      shape[random() % shape.size()] *= prime;
    }
    left /= prime;
  }
  return b.Op("reshape", {x}, {{"shape", shape}});
}

int64_t Copies(const ir::Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->num_inputs() == 1 && !passes::IsStorageAlias(*node);
  });
}

TEST(MergeCopies, RandomMovesGiveWhatTheyGave) {
  const kernels::ReferenceEvaluator evaluator;
  const Shape shape{2, 6, 4, 3};
  Tensor numbers = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) numbers.set(i, static_cast<double>(i));
  int64_t before = 0, after = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    ir::Graph graph("g");
    ir::Builder b(&graph);
    ir::Expr x = b.Input("x", {DType::kF32, shape});
    const int moves = 2 + static_cast<int>(random() % 5);
    for (int i = 0; i < moves; ++i) x = RandomMove(x, random);
    ASSERT_TRUE(b.status().ok()) << b.status();
    graph.outputs() = {{"y", x.value()}};
    const auto want = RunGraph(graph, {{{"x", numbers}}, {}}, evaluator);
    ASSERT_TRUE(want.ok()) << want.status();
    before += Copies(graph);
    passes::PassContext context;
    const auto changed = passes::MakeMergeCopies()->Run(graph, context);
    ASSERT_TRUE(changed.ok()) << changed.status();
    ASSERT_TRUE(graph.Sort().ok());
    const ir::Value y = graph.outputs()[0].value;
    EXPECT_EQ(y.type(), x.type()) << "seed " << seed;
    const auto got = RunGraph(graph, {{{"x", numbers}}, {}}, evaluator);
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t i = 0; i < numbers.num_elements(); ++i) {
      ASSERT_EQ(got->outputs[0].at(i), want->outputs[0].at(i)) << "seed " << seed << ", " << i;
    }
    // What the pass left unread is still there, and may not count.
    int64_t read = 0;
    for (ir::Value v = y; v.node->num_inputs() == 1; v = v.node->input(0)) {
      read += passes::IsStorageAlias(*v.node) ? 0 : 1;
    }
    after += read;
  }
  EXPECT_LT(2 * after, before) << "few copies were merged";
}

}  // namespace
}  // namespace halftone::testing
