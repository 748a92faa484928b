// The functions of nn: attributes, normalised axes, promotion. Values from hand-checkable formulas;
// kernels have tables of their own.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The outputs of a graph without state.
std::vector<Tensor> Eval(const FnGraph::Fn& fn, const std::vector<Tensor>& in) {
  FnGraph graph(fn);
  return Call(graph, in);
}

std::vector<double> Eval1(const FnGraph::Fn& fn, const std::vector<Tensor>& in) {
  FnGraph graph(fn);
  return Call1(graph, in);
}

TEST(Operators, NumbersAndBroadcasting) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        const Value x = in[0];
        return {x + in[1], 1.0 - x, x * 2, 6 / x, -x, x / in[1]};
      },
      {F32({2, 1}, {1, 2}), F32({3}, {10, 20, 40})});
  ASSERT_EQ(out.size(), 6u);
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_THAT(out[0].ToVector(), ElementsAre(11, 21, 41, 12, 22, 42));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, -1));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(2, 4));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(6, 3));
  EXPECT_THAT(out[4].ToVector(), ElementsAre(-1, -2));
  EXPECT_FLOAT_EQ(static_cast<float>(out[5].at(1)), 0.05f);
}

TEST(Operators, Comparisons) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {in[0]<2.0, in[0] <= 2.0, in[0]> in[1], in[0] >= in[1], equal(in[0], 2.0),
                not_equal(in[0], in[1]), logical_not(in[0] < 2.0)};
      },
      {F32({3}, {1, 2, 3}), F32({3}, {2, 2, 2})});
  ASSERT_EQ(out.size(), 7u);
  EXPECT_EQ(out[0].dtype(), DType::kBool);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(1, 0, 0));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(1, 1, 0));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(0, 0, 1));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(0, 1, 1));
  EXPECT_THAT(out[4].ToVector(), ElementsAre(0, 1, 0));
  EXPECT_THAT(out[5].ToVector(), ElementsAre(1, 0, 1));
  EXPECT_THAT(out[6].ToVector(), ElementsAre(0, 1, 1));
}

TEST(Promotion, MixedDtypesMeet) {
  const auto type = [](DType a, DType b) {
    const auto out = Eval([](const Values& in) -> Values { return {in[0] + in[1]}; },
                          {Tensor::Full(a, {1}, 1), Tensor::Full(b, {1}, 2)});
    EXPECT_EQ(out.at(0).item(), 3);
    return out.at(0).dtype();
  };
  EXPECT_EQ(type(DType::kF32, DType::kF64), DType::kF64);
  EXPECT_EQ(type(DType::kF16, DType::kBF16), DType::kF32);
  EXPECT_EQ(type(DType::kI64, DType::kF16), DType::kF16);
  EXPECT_EQ(type(DType::kI32, DType::kI64), DType::kI64);
  EXPECT_EQ(type(DType::kBF16, DType::kF32), DType::kF32);
}

TEST(Promotion, NumbersTakeTheOtherOperandsType) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {in[0] * 2.0, in[0] * 0.5, in[1] + 1.0};
      },
      {I64({2}, {1, 3}), Tensor::Of(DType::kBF16, {1}, {0.5})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].dtype(), DType::kI64);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(2, 6));
  EXPECT_EQ(out[1].dtype(), DType::kF32);
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0.5, 1.5));
  EXPECT_EQ(out[2].dtype(), DType::kBF16);
}

TEST(Promotion, OfMatmulWhereAndConcat) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {matmul(in[0], in[1]), where(in[0] < 2.0, in[0], in[1]), concat({in[0], in[1]}, -1)};
      },
      {F32({2, 2}, {1, 2, 3, 4}), Tensor::Of(DType::kF64, {2, 2}, {5, 6, 7, 8})});
  ASSERT_EQ(out.size(), 3u);
  for (const Tensor& y : out) EXPECT_EQ(y.dtype(), DType::kF64);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(1, 6, 7, 8));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST(Arithmetic, UnaryAndBinary) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        const Value x = in[0];
        return {abs(x),           floor(x),    maximum(x, 0.0),  minimum(x, in[1]),
                pow(in[1], 2.0),  sqrt(in[1]), exp(in[1] * 0.0), log(in[1] / in[1]),
                isfinite(x / 0.0)};
      },
      {F32({2}, {-1.5, 2.5}), F32({2}, {4, 1})});
  ASSERT_EQ(out.size(), 9u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(1.5, 2.5));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(-2, 2));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(0, 2.5));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(-1.5, 1));
  EXPECT_THAT(out[4].ToVector(), ElementsAre(16, 1));
  EXPECT_THAT(out[5].ToVector(), ElementsAre(2, 1));
  EXPECT_THAT(out[6].ToVector(), ElementsAre(1, 1));
  EXPECT_THAT(out[7].ToVector(), ElementsAre(0, 0));
  EXPECT_THAT(out[8].ToVector(), ElementsAre(0, 0));
}

