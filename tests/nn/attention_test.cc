// nn::scaled_dot_product_attention: beside PyTorch's numbers, what it refuses, dropout, mixed
// precision, and that its memory grows with the positions, not with their square.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::kInf;

// ((i step + offset) mod 11 - 5) / 4, exact in any dtype.
Tensor Pattern(const Shape& shape, int64_t step, int64_t offset, DType dtype = DType::kF64) {
  Tensor t = Tensor::Empty(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.set(i, static_cast<double>((i * step + offset) % 11 - 5) / 4);
  }
  return t;
}

struct Sizes {
  int64_t heads, key_heads, length, keys, columns, v_columns;
};

// y, dq, dk, dv and, for a mask of numbers, its gradient; of loss = sum(y dy).
std::vector<Tensor> Attend(const Sizes& s, DType dtype, const AttentionOptions& options,
                           const Tensor* mask = nullptr) {
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = mask == nullptr
                        ? scaled_dot_product_attention(in[0], in[1], in[2], options)
                        : scaled_dot_product_attention(in[0], in[1], in[2], in[4], options);
    std::vector<Value> wrt = {in[0], in[1], in[2]};
    if (mask != nullptr && IsFloat(mask->dtype())) wrt.push_back(in[4]);
    Values out = gradients(sum(y * in[3]), wrt);
    Values all{y};
    for (const Value& v : out) all.push_back(v);
    return all;
  });
  std::vector<Tensor> in = {Pattern({1, s.heads, s.length, s.columns}, 7, 0, dtype),
                            Pattern({1, s.key_heads, s.keys, s.columns}, 3, 1, dtype),
                            Pattern({1, s.key_heads, s.keys, s.v_columns}, 4, 2, dtype),
                            Pattern({1, s.heads, s.length, s.v_columns}, 5, 3, dtype)};
  if (mask != nullptr) in.push_back(*mask);
  return Call(graph, in);
}

void ExpectAttention(const Tensor& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.num_elements(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.at(static_cast<int64_t>(i)), want[i], tolerance) << i;
  }
}

// Runs in each dtype: f64 by reference kernels, the others by the CPU's.
void ExpectInAllDTypes(const Sizes& s, const AttentionOptions& options, const Tensor* mask,
                       const std::vector<std::vector<double>>& want) {
  for (const auto& [dtype, tolerance] :
       {std::pair(DType::kF64, 1e-11), std::pair(DType::kF32, 2e-6), std::pair(DType::kF16, 2e-3),
        std::pair(DType::kBF16, 1.5e-2)}) {
    SCOPED_TRACE(Name(dtype));
    // A mask of numbers is as wide as the sums.
    const bool wide = mask != nullptr && dtype == DType::kF64 && IsFloat(mask->dtype());
    const Tensor own = wide ? mask->To(DType::kF64) : Tensor();
    const std::vector<Tensor> got = Attend(s, dtype, options, wide ? &own : mask);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(i);
      ExpectAttention(got[i], want[i], tolerance);
    }
  }
}

// The literals: PyTorch 2.15, torch.nn.functional.scaled_dot_product_attention in f64 with
// torch.autograd.grad, rounded to 12 digits.

TEST(Attention, CausalIsPyTorchs) {
  ExpectInAllDTypes({2, 2, 3, 3, 2, 2}, {.is_causal = true}, nullptr,
                    {{-0.75, 0.25, 0.628020043481, -0.266757516305, 0.177016218973, -0.474660272457,
                      -0.25, 0.75, -0.882116673012, 0.117883326988, 0.088555880464, 0.08325181991},
                     {0.0, 0.0, -0.426137217807, -0.426137217807, -0.302434250788, -0.302434250788,
                      0.0, 0.0, 0.087817967576, -0.105381561091, 0.231909167227, -0.089477340717},
                     {-0.063804916515, 0.120391879911, 0.097207053662, -0.220598291352,
                      -0.033402137147, 0.100206411441, -0.01364693844, 0.33572795865,
                      0.099471329328, 0.093393995793, -0.085824390889, -0.429121954443},
                     {-1.132632850448, 1.005342580818, -0.751763086191, 0.403256403342,
                      -0.365604063362, 0.09140101584, -0.576960248878, -0.277578212067,
                      1.211395135949, -0.289639231469, 0.365565112929, -0.182782556464}});
}

TEST(Attention, AMaskOfNumbersIsPyTorchs) {
  const Tensor mask = Tensor::Of(DType::kF32, {2, 3}, {0.5, -1, 0, 0, -kInf, 0.25});
  ExpectInAllDTypes(
      {1, 1, 2, 3, 2, 1}, {}, &mask,
      {{-0.037256163855, 0.438991648798},
       {-0.046438046853, -0.046438046853, 0.063923479872, 0.063923479872},
       {-0.065170703515, -0.242410334057, 0.007834514202, -0.003133805681, 0.057336189314,
        0.245544139737},
       {-0.002257622413, -0.0308565737, 0.283114196113},
       {0.218374557727, -0.008863740991, -0.209510816737, -0.361605808757, 0.0, 0.361605808757}});
}

