// Compilers evaluate the operands of `a(x) * b(x)` in different orders: g++ the right one first,
// clang the left one. Both orders, written out, are the same step.
#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/nn/canonical_order.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

// Two calls in the order that the flag says; the results in the order of the arguments.
template <typename A, typename B>
std::pair<Value, Value> Both(bool left_first, const A& a, const B& b) {
  if (left_first) {
    const Value x = a();
    const Value y = b();
    return {x, y};
  }
  const Value y = b();
  const Value x = a();
  return {x, y};
}

class TwoBranches : public FnGraph {
 public:
  explicit TwoBranches(bool left_first)
      : FnGraph([this, left_first](const Values& in) -> Values {
          const Value x = in[0];
          // Modules, functions and random ops of one scope; parameters first used here.
          const auto [p, q] = Both(
              left_first, [&] { return drop_a(relu(a(x))); }, [&] { return norm(drop_b(b(x))); });
          const auto [r, s] = Both(
              left_first, [&] { return dropout(exp(p), 0.5); },
              [&] { return dropout(exp(q * 0.25), 0.25); });
          const Value loss = mean(r * s + p);
          loss.backward();
          return {loss, r};
        }),
        a(8, 8),
        b(8, 8),
        norm(8),
        drop_a(0.5),
        drop_b(0.5) {
    add_module("a", a);
    add_module("b", b);
    add_module("norm", norm);
    add_module("drop_a", drop_a);
    add_module("drop_b", drop_b);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
  }
  Linear a, b;
  BatchNorm2d norm;
  Dropout drop_a, drop_b;
};

TEST(OperandOrder, F21NamesMasksAndBitsDoNotDependOnIt) {
  TwoBranches left(true), right(false);
  const Tensor x = Tensor::Full(DType::kF32, {4, 8}, 0.5);
  for (int step = 0; step < 3; ++step) {
    const std::vector<Tensor> l = Call(left, {x}), r = Call(right, {x});
    ASSERT_EQ(l.size(), 2u);
    EXPECT_EQ(l[0].ToVector(), r.at(0).ToVector());
    EXPECT_EQ(l[1].ToVector(), r.at(1).ToVector());
  }
  EXPECT_EQ(left.traced_text(), right.traced_text());
  EXPECT_EQ(left.compiled_text(), right.compiled_text());
  EXPECT_THAT(left.traced_text(), HasSubstr("dropout"));
  const StateDict l = *left.state_dict(), r = *right.state_dict();
  for (const auto& [name, value] : l) EXPECT_EQ(value.ToVector(), r.at(name).ToVector()) << name;
}

TEST(OperandOrder, F21AsTheCompilerHasIt) {
  // Whatever order this compiler chooses, it is the one of the left operand first.
  const auto text = [](const FnGraph::Fn& fn) {
    FnGraph graph(fn);
    Call(graph, {F32({2}, {1, 2})});
    return graph.traced_text();
  };
  const auto f = [](const Value& x) { return dropout(exp(x), 0.5); };
  const auto g = [](const Value& x) { return dropout(relu(x), 0.5); };
  const std::string written_out = text([&](const Values& in) -> Values {
    const Value l = f(in[0]);
    const Value r = g(in[0]);
    return {l * r};
  });
  EXPECT_EQ(text([&](const Values& in) -> Values { return {f(in[0]) * g(in[0])}; }), written_out);
  EXPECT_EQ(text([&](const Values& in) -> Values { return {mul(f(in[0]), g(in[0]))}; }),
            written_out);
}

TEST(OperandOrder, F21NamesCountAlongTheDataFlow) {
  FnGraph graph([](const Values& in) -> Values {
    const Value later = exp(in[0] * 3.0);
    const Value first = exp(in[0]);
    return {first + later};
  });
  Call(graph, {F32({1}, {0})});
  const std::string text = graph.traced_text();
  EXPECT_THAT(text, HasSubstr("%exp = exp(%in0)"));
  EXPECT_THAT(text, HasSubstr("%exp_1 = exp(%mul)"));
}

TEST(OperandOrder, F21AParameterMayBeNamedLikeANumberedNode) {
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 2, 0});
  FnGraph graph([&](const Values& in) -> Values { return {exp(in[0]) + exp(w)}; });
  graph.add_parameter("exp_1", w);
  Call(graph, {F32({1}, {0})});
  EXPECT_THAT(graph.traced_text(), HasSubstr("variable \"exp_1\""));
}

TEST(OperandOrder, F21ALongChain) {
  ir::Graph graph;
  ir::Builder b(&graph);
  ir::Expr x = b.Input("x", {DType::kF32, Shape{1}});
  for (int i = 0; i < 100000; ++i) x = b.Op("neg", {x});
  ASSERT_TRUE(b.status().ok());
  graph.outputs().push_back({"", x.value()});
  const std::unique_ptr<ir::Graph> ordered = internal::InCanonicalOrder(graph);
  ASSERT_EQ(ordered->nodes().size(), 100001u) << "no recursion over the graph";
  EXPECT_EQ(ordered->nodes().back()->name(), "neg_99999");
}

}  // namespace
}  // namespace halftone::nn