TEST(Reductions, AxesAndKeepdim) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {sum(in[0]),       mean(in[0], {-1}),   max(in[0], {0}, true),
                argmax(in[0], 1), sum(in[0], {0, -1}), sum(in[0], 0)};
      },
      {F32({2, 3}, {1, 5, 3, 4, 2, 6})});
  ASSERT_EQ(out.size(), 6u);
  EXPECT_EQ(out[0].item(), 21);
  EXPECT_THAT(out[1].ToVector(), ElementsAre(3, 4));
  EXPECT_EQ(out[2].shape(), (Shape{1, 3}));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(4, 5, 6));
  EXPECT_EQ(out[3].dtype(), DType::kI64);
  EXPECT_THAT(out[3].ToVector(), ElementsAre(1, 2));
  EXPECT_EQ(out[4].item(), 21);
  EXPECT_THAT(out[5].ToVector(), ElementsAre(5, 7, 9));
}

TEST(Products, ABiasMayBeAbsent) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        const Value x = in[0], w = in[1], bias = in[2];
        const Value image = reshape(x, {1, 2, 1, 1}), window = reshape(w, {1, 2, 1, 1});
        return {linear(x, w), linear(x, w, bias), linear(x, w, Parameter()),
                conv2d(image, window, bias, {.padding = 0}),
                conv2d(image, window, {.padding = {0, 1}})};
      },
      {F32({1, 2}, {1, 2}), F32({1, 2}, {3, 4}), F32({1}, {100})});
  ASSERT_EQ(out.size(), 5u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(11));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(111));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(11));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(111));
  EXPECT_THAT(out[4].ToVector(), ElementsAre(0, 11, 0));
}

TEST(Shapes, ReshapeFlattenSqueezeTranspose) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        const Value x = in[0];
        return {reshape(x, {-1, 2}),
                flatten(x),
                flatten(x, 0, 1),
                unsqueeze(x, -1),
                squeeze(unsqueeze(x, 0), 0),
                transpose(x, 0, -1),
                permute(x, {1, 2, -3}),
                broadcast_to(in[1], {2, 2})};
      },
      {F32({2, 1, 3}, {1, 2, 3, 4, 5, 6}), F32({2}, {7, 8})});
  ASSERT_EQ(out.size(), 8u);
  EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(out[1].shape(), (Shape{2, 3}));
  EXPECT_EQ(out[2].shape(), (Shape{2, 3}));
  EXPECT_EQ(out[3].shape(), (Shape{2, 1, 3, 1}));
  EXPECT_EQ(out[4].shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(out[5].shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(out[5].ToVector(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(out[6].shape(), (Shape{1, 3, 2}));
  EXPECT_THAT(out[6].ToVector(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(out[7].ToVector(), ElementsAre(7, 8, 7, 8));
}

TEST(Shapes, SliceClampsAsPython) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {slice(in[0], 0, 1, 3), slice(in[0], -1, -2, 100), slice(in[0], 0, 0, 5, 2),
                slice(in[0], 0, 4, 2)};
      },
      {F32({5}, {0, 1, 2, 3, 4})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(1, 2));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(3, 4));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(0, 2, 4));
  EXPECT_EQ(out[3].shape(), (Shape{0}));
}

TEST(Shapes, Refusals) {
  const auto error = [](const FnGraph::Fn& fn) {
    FnGraph graph(fn);
    return Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {2, 3})}));
  };
  EXPECT_THAT(error([](const Values& in) -> Values { return {squeeze(in[0], 0)}; }),
              HasSubstr("squeeze: axis 0 of f32[2,3] has not extent 1"));
  EXPECT_THAT(error([](const Values& in) -> Values { return {flatten(in[0], 1, 0)}; }),
              HasSubstr("flatten: first axis 1 lies after last 0 of f32[2,3]"));
  EXPECT_THAT(error([](const Values& in) -> Values { return {slice(in[0], 0, 0, 1, 0)}; }),
              HasSubstr("slice: step is 0; expected at least 1"));
  EXPECT_THAT(error([](const Values&) -> Values { return {concat({}, 0)}; }),
              HasSubstr("concat: no values; expected at least one"));
  EXPECT_THAT(error([](const Values& in) -> Values { return {unsqueeze(in[0], 4)}; }),
              HasSubstr("unsqueeze: axis 4 out of range"));
  EXPECT_THAT(error([](const Values& in) -> Values { return {sum(in[0], {2})}; }),
              HasSubstr("sum: axis 2 out of range for f32[2,3]; expected -2..1"));
  EXPECT_THAT(error([](const Values& in) -> Values {
                return {relu(in[0]) + static_cast<double>(in[0].dim(7))};
              }),
              HasSubstr("dim: axis 7 out of range for rank 2; expected -2..1"));
}

TEST(Indexing, GatherAndEmbedding) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {gather(in[0], in[1], -1), embedding(in[1], in[0])};
      },
      {F32({2, 2}, {1, 2, 3, 4}), I64({3}, {1, 0, 1})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].shape(), (Shape{2, 3}));
  EXPECT_THAT(out[0].ToVector(), ElementsAre(2, 1, 2, 4, 3, 4));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(3, 4, 1, 2, 3, 4));
}

