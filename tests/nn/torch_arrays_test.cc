// Functions of graph/nn/arrays.def that are made of others, beside PyTorch's numbers (2.15).
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/nn/torch_row.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLeastIndex = std::numeric_limits<int64_t>::min();
constexpr int64_t kMostIndex = std::numeric_limits<int64_t>::max();

const std::vector<TorchRow>& ArrayRows() {
  static const auto* const rows = new std::vector<TorchRow>{
      {"einsum, matrices",
       HT_CALL(einsum("ij,jk->ik", {in[0], in[1]})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}),
        F32({3, 4}, {-0.75, -0.5, -2.25, -2.5, -3, 1.5, 0, 2.5, -1.5, 3, 0.75, -1})},
       {1.125, -2, -2.4375, -3.5, -2.4375, 1.25, -2.4375, -3},
       {{-18.5, 10, 2.75, -42.5, 14, 7.75},
        {7.25, 9.5, 11.75, 14, 0.75, 0.5, 0.25, 0, 2.25, 2.5, 2.75, 3}}},
      {"einsum, second transposed",
       HT_CALL(einsum("ij,kj->ik", {in[0], in[1]})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}),
        F32({4, 3}, {-0.75, -0.5, -2.25, -2.5, -3, 1.5, 0, 2.5, -1.5, 3, 0.75, -1})},
       {0.0625, -1.375, -0.875, 2.875, -2.1875, -3.125, -0.125, 3.4375},
       {{6.25, 4, -7.75, 5.25, 3, -20.75},
        {7.25, 0.75, 2.25, 9.5, 0.5, 2.5, 11.75, 0.25, 2.75, 14, 0, 3}}},
      {"einsum, a stack, implicit",
       HT_CALL(einsum("bij,bjk", {in[0], in[1]})),
       {F32({2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0}),
        F32({2, 3, 2}, {-0.75, -0.5, -2.25, -2.5, -3, 1.5, 0, 2.5, -1.5, 3, 0.75, -1})},
       {-8.625, 12.5, 14.625, -4.625},
       {{-1.75, -7.25, 0, -4.25, -16.75, -3, 5, 4.5, -1.25, 10, 7.5, -1.75},
        {-2.75, -5, -8.75, -12, -1, 1, -0.25, 1, -8.5, -12, -3, -6}}},
      {"einsum, heads",
       HT_CALL(einsum("bqhd,bkhd->bhqk", {in[0], in[1]})),
       {F32({1, 2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0}),
        F32({1, 3, 2, 3},
            {0, 0.5, 2, -3.75, 1, -2.5, 2.25, -4.5, 0.75, 3, 1.25, 2.5, -2, -3.5, 2.75, 5, 4, -4})},
       {6.75, 0.375, 15.375, -6.5, 6.75, -8.75, 1.9375, -7.9375, -6.25, 0.3125, -5.375, -13.75},
       {{-1.5, -19, 11.75, 42.75, 53, -33.5, -0.75, -41.5, 28.25, 55.5, 71.75, -45.5},
        {6, -4.5, -8.5, -9.25, -44.25, -10.5, 6, -6, -8, -10.25, -49.5, -12, 6, -7.5, -7.5, -11.25,
         -54.75, -13.5}}},
      {"einsum, two inner axes",
       HT_CALL(einsum("aij,jik->ak", {in[0], in[1]})),
       {F32({2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0}),
        F32({3, 2, 2}, {-0.75, -0.5, -2.25, -2.5, -3, 1.5, 0, 2.5, -1.5, 3, 0.75, -1})},
       {-2.8125, 6, 7.6875, -15.875},
       {{-1.75, 0, 4.5, -7.25, 5, -1.25, -4.25, -3, 7.5, -16.75, 10, -1.75},
        {4, 4, -2.5, -3.5, -3.5, -5, -10.25, -15.5, -5.5, -5, -1.5, -3}}},
      {"einsum, outer",
       HT_CALL(einsum("i,j->ji", {in[0], in[1]})),
       {F32({3}, {0.25, -0.75, 0.75}), F32({2}, {0, 0.5})},
       {0, 0, 0, 0.125, -0.375, 0.375},
       {{2, 2.5, 3}, {1, 1.75}}},
      {"einsum, elementwise",
       HT_CALL(einsum("ij,ij->ij", {in[0], in[1]})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}),
        F32({2, 3}, {-0.75, -0.5, 1, -1.5, -1.25, 2})},
       {-0.75, 0.25, -0.25, -1.875, -0.3125, 1},
       {{-0.75, -1, 3, -6, -6.25, 12}, {1, -1, -0.75, 5, 1.25, 3}}},
      {"einsum, trace",
       HT_CALL(einsum("ii", {in[0]})),
       {F32({3, 3}, {-0.5, 2.75, 0.75, 2, 2.25, 1.25, -1.5, -1.75, -2})},
       {-0.25},
       {{1, 0, 0, 0, 1, 0, 0, 0, 1}}},
      {"einsum, diagonal",
       HT_CALL(einsum("iij->ji", {in[0]})),
       {F32({3, 3, 2}, {0.25, 3.5, 3, 4.25, -2.75, -1.5, -1.75, -3.25, 0.5, 0.75, 0, 1.5, -1.25, -3,
                        2.25, -1, 4.75, 5})},
       {0.25, 0.5, 4.75, 3.5, 0.75, 5},
       {{1, 4, 0, 0, 0, 0, 0, 0, 2, 5, 0, 0, 0, 0, 0, 0, 3, 6}}},
      {"einsum, transposed",
       HT_CALL(einsum("cab", {in[0]})),
       {F32({2, 3, 2}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-2, 2, -0.5, -1, 3.5, -3, -0.25, -0.75, -2.75, -2.5, -1.5, 0},
       {{1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 12}}},
      {"einsum, sum",
       HT_CALL(einsum("ijk->j", {in[0]})),
       {F32({2, 3, 2}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-1.5, -0.5, -6.75},
       {{1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}}},
      {"einsum, three operands",
       HT_CALL(einsum("ij,jk,k->i", {in[0], in[1], in[2]})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}),
        F32({3, 2}, {-0.75, -0.5, 1, -1.5, -1.25, 2}), F32({2}, {0.75, 0.25})},
       {-0.765625, -0.984375},
       {{-0.6875, 0.375, -0.4375, -1.375, 0.75, -0.875},
        {2.625, 0.875, 0, 0, 0.5625, 0.1875},
        {-3.5625, -0.25}}},
      {"einsum, ellipsis",
       HT_CALL(einsum("...ij,...jk->...ik", {in[0], in[1]})),
       {F32({2, 1, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0}),
        F32({3, 3, 2},
            {0, 0.5, 2, -3.75, 1, -2.5, 2.25, -4.5, 0.75, 3, 1.25, 2.5, -2, -3.5, 2.75, 5, 4, -4})},
       {2.5, -7.875, -7, 13.9375, -0.5, 16.25, -4.5,    -10.875, 16.625, -9.5, -13.0625, -6.875,
        -5,  12.25,  -5, 9,       0,    -19.5, -3.5625, -4.125,  -18.75, 0,    -5.375,   -9.875},
       {{-67.75, 91, 13.25, -82.25, 110.5, 17.75, -154.75, 208, 40.25, -169.25, 227.5, 44.75},
        {12, 11, -59.25, -66, -40, -41, 8, 7, -86.25, -93, -44, -45, 4, 3, -113.25, -120, -48,
         -49}}},
      {"einsum, ellipsis summed",
       HT_CALL(einsum("...i->i", {in[0]})),
       {F32({2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-1, -6.75, -1},
       {{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}}},
      {"einsum, broadcast",
       HT_CALL(einsum("ij,jk->ik", {in[0], in[1]})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), F32({1, 2}, {0, 0.5})},
       {0, 0.125, 0, 1},
       {{1, 1, 1, 2, 2, 2}, {6.25, 8.5}}},
      {"einsum, broadcast batch",
       HT_CALL(einsum("bij,bjk->bik", {in[0], in[1]})),
       {F32({1, 2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}),
        F32({2, 3, 2}, {-0.75, -0.5, -2.25, -2.5, -3, 1.5, 0, 2.5, -1.5, 3, 0.75, -1})},
       {1.125, 0.375, -3, -0.5, 0.5625, 1.25, 0, 3.375},
       {{13.25, 3.25, -2.25, 15.75, -3.25, -5.75},
        {4.75, 7, 0.25, 0, 1.25, 1.5, 13.75, 16, -0.75, -1, 2.25, 2.5}}},
      {"einsum, numbers",
       HT_CALL(einsum(",i->i", {in[0], in[1]})),
       {F32({}, {-0.25}), F32({3}, {-0.75, 1.25, 0.75})},
       {0.1875, -0.3125, -0.1875},
       {{4}, {-0.25, -0.5, -0.75}}},
      {"einsum, bilinear",
       HT_CALL(einsum("bn,anm,bm->ba", {in[0], in[1], in[2]})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}),
        F32({2, 3, 2}, {-0.75, -0.5, -2.25, -2.5, -3, 1.5, 0, 2.5, -1.5, 3, 0.75, -1}),
        F32({2, 2}, {1.25, -1, -0.25, 0.5})},
       {1.03125, -0.546875, 0.5, 1.6875},
       {{-5.4375, -10.0625, -1.375, 4.8125, 5.4375, 1.75},
        {0.3125, 0.875, -0.8125, 0.875, -0.6875, 1, 1.25, 0.5, -1.5, 1.5, -1.125, 1.5},
        {2.25, 2.875, -9, 12}}},
      {"tile",
       HT_CALL(tile(in[0], {2, 1, 3})),
       {F32({2, 2}, {-1, 1.5, -0.5, -0.25})},
       {-1, 1.5, -1, 1.5, -1, 1.5, -0.5, -0.25, -0.5, -0.25, -0.5, -0.25,
        -1, 1.5, -1, 1.5, -1, 1.5, -0.5, -0.25, -0.5, -0.25, -0.5, -0.25},
       {{54, 60, 90, 96}}},
      {"tile, fewer numbers",
       HT_CALL(tile(in[0], {2})),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, -0.5, -0.25, 1, -0.5, -0.25, 1.25, 0.25, 0.5, 1.25, 0.25, 0.5},
       {{5, 7, 9, 17, 19, 21}}},
      {"tile, more axes than fit at once",
       HT_CALL(tile(in[0], {2, 2, 2, 1, 2})),
       {F32({1, 2, 1, 2, 1}, {-1, 1.5, -0.5, -0.25})},
       {-1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -0.5, -0.5, -0.25, -0.25, -0.5, -0.5, -0.25, -0.25,
        -1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -0.5, -0.5, -0.25, -0.25, -0.5, -0.5, -0.25, -0.25,
        -1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -0.5, -0.5, -0.25, -0.25, -0.5, -0.5, -0.25, -0.25,
        -1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -0.5, -0.5, -0.25, -0.25, -0.5, -0.5, -0.25, -0.25},
       {{440, 472, 568, 600}}},
      {"repeat",
       HT_CALL(repeat(in[0], {2, 3})),
       {F32({3}, {0.25, -0.75, 0.75})},
       {0.25, -0.75, 0.75, 0.25, -0.75, 0.75, 0.25, -0.75, 0.75, 0.25, -0.75, 0.75, 0.25, -0.75,
        0.75, 0.25, -0.75, 0.75},
       {{51, 57, 63}}},
      {"repeat, none",
       HT_CALL(repeat(in[0], {2, 0})),
       {F32({3}, {0.25, -0.75, 0.75})},
       {},
       {{0, 0, 0}}},
      {"repeat_interleave",
       HT_CALL(repeat_interleave(in[0], 2, 1)),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 1, -0.5, -0.5, -0.25, -0.25, 1.25, 1.25, 0.25, 0.25, 0.5, 0.5},
       {{3, 7, 11, 15, 19, 23}}},
      {"repeat_interleave, flat",
       HT_CALL(repeat_interleave(in[0], 3)),
       {F32({2, 2}, {-1, 1.5, -0.5, -0.25})},
       {-1, -1, -1, 1.5, 1.5, 1.5, -0.5, -0.5, -0.5, -0.25, -0.25, -0.25},
       {{6, 15, 24, 33}}},
      {"pixel_shuffle",
       HT_CALL(pixel_shuffle(in[0], 2)),
       {F32({1, 8, 2, 1}, {-4, -1.5, 3.25, -1.25, -3.75, 0.5, 3.75, -1, 4.5, -2.5, 4.25, 1, -0.75,
                           -2.75, 3.5, -0.25})},
       {-4, 3.25, -3.75, 3.75, -1.5, -1.25, 0.5, -1, 4.5, 4.25, -0.75, 3.5, -2.5, 1, -2.75, -0.25},
       {{1, 5, 2, 6, 3, 7, 4, 8, 9, 13, 10, 14, 11, 15, 12, 16}}},
      {"pixel_shuffle, no batch",
       HT_CALL(pixel_shuffle(in[0], 3)),
       {F32({9, 1, 2}, {0.25, 3.5, 3, 4.25, -2.75, -1.5, -1.75, -3.25, 0.5, 0.75, 0, 1.5, -1.25, -3,
                        2.25, -1, 4.75, 5})},
       {0.25, 3, -2.75, 3.5, 4.25, -1.5, -1.75, 0.5, 0, -3.25, 0.75, 1.5, -1.25, 2.25, 4.75, -3, -1,
        5},
       {{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12, 13, 16, 14, 17, 15, 18}}},
      {"pixel_unshuffle",
       HT_CALL(pixel_unshuffle(in[0], 2)),
       {F32({2, 1, 2, 4}, {-4, -1.5, 3.25, -1.25, -3.75, 0.5, 3.75, -1, 4.5, -2.5, 4.25, 1, -0.75,
                           -2.75, 3.5, -0.25})},
       {-4, 3.25, -1.5, -1.25, -3.75, 3.75, 0.5, -1, 4.5, 4.25, -2.5, 1, -0.75, 3.5, -2.75, -0.25},
       {{1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14, 16}}},
      {"index_select",
       HT_CALL(index_select(in[0], 1, in[1])),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({4}, {2, 0, 2, 2})},
       {-0.25, 1, -0.25, -0.25, 0.5, 1.25, 0.5, 0.5},
       {{2, 0, 8, 6, 0, 20}}},
      {"index_select, one",
       HT_CALL(index_select(in[0], -1, in[1])),
       {F32({2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5}), I64({}, {1})},
       {-0.5, 0.25},
       {{0, 1, 0, 0, 2, 0}}},
      {"index_select, rows",
       HT_CALL(index_select(in[0], 0, in[1])),
       {F32({3, 2, 2}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0}),
        I64({2}, {2, 1})},
       {-3, -0.75, -2.5, 0, -2.75, -1.5, 2, -1},
       {{0, 0, 0, 0, 5, 6, 7, 8, 1, 2, 3, 4}}},
  };
  return *rows;
}

