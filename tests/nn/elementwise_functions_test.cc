// Every row of elementwise.def that says so is a function of nn, every activation a layer too: each
// makes a node of its op. Errors name the line that called it.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectTraces(const std::string& op, const FnGraph::Fn& fn, const std::vector<Tensor>& in) {
  FnGraph graph(fn);
  EXPECT_EQ(Call(graph, in).size(), 1u) << op;
  EXPECT_THAT(graph.traced_text(), HasSubstr(" = " + op + "("));
}

TEST(ElementwiseFunctions, OfOneValue) {
  const Tensor x = F32({1}, {0.5}), flag = Tensor::Of(DType::kBool, {1}, {1});
#define HT_UNARY(op, ...) \
  ExpectTraces(#op, [](const Values& in) -> Values { return {op(in[0])}; }, {x});
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY(op, ...) \
  ExpectTraces(#op, [](const Values& in) -> Values { return {op(in[0])}; }, {flag});
#include "halftone/graph/ops/support/elementwise.def"
}

TEST(ElementwiseFunctions, OfTwoValuesOrANumber) {
  const Tensor x = F32({1}, {0.5}), flag = Tensor::Of(DType::kBool, {1}, {1});
#define HT_BINARY(op, ...)                                                                  \
  ExpectTraces(#op, [](const Values& in) -> Values { return {op(in[0], in[1])}; }, {x, x}); \
  ExpectTraces(#op, [](const Values& in) -> Values { return {op(in[0], 2)}; }, {x});
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_COMPARE_SWAPPED HT_BINARY
#define HT_LOGICAL(op, ...) \
  ExpectTraces(#op, [](const Values& in) -> Values { return {op(in[0], in[1])}; }, {flag, flag});
#include "halftone/graph/ops/support/elementwise.def"
}

TEST(ElementwiseFunctions, LayersApplyTheirFunction) {
  const Tensor x = F32({3}, {-2, 0.5, 3});
#define HT_ACTIVATION(op, Formula, Layer, ...)                                            \
  {                                                                                       \
    Layer layer;                                                                          \
    FnGraph graph([&](const Values& in) -> Values { return {layer(in[0]), op(in[0])}; }); \
    graph.add_module("layer", layer);                                                     \
    const std::vector<Tensor> out = Call(graph, {x});                                     \
    ASSERT_EQ(out.size(), 2u);                                                            \
    EXPECT_EQ(out[0].ToVector(), out[1].ToVector());                                      \
    EXPECT_THAT(graph.traced_text(), HasSubstr(" = " #op "("));                           \
    EXPECT_EQ(layer.description(), #Layer "()");                                          \
  }
#include "halftone/graph/ops/support/elementwise.def"
}

TEST(ElementwiseFunctions, ErrorsNameTheLineOfTheCall) {
  FnGraph one([](const Values&) -> Values { return {silu(Value())}; });
  EXPECT_EQ(Message(CallStatus(one, {F32({1}, {1})})),
            Concat("elementwise_functions_test.cc:", __LINE__ - 2,
                   ": an operand was never assigned a value"));
  FnGraph two([](const Values& in) -> Values { return {maximum(in[0], Value())}; });
  EXPECT_EQ(Message(CallStatus(two, {F32({1}, {1})})),
            Concat("elementwise_functions_test.cc:", __LINE__ - 2,
                   ": an operand was never assigned a value"));
}

TEST(ElementwiseFunctions, ErfAndReciprocal) {
  FnGraph graph([](const Values& in) -> Values { return {erf(in[0]), reciprocal(in[0])}; });
  const std::vector<Tensor> out = Call(graph, {F32({2}, {0.5, -2})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(out[0].ToVector(),
              ElementsAre(DoubleNear(std::erf(0.5), 1e-6), DoubleNear(std::erf(-2.0), 1e-6)));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(2, -0.5));
}

}  // namespace
}  // namespace halftone::nn
