// Functions of graph/nn/arrays.def that have ops of their own, beside PyTorch's numbers (2.15).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/tests/nn/torch_row.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::kInf;

const std::vector<TorchRow>& OrderRows() {
  static const auto* const rows = new std::vector<TorchRow>{
      {"flip",
       HT_CALL(flip(in[0], {0, 2})),
       {F32({2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-3, -1, 2, 0, -2.5, -0.75, 3.5, -0.5, -2, -1.5, -2.75, -0.25},
       {{9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4}}},
      {"flip, one axis",
       HT_CALL(flip(in[0], -1)),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {-0.25, -0.5, 1, 0.5, 0.25, 1.25},
       {{3, 2, 1, 6, 5, 4}}},
      {"flip, a vector",
       HT_CALL(flip(in[0], 0)),
       {F32({5}, {0.25, 1.75, 0.5, 1.5, -0.5})},
       {-0.5, 1.5, 0.5, 1.75, 0.25},
       {{5, 4, 3, 2, 1}}},
      {"pad",
       HT_CALL(pad(in[0], {1, 2})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {0, 1, -0.5, -0.25, 0, 0, 0, 1.25, 0.25, 0.5, 0, 0},
       {{2, 3, 4, 8, 9, 10}}},
      {"pad, two axes",
       HT_CALL(pad(in[0], {1, 0, 0, 2}, "constant", 3.5)),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {3.5, 1, -0.5, -0.25, 3.5, 1.25, 0.25, 0.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5},
       {{2, 3, 4, 6, 7, 8}}},
      {"pad, cropped",
       HT_CALL(pad(in[0], {-1, 2, 1, -2})),
       {F32({3, 3}, {-0.5, 2.75, 0.75, 2, 2.25, 1.25, -1.5, -1.75, -2})},
       {0, 0, 0, 0, 2.75, 0.75, 0, 0},
       {{0, 5, 6, 0, 0, 0, 0, 0, 0}}},
      {"pad, reflect",
       HT_CALL(pad(in[0], {2, 1}, "reflect")),
       {F32({1, 2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {-0.25, -0.5, 1, -0.5, -0.25, -0.5, 0.5, 0.25, 1.25, 0.25, 0.5, 0.25},
       {{3, 12, 6, 9, 30, 18}}},
      {"pad, reflect twice",
       HT_CALL(pad(in[0], {1, 2, 1, 1}, "reflect")),
       {F32({1, 1, 2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {0.25, 1.25, 0.25, 0.5, 0.25, 1.25, -0.5, 1, -0.5, -0.25, -0.5, 1,
        0.25, 1.25, 0.25, 0.5, 0.25, 1.25, -0.5, 1, -0.5, -0.25, -0.5, 1},
       {{64, 90, 32, 40, 54, 20}}},
      {"pad, replicate",
       HT_CALL(pad(in[0], {2, 3}, "replicate")),
       {F32({1, 2, 2}, {-1, 1.5, -0.5, -0.25})},
       {-1, -1, -1, 1.5, 1.5, 1.5, 1.5, -0.5, -0.5, -0.5, -0.25, -0.25, -0.25, -0.25},
       {{6, 22, 27, 50}}},
      {"pad, replicate twice",
       HT_CALL(pad(in[0], {1, 1, 2, 0}, "replicate")),
       {F32({1, 1, 2, 2}, {-1, 1.5, -0.5, -0.25})},
       {-1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -0.5, -0.5, -0.25, -0.25},
       {{33, 45, 27, 31}}},
      {"pad, circular",
       HT_CALL(pad(in[0], {2, 1, 1, 2}, "circular")),
       {F32({1, 1, 2, 3}, {0, 1, 2, 3, 4, 5})},
       {4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3, 1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3},
       {{66, 58, 62, 99, 87, 93}}},
      {"cumsum",
       HT_CALL(cumsum(in[0], 0)),
       {F32({5}, {0.25, 1.75, 0.5, 1.5, -0.5})},
       {0.25, 2, 2.5, 4, 3.5},
       {{15, 14, 12, 9, 5}}},
      {"cumsum, rows",
       HT_CALL(cumsum(in[0], 1)),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 0.5, 0.25, 1.25, 1.5, 2},
       {{6, 5, 3, 15, 11, 6}}},
      {"cumsum, middle",
       HT_CALL(cumsum(in[0], -2)),
       {F32({2, 3, 2}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-2, -0.5, 1.5, -0.75, -1.25, -2.25, 2, -1, -1, -1.75, -3.5, -1.75},
       {{9, 12, 8, 10, 5, 6, 27, 30, 20, 22, 11, 12}}},
      {"prod",
       HT_CALL(prod(in[0])),
       {F32({2, 3}, {1.25, 1.75, -1.5, 1.5, -0.75, -0.25})},
       {-0.9228515625},
       {{-0.73828125, -0.52734375, 0.615234375, -0.615234375, 1.23046875, 3.69140625}}},
      {"prod, rows",
       HT_CALL(prod(in[0], 1)),
       {F32({3, 3}, {0.75, 1, 1.75, -1, 2.25, -0.25, -1.5, -0.75, 2.5})},
       {1.3125, 0.5625, 2.8125},
       {{1.75, 1.3125, 0.75, -1.125, 0.5, -4.5, -5.625, -11.25, 3.375}}},
      {"prod, with zeros",
       HT_CALL(prod(in[0], 1, true)),
       {F32({3, 4}, {-1, 0, 1.75, 3, 0, 0.25, 0, 2, -0.5, -2.5, -0.75, 3.25})},
       {0, 0, -3.046875},
       {{0, -5.25, 0, 0, 0, 0, 0, 0, 18.28125, 3.65625, 12.1875, -2.8125}}},
      {"prod, columns",
       HT_CALL(prod(in[0], 0)),
       {F32({2, 3}, {1.25, 1.75, -1.5, 1.5, -0.75, -0.25})},
       {1.875, -1.3125, 0.375},
       {{1.5, -1.5, -0.75, 1.25, 3.5, -4.5}}},
      {"max_with_indices",
       HT_CALL(max_with_indices(in[0], 1)[0]),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 1.25},
       {{1, 0, 0, 2, 0, 0}}},
      {"max_with_indices, columns",
       HT_CALL(max_with_indices(in[0], 0, true)[0]),
       {F32({3, 2}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 1.25},
       {{1, 0, 0, 2, 0, 0}}},
      {"min_with_indices",
       HT_CALL(min_with_indices(in[0], -1)[0]),
       {F32({2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-2, -2.75, -3, -2.5},
       {{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 0}}},
      {"min",
       HT_CALL(min(in[0])),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {-0.5},
       {{0, 1, 0, 0, 0, 0}}},
      {"min, ties",
       HT_CALL(min(in[0], 1)),
       {F32({2, 3}, {1, 3, 3, 2, -1, 2})},
       {1, -1},
       {{1, 0, 0, 0, 2, 0}}},
      {"sort",
       HT_CALL(sort(in[0])[0]),
       {F32({2, 4}, {-0.25, -0.5, 2.25, 0.75, -1.5, 2.5, 1.25, 1})},
       {-0.5, -0.25, 0.75, 2.25, -1.5, 1, 1.25, 2.5},
       {{2, 1, 4, 3, 5, 8, 7, 6}}},
      {"sort, descending",
       HT_CALL(sort(in[0], 0, true)[0]),
       {F32({4, 2}, {-0.25, -0.5, 2.25, 0.75, -1.5, 2.5, 1.25, 1})},
       {2.25, 2.5, 1.25, 1, -0.25, 0.75, -1.5, -0.5},
       {{5, 8, 1, 6, 7, 2, 3, 4}}},
      {"sort, middle",
       HT_CALL(sort(in[0], 1)[0]),
       {F32({2, 3, 2}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-2.75, -1.5, -2, -0.5, 3.5, -0.25, -3, -1, -2.5, -0.75, 2, 0},
       {{3, 4, 5, 6, 1, 2, 11, 8, 7, 10, 9, 12}}},
      {"topk",
       HT_CALL(topk(in[0], 2)[0]),
       {F32({2, 4}, {-0.25, -0.5, 2.25, 0.75, -1.5, 2.5, 1.25, 1})},
       {2.25, 0.75, 2.5, 1.25},
       {{0, 0, 1, 2, 0, 3, 4, 0}}},
      {"topk, smallest",
       HT_CALL(topk(in[0], 3, 0, false)[0]),
       {F32({4, 2}, {-0.25, -0.5, 2.25, 0.75, -1.5, 2.5, 1.25, 1})},
       {-1.5, -0.5, -0.25, 0.75, 1.25, 1},
       {{3, 2, 0, 4, 1, 0, 5, 6}}},
      {"topk, all",
       HT_CALL(topk(in[0], 5)[0]),
       {F32({5}, {0.25, 1.75, 0.5, 1.5, -0.5})},
       {1.75, 1.5, 0.5, 0.25, -0.5},
       {{4, 1, 3, 2, 5}}},
      {"take_along_dim",
       HT_CALL(take_along_dim(in[0], in[1], 1)),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({2, 4}, {2, 0, 0, 1, 1, 1, 2, 2})},
       {-0.25, 1, 1, -0.5, 0.25, 0.25, 0.5, 0.5},
       {{5, 4, 1, 0, 11, 15}}},
      {"take_along_dim, broadcast",
       HT_CALL(take_along_dim(in[0], in[1], 1)),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({1, 2}, {2, 0})},
       {-0.25, 1, 0.5, 1.25},
       {{2, 0, 1, 4, 0, 3}}},
      {"take_along_dim, flat",
       HT_CALL(take_along_dim(in[0], in[1])),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({3}, {5, 0, 5})},
       {0.5, 1, 0.5},
       {{2, 0, 0, 0, 0, 4}}},
      {"scatter_add",
       HT_CALL(scatter_add(in[0], 0, in[1], in[2])),
       {F32({3}, {0.25, -0.75, 0.75}), I64({4}, {2, 0, 2, 2}), F32({4}, {-0.25, 1, 1.5, -1})},
       {1.25, -0.75, 1},
       {{1, 2, 3}, {3, 1, 3, 3}}},
      {"scatter_add, rows",
       HT_CALL(scatter_add(in[0], 1, in[1], in[2])),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({2, 2}, {1, 1, 0, 2}),
        F32({2, 2}, {-0.25, 1, 1.5, -1})},
       {1, 0.25, -0.25, 2.75, 0.25, -0.5},
       {{1, 2, 3, 4, 5, 6}, {2, 2, 4, 6}}},
      {"scatter_add, middle",
       HT_CALL(scatter_add(in[0], -2, in[1], in[2])),
       {F32({1, 3, 2}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({1, 2, 2}, {1, 1, 1, 2}),
        F32({1, 2, 2}, {-0.25, 1, 1.5, -1})},
       {1, -0.5, 1, 2.25, 0.25, -0.5},
       {{1, 2, 3, 4, 5, 6}, {3, 4, 3, 6}}},
  };
  return *rows;
}

TEST(TorchOrder, ValuesAndGradients) {
  for (const TorchRow& row : OrderRows()) ExpectAsInTorch(row);
}

// Ties keep their order, -0 and 0 are one, and every NaN is larger than infinity.
TEST(TorchOrder, IndicesAreThoseOfAStableOrder) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    FnGraph graph([](const Values& in) -> Values {
      const Values up = sort(in[0]), down = sort(in[0], 0, true), top = topk(in[0], 3);
      const Values low = topk(in[0], 4, 0, false);
      const Values least = min_with_indices(in[0], 0), largest = max_with_indices(in[0], 0);
      return {up[1], down[1],  top[1],     low[1],     argsort(in[0]),  least[1],
              up[0], least[0], largest[1], largest[0], argmin(in[0], 0)};
    });
    const double nan = std::nan("");
    const std::vector<Tensor> out =
        Call(graph, {Tensor::Of(dtype, {8}, {2, nan, -kInf, -0.0, 0, nan, 2, kInf})});
    ASSERT_EQ(out.size(), 11u);
    EXPECT_THAT(out[0].ToVector(), ElementsAre(2, 3, 4, 0, 6, 7, 1, 5));
    EXPECT_THAT(out[1].ToVector(), ElementsAre(1, 5, 7, 0, 6, 3, 4, 2));
    EXPECT_THAT(out[2].ToVector(), ElementsAre(1, 5, 7));
    EXPECT_THAT(out[3].ToVector(), ElementsAre(2, 3, 4, 0));
    EXPECT_THAT(out[4].ToVector(), ElementsAre(2, 3, 4, 0, 6, 7, 1, 5));
    for (int i : {5, 8, 10}) EXPECT_EQ(out[i].item(), 1) << i;
    for (int i : {7, 9}) EXPECT_TRUE(std::isnan(out[i].item())) << i;
    EXPECT_EQ(out[6].dtype(), dtype);
    EXPECT_TRUE(std::signbit(out[6].at(1)));
    EXPECT_FALSE(std::signbit(out[6].at(2)));
    EXPECT_TRUE(std::isnan(out[6].at(7)));
  }
}

TEST(TorchOrder, OfIntegers) {
  constexpr double kLeast = -0x1p63;
  FnGraph graph([](const Values& in) -> Values {
    return {argsort(in[0]),
            argsort(in[0], 0, true),
            min(in[0]),
            argmin(in[0], 0),
            min(in[1]),
            argmin(in[1], -1, true),
            cumsum(in[1], 0),
            prod(in[1]),
            min_with_indices(in[0], 0, true)[0]};
  });
  const std::vector<Tensor> out =
      Call(graph, {I64({5}, {3, 1, 3, kLeast, 1}), Tensor::Of(DType::kU8, {3}, {200, 100, 255})});
  ASSERT_EQ(out.size(), 9u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(3, 1, 4, 0, 2));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, 2, 1, 4, 3));
  EXPECT_EQ(out[2].item(), kLeast);
  EXPECT_EQ(out[3].item(), 3);
  EXPECT_EQ(out[4].item(), 100);
  EXPECT_THAT(out[5].ToVector(), ElementsAre(1));
  EXPECT_THAT(out[6].ToVector(), ElementsAre(200, 44, 43));
  EXPECT_EQ(out[7].item(), 224);  // 5,100,000 modulo 256
  EXPECT_EQ(out[8].TypeString(), "i64[1]");
  EXPECT_EQ(out[8].item(), kLeast);
}

// The first of equals gets all of the gradient, unlike in max.
TEST(TorchOrder, TheGradientOfAnExtremeGoesToItsIndex) {
  FnGraph graph([](const Values& in) -> Values {
    return {gradients(sum(max_with_indices(in[0], 1)[0]), {in[0]})[0],
            gradients(sum(max(in[0], 1)), {in[0]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({2, 3}, {1, 3, 3, 2, -1, 2})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, 0.5, 0.5, 0.5, 0, 0.5));
}

// A running sum in 16 bit would stop at 2,048, or at 256.
TEST(TorchOrder, SixteenBitValuesAreAddedWide) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    FnGraph graph([](const Values& in) -> Values {
      return {cumsum(in[0], 0), scatter_add(in[1], 0, in[2], in[0]), prod(in[3])};
    });
    const std::vector<Tensor> out =
        Call(graph,
             {Tensor::Full(dtype, {3000}, 1), Tensor::Of(dtype, {2}, {0, 72}),
              Tensor::Full(DType::kI64, {3000}, 1), Tensor::Of(dtype, {4}, {300, 300, 1, 0x1p-9})});
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[0].dtype(), dtype);
    EXPECT_EQ(out[0].at(2999), dtype == DType::kF16 ? 3000 : 3008);  // 3,000 is no bf16
    EXPECT_EQ(out[1].at(0), 0);
    EXPECT_EQ(out[1].at(1), 3072);
    // 175.78125; 90,000 on the way is no f16.
    EXPECT_EQ(out[2].item(), dtype == DType::kF16 ? 175.75 : 176);
  }
}

TEST(TorchOrder, ProductsWithoutADivision) {
  FnGraph graph([](const Values& in) -> Values {
    return {prod(in[0]), gradients(prod(in[0]), {in[0]})[0], prod(in[1]),
            gradients(prod(in[1]), {in[1]})[0]};
  });
  // 1e-30 1e-30 is no f32.
  const std::vector<Tensor> out = Call(graph, {F32({3}, {1e-30, 1e30, 0}), F32({0}, {})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].item(), 0);
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, 0, ::testing::DoubleNear(1, 1e-6)));
  EXPECT_EQ(out[2].item(), 1);
  EXPECT_EQ(out[3].TypeString(), "f32[0]");
}

TEST(TorchOrder, OfNothing) {
  FnGraph graph([](const Values& in) -> Values {
    return {sort(in[0])[0],
            topk(in[1], 0, 0)[1],
            flip(in[0], {}),
            cumsum(in[0], 1),
            pad(in[0], {1, 1}),
            pad(in[1], {1, 0, 2, 0}),
            take_along_dim(in[1], in[2], 0),
            scatter_add(in[1], 0, in[2], in[3])};
  });
  const std::vector<Tensor> out =
      Call(graph, {F32({0, 3}, {}), F32({2, 1}, {4, 5}), I64({0, 1}, {}), F32({0, 1}, {})});
  ASSERT_EQ(out.size(), 8u);
  const char* types[] = {"f32[0,3]", "i64[0,1]", "f32[0,3]", "f32[0,3]",
                         "f32[0,5]", "f32[4,2]", "f32[0,1]", "f32[2,1]"};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i].TypeString(), types[i]) << i;
  EXPECT_THAT(out[5].ToVector(), ElementsAre(0, 0, 0, 0, 0, 4, 0, 5));
  EXPECT_THAT(out[7].ToVector(), ElementsAre(4, 5));
}

TEST(TorchOrder, AnIndexOutOfRangeEndsTheRun) {
  FnGraph take([](const Values& in) -> Values { return {take_along_dim(in[0], in[1], 0)}; });
  EXPECT_THAT(Message(CallStatus(take, {F32({2}, {0, 0}), I64({3}, {1, 0, 2})})),
              HasSubstr("index 2"));
  FnGraph add([](const Values& in) -> Values { return {scatter_add(in[0], 0, in[1], in[2])}; });
  EXPECT_THAT(Message(CallStatus(add, {F32({2}, {0, 0}), I64({1}, {-1}), F32({1}, {7})})),
              HasSubstr("index -1"));
}

TEST(TorchOrder, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(
        Message(CallStatus(graph, {F32({2, 3}, {0, 0, 0, 0, 0, 0}), I64({2, 2}, {0, 0, 0, 0}),
                                   F32({0, 3}, {}), I64({3}, {0, 0, 0})})),
        HasSubstr(message));
  };
#define HT_EXPECT(call, message) \
  expect([]([[maybe_unused]] const Values& in) -> Values { return {call}; }, message)
  HT_EXPECT(flip(in[0], 2), "flip: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(flip(in[0], {1, -1}), "flip: ");
  HT_EXPECT(pad(in[0], {1}), "pad: 1 numbers for f32[2,3]; expected two an axis, at most 4");
  HT_EXPECT(pad(in[0], {1, 1, 1, 1, 1, 1}), "pad: 6 numbers for f32[2,3]");
  HT_EXPECT(pad(in[0], {1, 1}, "mirror"),
            "pad: mode is \"mirror\"; expected constant, reflect, replicate or circular");
  HT_EXPECT(
      pad(in[0], {4, 1}, "circular"),
      "pad: axis 1 of f32[2,3] padded by 4 and 1; expected at most its extent in mode circular");
  HT_EXPECT(pad(in[0], {-1, 1}, "circular"), "expected no negative number in this mode");
  HT_EXPECT(
      pad(in[0], {-2, -2}),
      "pad: axis 1 of f32[2,3] padded by -2 and -2; expected to take away at most its extent");
  HT_EXPECT(pad(in[0], {-1, 0}, "reflect"), "expected no negative number in this mode");
  HT_EXPECT(pad(in[0], {3, 0}, "reflect"),
            "pad: axis 1 of f32[2,3] padded by 3 and 0; expected less than its extent");
  HT_EXPECT(pad(in[2], {0, 0, 1, 0}, "replicate"),
            "pad: axis 0 of f32[0,3] padded by 1 and 0; expected an extent above 0");
  HT_EXPECT(pad(in[1], {1, 1}, "constant", 0.5), "pad: value is 0.5; expected a whole number");
  HT_EXPECT(pad(in[0], {int64_t{1} << 62, 0}), "pad: before is [0,4611686018427387904]");
  HT_EXPECT(cumsum(in[0], 2), "cumsum: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(prod(in[0], 2), "prod: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(min(in[2], 0), "no maximum over the empty axes");
  HT_EXPECT(argmin(in[0], 2), "argmin: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(max_with_indices(in[0], 2)[0], "max_with_indices: axis 2 out of range for f32[2,3]");
  HT_EXPECT(min_with_indices(in[0], -3)[1], "min_with_indices: axis -3 out of range for f32[2,3]");
  HT_EXPECT(sort(in[0], 2)[0], "sort: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(argsort(in[0], 2), "argsort: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(topk(in[0], 4)[0], "topk: k is 4; expected 0..3, the extent of axis -1 of f32[2,3]");
  HT_EXPECT(topk(in[0], -1)[1], "topk: k is -1; expected 0..3");
  HT_EXPECT(take_along_dim(in[0], in[1], 2), "take_along_dim: axis 2 out of range for f32[2,3]");
  HT_EXPECT(take_along_dim(in[0], in[3], 0),
            "take_along_dim: indices is i64[3]; expected the rank of x, f32[2,3]");
  HT_EXPECT(take_along_dim(in[0], in[1], 0), "take_along_dim: x is f32[2,3], idx i64[2,2]; ");
  HT_EXPECT(scatter_add(in[0], 2, in[1], in[0]), "scatter_add: axis 2 out of range");
  HT_EXPECT(scatter_add(in[0], 1, in[1], in[0]),
            "scatter_add: index is i64[2,2], src f32[2,3]; expected equal extents");
  HT_EXPECT(scatter_add(in[1], 1, in[1], in[1]),
            "scatter_add: x is i64[2,2]; expected a floating-point value");
#undef HT_EXPECT
}

}  // namespace
}  // namespace halftone::nn