TEST(TorchArrays, ValuesAndGradients) {
  for (const TorchRow& row : ArrayRows()) ExpectAsInTorch(row);
}

// A sum over an axis of both is a matmul; others are not.
TEST(TorchArrays, EinsumIsMadeOfFewOps) {
  const auto traced = [](const char* equation, const Tensor& a, const Tensor& b) {
    FnGraph graph([=](const Values& in) -> Values { return {einsum(equation, {in[0], in[1]})}; });
    EXPECT_TRUE(CallStatus(graph, {a, b}).ok()) << equation;
    return std::string(graph.compiled_text());
  };
  const Tensor square = Tensor::Zeros(DType::kF32, {3, 3});
  // The transposition is an attribute of the product.
  const std::string product = traced("ij,kj->ik", square, square);
  EXPECT_THAT(product, HasSubstr("matmul("));
  EXPECT_THAT(product, HasSubstr("transpose_b=true"));
  EXPECT_THAT(product, ::testing::Not(HasSubstr("transpose(")));
  EXPECT_THAT(traced("ij,ij->ij", square, square), ::testing::Not(HasSubstr("matmul(")));
  const Tensor numbers = Tensor::Zeros(DType::kI64, {3, 3});
  EXPECT_THAT(traced("ij,jk->ik", numbers, numbers), ::testing::Not(HasSubstr("matmul(")));
}

