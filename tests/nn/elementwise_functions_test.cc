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
using ::testing::StartsWith;

void ExpectTraces(const std::string& op, const FnGraph::Fn& fn, const std::vector<Tensor>& in) {
  FnGraph graph(fn);
  EXPECT_EQ(Call(graph, in).size(), 1u) << op;
  EXPECT_THAT(graph.traced_text(), HasSubstr(" = " + op + "("));
}

TEST(ElementwiseFunctions, OfOneValue) {
  const Tensor x = F32({1}, {0.5}), flag = Tensor::Of(DType::kBool, {1}, {1});
#define HT_UNARY(op, ...) \
  ExpectTraces(#op, [](const Values& in) -> Values { return {op(in[0])}; }, {x});
#define HT_TUNABLE(op, ...) HT_UNARY(op, __VA_ARGS__)
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
#define HT_TUNABLE(op, Formula, Layer, ...) HT_ACTIVATION(op, Formula, Layer)
#define HT_ACTIVATION(op, Formula, Layer, ...)                                            \
  {                                                                                       \
    Layer layer;                                                                          \
    FnGraph graph([&](const Values& in) -> Values { return {layer(in[0]), op(in[0])}; }); \
    graph.add_module("layer", layer);                                                     \
    const std::vector<Tensor> out = Call(graph, {x});                                     \
    ASSERT_EQ(out.size(), 2u);                                                            \
    EXPECT_EQ(out[0].ToVector(), out[1].ToVector());                                      \
    EXPECT_THAT(graph.traced_text(), HasSubstr(" = " #op "("));                           \
    EXPECT_THAT(layer.description(), StartsWith(#Layer "("));                             \
  }
#include "halftone/graph/ops/support/elementwise.def"
}

TEST(ElementwiseFunctions, LayersHandTheirNumbersOn) {
  LeakyReLU by_number(0.5), by_name({.negative_slope = 0.5});
  Hardtanh by_numbers(-2, 4), one_given({.max_val = 2});
  FnGraph graph([&](const Values& in) -> Values {
    return {by_number(in[0]), by_name(in[0]), leaky_relu(in[0], 0.5), by_numbers(in[0]),
            one_given(in[0])};
  });
  graph.add_module("by_number", by_number);
  graph.add_module("by_name", by_name);
  graph.add_module("by_numbers", by_numbers);
  graph.add_module("one_given", one_given);
  const std::vector<Tensor> out = Call(graph, {F32({3}, {-4, 1, 8})});
  ASSERT_EQ(out.size(), 5u);
  for (int i : {0, 1, 2}) EXPECT_THAT(out[i].ToVector(), ElementsAre(-2, 1, 8));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(-2, 1, 4));
  EXPECT_THAT(out[4].ToVector(), ElementsAre(-1, 1, 2));
  EXPECT_EQ(by_number.description(), "LeakyReLU(negative_slope=0.5)");
  EXPECT_EQ(by_numbers.description(), "Hardtanh(min_val=-2, max_val=4)");
}

TEST(ElementwiseFunctions, NumbersThatAreNone) {
  const auto message = [](FnGraph::Fn fn) {
    FnGraph graph(std::move(fn));
    return Message(CallStatus(graph, {F32({1}, {1})}));
  };
  EXPECT_THAT(message([](const Values& in) -> Values { return {hardtanh(in[0], 3, 1)}; }),
              HasSubstr("min_val 3, max_val 1; expected min_val <= max_val"));
  EXPECT_THAT(message([](const Values& in) -> Values { return {elu(in[0], std::nan(""))}; }),
              HasSubstr("alpha nan; expected a number"));
  EXPECT_THAT(message([](const Values& in) -> Values { return {clamp(in[0])}; }),
              HasSubstr("clamp: neither min nor max; expected at least one"));
}

TEST(ElementwiseFunctions, ClampWithEitherEndAbsent) {
  FnGraph graph([](const Values& in) -> Values {
    return {clamp(in[0], -1, 2), clamp(in[0], 0), clamp(in[0], std::nullopt, 0), clamp(in[0], 3, 1),
            clamp(in[1], 2, 5)};
  });
  const std::vector<Tensor> out = Call(graph, {F32({3}, {-4, 1, 8}), I64({3}, {-4, 3, 8})});
  ASSERT_EQ(out.size(), 5u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(-1, 1, 2));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, 1, 8));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(-4, 0, 0));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(1, 1, 1));
  EXPECT_EQ(out[4].dtype(), DType::kI64);
  EXPECT_THAT(out[4].ToVector(), ElementsAre(2, 3, 5));
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