// The second query sees no key: zeros, and no gradient.
TEST(Attention, ABoolMaskIsPyTorchs) {
  const Tensor mask = Tensor::Of(DType::kBool, {2, 3}, {1, 0, 1, 0, 0, 0});
  ExpectInAllDTypes({1, 1, 2, 3, 2, 1}, {}, &mask,
                    {{0.183805675211, 0.0},
                     {-0.044000528715, -0.044000528715, 0.0, 0.0},
                     {-0.220002643575, 0.08800105743, 0.0, 0.0, 0.220002643575, -0.08800105743},
                     {-0.266548581197, 0.0, -0.233451418803}});
}

TEST(Attention, GroupedHeadsArePyTorchs) {
  ExpectInAllDTypes(
      {4, 2, 2, 3, 2, 2}, {.scale = 0.3, .enable_gqa = true}, nullptr,
      {{0.231148902538, -0.484571208928, 0.442496980737, -0.512544897963, 0.264235677942,
        -0.490004678135, 0.47976909248, -0.516020287383, -0.325246994353, 0.003465106067,
        0.00707052049, 0.031675232277, 0.033060491446, 0.0, 0.059862574285, -0.031675232277},
       {-0.081810473561, -0.081810473561, -0.118711307436, -0.118711307436, -0.139722032007,
        -0.139722032007, -0.186913490063, -0.186913490063, 0.194025046917, -0.158521505829,
        0.129139414548, -0.073984103152, 0.108534770591, -0.050425117947, 0.087688651336,
        -0.027395796816},
       {-0.043159638883, 0.099337594029, -0.056812129693, -0.04773475885, 0.099971768576,
        -0.051602835179, -0.142982856109, 0.10528649864, 0.065451610077, 0.014619387199,
        0.077531246032, -0.119905885839},
       {-1.109775074304, 0.517137777466, -1.264817430991, 0.476121744787, -1.125407494704,
        0.506740477748, 1.166917247225, -0.897075593528, 1.193057503847, -0.685887026782,
        1.140025248928, -0.91703737969}});
}

// One key has all the weight, whatever its score: y is its value, the gradient of that is dy.
TEST(Attention, OneKey) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto got = Attend({1, 1, 2, 1, 3, 1}, dtype, {.scale = 1e4});
    ASSERT_EQ(got.size(), 4u);
    EXPECT_THAT(got[0].ToVector(), ElementsAre(-0.75, -0.75));  // Pattern(.., 4, 2)[0]
    EXPECT_THAT(got[1].ToVector(), ::testing::Each(0));
    EXPECT_THAT(got[3].ToVector(), ElementsAre(-0.5 + 0.75));  // the sum of Pattern(.., 5, 3)
  }
}

// Scores of 1e4 and more, whose exponentials no f32 holds: the largest has all the weight.
TEST(Attention, LargeScores) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = scaled_dot_product_attention(in[0], in[1], in[2], {.scale = 1.0});
    const Values d = gradients(sum(y), {in[0], in[1], in[2]});
    return {y, d[0], d[1], d[2]};
  });
  const auto got =
      Call(graph, {F32({2, 1}, {1e4, -1e4}), F32({3, 1}, {1, 2, -3}), F32({3, 1}, {5, 6, 7})});
  ASSERT_EQ(got.size(), 4u);
  EXPECT_THAT(got[0].ToVector(), ElementsAre(6, 7));
  EXPECT_THAT(got[1].ToVector(), ElementsAre(0, 0));
  EXPECT_THAT(got[2].ToVector(), ElementsAre(0, 0, 0));
  EXPECT_THAT(got[3].ToVector(), ElementsAre(0, 1, 1));
}

// Leading extents broadcast, as in PyTorch; with one key the result is the value's rows.
TEST(Attention, LeadingAxesBroadcast) {
  FnGraph graph([](const Values& in) -> Values {
    return {scaled_dot_product_attention(in[0], in[1], in[2])};
  });
  const auto got = Call(graph, {Tensor::Zeros(DType::kF32, {2, 1, 1, 2}),
                                Tensor::Zeros(DType::kF32, {3, 1, 2}), F32({1, 1, 1}, {4})});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].shape(), (Shape{2, 3, 1, 1}));
  EXPECT_THAT(got[0].ToVector(), ::testing::Each(4));
}