TEST(TorchArrays, EinsumOfIntegersAndOfNothing) {
  FnGraph graph([](const Values& in) -> Values {
    return {einsum("ij,jk->ik", {in[0], in[0]}), einsum("ij,jk->ik", {in[1], in[2]}),
            einsum("ij->", {in[1]}), einsum("ij,jk", {in[0], in[3]})};
  });
  const std::vector<Tensor> out =
      Call(graph, {I64({2, 2}, {1, 2, 3, 4}), F32({2, 0}, {}), F32({0, 1}, {}),
                   Tensor::Of(DType::kF64, {2, 1}, {0.5, 2})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].TypeString(), "i64[2,2]");
  EXPECT_THAT(out[0].ToVector(), ElementsAre(7, 10, 15, 22));
  EXPECT_EQ(out[1].TypeString(), "f32[2,1]");
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, 0));
  EXPECT_EQ(out[2].item(), 0);
  EXPECT_EQ(out[3].TypeString(), "f64[2,1]");
  EXPECT_THAT(out[3].ToVector(), ElementsAre(4.5, 9.5));
}

// Products are summed in f32: 2,048 + 1 is no f16.
TEST(TorchArrays, EinsumOfSixteenBits) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    FnGraph graph([](const Values& in) -> Values { return {einsum("i,i->", {in[0], in[0]})}; });
    std::vector<double> values(2051, 1);
    values[0] = 64;  // 4,096 + 2,050 = 6,146; of its neighbours f16 has 6,144 and 6,148
    const std::vector<Tensor> out = Call(graph, {Tensor::Of(dtype, {2051}, values)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].dtype(), dtype);
    EXPECT_NEAR(out[0].item(), 6146, dtype == DType::kF16 ? 2 : 16);
  }
}