TEST(Losses, Reductions) {
  const double ln2 = std::log(2.0);
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {cross_entropy(in[0], in[1]),
                cross_entropy(in[0], in[1], {.reduction = "none"}),
                cross_entropy(in[0], in[1], {.ignore_index = 1, .reduction = "sum"}),
                mse_loss(in[2], in[3]),
                mse_loss(in[2], in[3], "sum"),
                l1_loss(in[2], in[3], "none")};
      },
      {F32({2, 2}, {0, 0, 0, 0}), I64({2}, {0, 1}), F32({2}, {1, 2}), F32({2}, {4, 0})});
  ASSERT_EQ(out.size(), 6u);
  EXPECT_NEAR(out[0].item(), ln2, 1e-6);
  EXPECT_THAT(out[1].ToVector(), ElementsAre(DoubleNear(ln2, 1e-6), DoubleNear(ln2, 1e-6)));
  EXPECT_NEAR(out[2].item(), ln2, 1e-6);
  EXPECT_EQ(out[3].item(), 6.5);
  EXPECT_EQ(out[4].item(), 13);
  EXPECT_THAT(out[5].ToVector(), ElementsAre(3, 2));
}

TEST(Pooling, Options) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {max_pool2d(in[0], 2, {.stride = 1}), avg_pool2d(in[0], 2, {.padding = 1}),
                avg_pool2d(in[0], 2, {.padding = 1, .count_include_pad = false})};
      },
      {F32({1, 1, 2, 2}, {4, 8, 12, 16})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(16));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(4, 8, 12, 16));
}

TEST(OutsideBuild, EverythingIsPoison) {
  const Value v = relu(Value()) + 1.0;
  EXPECT_FALSE(v.valid());
  EXPECT_EQ(v.rank(), kMaxRank);
  v.backward();
  EXPECT_FALSE(dropout(v).valid());
  EXPECT_FALSE(concat({v, v}, 0).valid());
}

TEST(Activations, GeluForms) {
  const auto out = Eval(
      [](const Values& in) -> Values {
        return {gelu(in[0]), gelu(in[0], "tanh"), silu(in[0])};
      },
      {F32({1}, {1})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_NEAR(out[0].item(), 0.5 * (1 + std::erf(1 / std::sqrt(2.0))), 1e-6);
  EXPECT_NEAR(out[1].item(), 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (1 + 0.044715))), 1e-6);
  EXPECT_NEAR(out[2].item(), 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_THAT(Eval1([](const Values& in) -> Values { return {log_softmax(in[0], -1)}; },
                    {F32({2}, {0, 0})}),
              ElementsAre(DoubleNear(-std::log(2.0), 5e-6), DoubleNear(-std::log(2.0), 5e-6)));
}

// The gradient of sum(f(x)), through gradients().
std::vector<double> GradientOf(const std::function<Value(const Value&)>& f, const Tensor& x) {
  return Eval1([&f](const Values& in) -> Values { return {gradients(sum(f(in[0])), {in[0]})[0]}; },
               {x});
}

TEST(Where, F38ASideThatIsNotTakenHasAGradient) {
  const auto capped = [](const Value& x) { return where(x > 80, 80, exp(x)); };
  const std::vector<double> dx = GradientOf(capped, F32({2}, {1, 100}));
  EXPECT_NEAR(dx.at(0), std::exp(1.0), 1e-6);
  EXPECT_TRUE(std::isnan(dx.at(1))) << "0 * inf, as documented";
}

TEST(ApplyWhere, F38NeitherValuesNorGradientsLeak) {
  const auto exp_of = [](const Value& v) { return exp(v); };
  const auto capped = [&](const Value& x) { return apply_where(x <= 80, x, exp_of, 80); };
  EXPECT_THAT(GradientOf(capped, F32({3}, {1, 100, 1e30})),
              ElementsAre(DoubleNear(std::exp(1.0), 1e-6), 0, 0));
  EXPECT_THAT(
      Eval1([&](const Values& in) -> Values { return {capped(in[0])}; }, {F32({2}, {0, 100})}),
      ElementsAre(1, 80));

  const auto root = [](const Value& x) {
    return apply_where(
        x > 0, x, [](const Value& v) { return sqrt(v); }, 0);
  };
  EXPECT_THAT(GradientOf(root, F32({3}, {4, 0, -1})), ElementsAre(0.25, 0, 0));

  const auto logarithm = [](const Value& x) {
    return apply_where(
        x > 0, x, [](const Value& v) { return log(v); }, -5);
  };
  EXPECT_THAT(GradientOf(logarithm, F32({3}, {0.5, 0, -1})), ElementsAre(2, 0, 0));

  // 1 / (x - 1) is not finite at the default safe input.
  const auto inverse = [](const Value& x) {
    return apply_where(
        x > 1, x, [](const Value& v) { return 1.0 / (v - 1); }, x, /*safe_input=*/2);
  };
  EXPECT_THAT(GradientOf(inverse, F32({3}, {3, 1, 0})), ElementsAre(-0.25, 1, 1))
      << "otherwise may be a value, and has its gradient";
}

}  // namespace
}  // namespace halftone::nn