std::string ErrorOf(const Shape& q, const Shape& k, const Shape& v,
                    const AttentionOptions& options = {}) {
  FnGraph graph([&](const Values& in) -> Values {
    return {scaled_dot_product_attention(in[0], in[1], in[2], options)};
  });
  const absl::Status status =
      CallStatus(graph, {Tensor::Zeros(DType::kF32, q), Tensor::Zeros(DType::kF32, k),
                         Tensor::Zeros(DType::kF32, v)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return Message(status);
}

TEST(Attention, Errors) {
  EXPECT_THAT(ErrorOf({1, 4, 2, 8}, {1, 2, 3, 8}, {1, 2, 3, 8}),
              HasSubstr("scaled_dot_product_attention: key has 2 heads in [1,2,3,8]; expected 4 as "
                        "query [1,4,2,8], or enable_gqa"));
  EXPECT_THAT(ErrorOf({1, 4, 2, 8}, {1, 3, 3, 8}, {1, 3, 3, 8}, {.enable_gqa = true}),
              HasSubstr("expected a divisor of the 4 heads of query"));
  EXPECT_THAT(ErrorOf({2, 8}, {3, 7}, {3, 8}),
              HasSubstr("key is f32[3,7]; expected last extent 8"));
  EXPECT_THAT(ErrorOf({2, 8}, {3, 8}, {3, 8}, {.dropout_p = 1.0}),
              HasSubstr("dropout_p is 1; expected 0 <= dropout_p < 1"));
}

// With values of 1 a row of y is the sum of its kept weights over 1 - p: 1 on average, other numbers
// in the next step, and exactly 1 in evaluation mode.
TEST(Attention, DropoutIsOfTrainingMode) {
  FnGraph graph([](const Values& in) -> Values {
    return {scaled_dot_product_attention(in[0], in[0], in[1], {.dropout_p = 0.25})};
  });
  const std::vector<Tensor> in = {
      Tensor::Zeros(DType::kF32, {64, 400, 4}),
      Tensor::Of(DType::kF32, {64, 400, 1}, std::vector<double>(64 * 400, 1))};
  const auto first = Call1(graph, in), second = Call1(graph, in);
  double mean = 0;
  for (double y : first) mean += y / static_cast<double>(first.size());
  EXPECT_NEAR(mean, 1, 1e-3);  // 10^7 weights: a standard error of 2e-4
  EXPECT_NE(first, second);
  graph.eval();
  for (double y : Call1(graph, in)) EXPECT_NEAR(y, 1, 1e-5);
}

// In 16 bit the mask keeps its range: -1e9 on every key is -1e9 for all alike, not "no key".
TEST(Attention, MixedPrecisionKeepsTheMask) {
  FnGraph graph([](const Values& in) -> Values {
    return {scaled_dot_product_attention(in[0], in[1], in[2], in[3])};
  });
  graph.config.enable_amp(true, {.dtype = DType::kF16});
  const auto got =
      Call(graph, {Tensor::Zeros(DType::kF32, {1, 2}), Tensor::Zeros(DType::kF32, {2, 2}),
                   F32({2, 1}, {1, 3}), F32({1, 2}, {-1e9, -1e9})});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_THAT(got[0].ToVector(), ElementsAre(2));
  EXPECT_THAT(graph.amp_summary(), HasSubstr("1 of 1 nodes in 16 bit"));
}

// -1e9 on each of 8 keys, beside which the scores are lost: every weight is 1 / 8. With y = mean(v)
// and dy = 16: dv = dy / 8, ds_j = (v_j - mean(v)) dy / 8, dq = sum of ds_j k_j, dk_j = ds_j q.
TEST(Attention, ALargeNumberOnEveryKeyLeavesEqualWeights) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = scaled_dot_product_attention(in[0], in[1], in[2], in[3], {.scale = 1.0});
    const Values d = gradients(sum(y * 16.0), {in[0], in[1], in[2], in[3]});
    return {y, d[0], d[1], d[2], d[3]};
  });
  const auto got = Call(graph, {F32({1, 1}, {0.5}), F32({8, 1}, {1, -1, 0, 0, 0, 0, 0, 2}),
                                F32({8, 1}, {0, 1, 2, 3, 4, 5, 6, 11}),
                                F32({1, 8}, {-1e9, -1e9, -1e9, -1e9, -1e9, -1e9, -1e9, -1e9})});
  ASSERT_EQ(got.size(), 5u);
  ExpectAttention(got[0], {4}, 1e-6);
  ExpectAttention(got[1], {-8 + 6 + 28}, 1e-5);
  ExpectAttention(got[2], {-4, -3, -2, -1, 0, 1, 2, 7}, 1e-5);
  ExpectAttention(got[3], {2, 2, 2, 2, 2, 2, 2, 2}, 1e-5);
  ExpectAttention(got[4], {-8, -6, -4, -2, 0, 2, 4, 14}, 1e-5);  // 2 (v - 4)
}

// Working memory of a step and its gradients over `positions`.
size_t ArenaBytes(int64_t positions) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
    const Values d = gradients(sum(y), {in[0], in[1], in[2]});
    return {sum(d[0]), sum(d[1]), sum(d[2])};
  });
  const Tensor x = Tensor::Zeros(DType::kF32, {1, 2, positions, 16});
  EXPECT_EQ(Call(graph, {x, x, x}).size(), 3u);
  return graph.arena_bytes();
}

TEST(Attention, MemoryIsLinearInThePositions) {
  const size_t some = ArenaBytes(2048), twice = ArenaBytes(4096);
  EXPECT_GT(some, 0u);
  EXPECT_LT(static_cast<double>(twice), 2.1 * static_cast<double>(some));
  // Less than one matrix of scores.
  EXPECT_LT(twice, size_t{4096} * 4096 * sizeof(float));
}

}  // namespace
}  // namespace halftone::nn