TEST(TorchArrays, OfOneElementAndOfNone) {
  FnGraph graph([](const Values& in) -> Values {
    return {tile(in[0], {}),
            tile(in[0], {3}),
            repeat_interleave(in[0], 2),
            tile(in[1], {2, 2}),
            tile(in[0], {0}),
            pixel_shuffle(in[2], 2),
            pixel_unshuffle(in[2], 3),
            index_select(in[1], 1, in[3])};
  });
  const std::vector<Tensor> out =
      Call(graph, {F32({}, {7}), F32({0, 3}, {}), F32({0, 4, 3, 3}, {}), I64({2}, {2, 0})});
  ASSERT_EQ(out.size(), 8u);
  const char* types[] = {"f32[]",  "f32[3]",       "f32[2]",        "f32[0,6]",
                         "f32[0]", "f32[0,1,6,6]", "f32[0,36,1,1]", "f32[0,2]"};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i].TypeString(), types[i]) << i;
  EXPECT_THAT(out[1].ToVector(), ElementsAre(7, 7, 7));
}

TEST(TorchArrays, Arange) {
  FnGraph graph([](const Values&) -> Values {
    return {arange(3),
            arange(2, 5),
            arange(5, -2, -3),
            arange(1, 8, 3),
            arange(0),
            arange(4, 2),
            arange(kMostIndex - 1, kMostIndex),
            arange(kLeastIndex, kMostIndex, kMostIndex),
            arange(2, 2, kLeastIndex),
            arange(-3)};
  });
  const std::vector<Tensor> out = Call(graph, {});
  ASSERT_EQ(out.size(), 10u);
  EXPECT_EQ(out[0].TypeString(), "i64[3]");
  EXPECT_THAT(out[0].ToVector(), ElementsAre(0, 1, 2));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(2, 3, 4));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(5, 2, -1));
  EXPECT_THAT(out[3].ToVector(), ElementsAre(1, 4, 7));
  EXPECT_EQ(out[6].data<int64_t>()[0], kMostIndex - 1);
  ASSERT_EQ(out[7].num_elements(), 3);
  EXPECT_EQ(out[7].data<int64_t>()[1], -1);
  EXPECT_EQ(out[7].data<int64_t>()[2], kMostIndex - 1);
  for (int i : {4, 5, 8, 9}) EXPECT_EQ(out[i].TypeString(), "i64[0]") << i;
}

TEST(TorchArrays, LayersOfPixels) {
  Sequential net{PixelUnshuffle(2), PixelShuffle(2)};
  FnGraph graph([&](const Values& in) -> Values { return {net(in[0])}; });
  graph.add_module("net", net);
  EXPECT_THAT(Call1(graph, {F32({1, 1, 2, 2}, {1, 2, 3, 4})}), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(PixelShuffle(3).description(), "PixelShuffle(3)");
  EXPECT_EQ(PixelUnshuffle(3).description(), "PixelUnshuffle(3)");
}

TEST(TorchArrays, AnIndexOutOfRangeEndsTheRun) {
  FnGraph graph([](const Values& in) -> Values { return {index_select(in[0], 0, in[1])}; });
  EXPECT_THAT(Message(CallStatus(graph, {F32({2}, {0, 0}), I64({2}, {1, 2})})),
              HasSubstr("index 2"));
}

TEST(TorchArrays, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(Message(CallStatus(graph, {F32({2, 3}, {0, 0, 0, 0, 0, 0}), F32({3}, {0, 0, 0}),
                                           I64({1, 3}, {0, 0, 0})})),
                HasSubstr(message));
  };
#define HT_EXPECT(call, message) \
  expect([]([[maybe_unused]] const Values& in) -> Values { return {call}; }, message)
  HT_EXPECT(einsum("ij", {in[0], in[1]}),
            "einsum: \"ij\" has 1 terms; expected one for each of 2 operands");
  HT_EXPECT(einsum("i", {in[0]}), "einsum: a term names 1 axes of f32[2,3]; expected 2");
  HT_EXPECT(einsum("...ijk", {in[0]}), "einsum: a term names 3 axes of f32[2,3]; expected 2");
  HT_EXPECT(einsum("i%", {in[0]}), "einsum: term \"i%\"; expected letters and at most one \"...\"");
  HT_EXPECT(einsum("......", {in[0]}), "expected letters and at most one \"...\"");
  HT_EXPECT(einsum("ij->i->j", {in[0]}), "einsum: term \"i->j\"; expected letters");
  HT_EXPECT(einsum("ij,i", {in[0], in[1]}),
            "einsum: 'i' has extent 3 in f32[3]; expected 2, as before");
  HT_EXPECT(einsum("ii", {in[0]}), "einsum: 'i' has extent 3 in f32[2,3]; expected 2, as before");
  HT_EXPECT(einsum("...,...", {in[0], in[0] + in[0]}) + einsum("ij->ii", {in[0]}),
            "einsum: 'i' stands twice in the result");
  HT_EXPECT(einsum("ij->k", {in[0]}), "einsum: 'k' stands in the result alone");
  HT_EXPECT(tile(in[0], {2, -1}), "tile: -1 repeats of an extent of 3; expected 0..");
  HT_EXPECT(tile(in[0], {kMostIndex, 1}), "repeats of an extent of 2; expected 0..");
  HT_EXPECT(repeat(in[0], {2}), "repeat: 1 numbers for f32[2,3]; expected at least 2");
  HT_EXPECT(repeat(in[0], {1, 1, 1, 1, 1, 1, 1, 1, 1}), "reshape: ");
  HT_EXPECT(repeat_interleave(in[0], -1), "repeat_interleave: -1 repeats of an extent of 6");
  HT_EXPECT(repeat_interleave(in[0], 2, 2), "repeat_interleave: axis 2 out of range for f32[2,3]");
  HT_EXPECT(pixel_shuffle(in[0], 2), "pixel_shuffle: x is f32[2,3]; expected [..,C,H,W]");
  HT_EXPECT(pixel_shuffle(reshape(in[0], {6, 1, 1}), 2),
            "pixel_shuffle: x is f32[6,1,1]; expected channels (axis -3) divisible by 4");
  HT_EXPECT(pixel_shuffle(reshape(in[0], {6, 1, 1}), 0),
            "pixel_shuffle: upscale_factor is 0; expected 1..65536");
  HT_EXPECT(pixel_unshuffle(reshape(in[0], {1, 2, 3}), 2),
            "pixel_unshuffle: x is f32[1,2,3]; expected height and width divisible by 2");
  HT_EXPECT(index_select(in[0], 0, in[2]), "index_select: index is i64[1,3]; expected rank 0 or 1");
  HT_EXPECT(index_select(in[0], 2, in[2]), "index_select: ");
  HT_EXPECT(arange(0, 5, 0), "arange: step is 0; expected another number");
  HT_EXPECT(arange(kLeastIndex, kMostIndex, 1), "arange: 18446744073709551615 numbers from");
#undef HT_EXPECT
}

}  // namespace
}  // namespace halftone::nn
