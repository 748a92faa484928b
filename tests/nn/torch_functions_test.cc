// Functions that are formulas of others beside PyTorch's (2.15, in f64): values, and gradients of
// the sum of y, 2 y, 3 y, .. over the elements of y.
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

const std::vector<TorchRow>& FunctionRows() {
  static const auto* const rows = new std::vector<TorchRow>{
      {"var",
       HT_CALL(var(in[0], 1)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {4.27, 2.263333333333333},
       {{-2.3, 0.6000000000000001, 1.7, -0.2666666666666666, 3.1333333333333333,
         -2.8666666666666667}}},
      {"var, biased",
       HT_CALL(var(in[0], {}, 0)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {2.2780555555555555},
       {{-0.8722222222222222, 0.09444444444444446, 0.4611111111111111, 0.061111111111111116,
         0.6277777777777778, -0.37222222222222223}}},
      {"std",
       HT_CALL(std(in[0], 0, 1, true)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {1.9798989873223332, 1.131370849898476, 1.7677669529663689},
       {{-0.7071067811865474, -1.414213562373095, 2.1213203435596424, 0.7071067811865475,
         1.4142135623730951, -2.1213203435596424}}},
      {"norm",
       HT_CALL(norm(in[0], 2, 1)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {2.9427877939124323, 2.2561028345356955},
       {{-0.849534582538231, 0.13592553320611697, 0.5097207495229387, 0.26594532430676177,
         1.772968828711745, -0.8864844143558726}}},
      {"1-norm",
       HT_CALL(norm(in[0], 1, 0)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {2.8, 2.4, 2.5},
       {{-1, 2, 3, 1, 2, -3}}},
      {"3-norm",
       HT_CALL(norm(in[0], 3, 1)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {2.671394391057723, 2.082161830251021},
       {{-0.8757980982013626, 0.022420431313954884, 0.3152873153524905, 0.041518680563330426,
         1.8452746917035747, -0.4613186729258937}}},
      {"norm, infinite",
       HT_CALL(norm(in[0], kInf, 1)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {2.5, 2},
       {{-1, 0, 0, 0, 2, -0}}},
      {"norm, -infinite",
       HT_CALL(norm(in[0], -kInf, 1)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {0.4, 0.3},
       {{-0, 1, 0, 2, 0, -0}}},
      {"0-norm",
       HT_CALL(norm(in[0], 0, 1)),
       {F32({2, 3}, {0, 1, 2, 0, 0, 3})},
       {2, 1},
       {{0, 0, 0, 0, 0, 0}}},
      {"1.5-norm",
       HT_CALL(norm(in[0], 1.5, 1)),
       {F32({1, 3}, {0, 1, 2})},
       {2.4472608147714756},
       {{0, 0.6392340078652324, 0.9040134034531213}}},
      {"norm of zeros", HT_CALL(norm(in[0])), {F32({2}, {0, 0})}, {0}, {{0, 0}}},
      {"logsumexp",
       HT_CALL(logsumexp(in[0], 1)),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {1.800983260076861, 2.20902076654506},
       {{0.013555224146718479, 0.24635461415784637, 0.7400901616954351, 0.2964509257684443,
         1.622756771885289, 0.08079230234626708}}},
      {"logsumexp, large",
       HT_CALL(logsumexp(in[0], 0)),
       {F32({3}, {1000, 1000, 998})},
       {1000.7586236756795},
       {{0.4683105308335, 0.4683105308335, 0.06337893833304016}}},
      {"binary_cross_entropy, mean",
       HT_CALL(binary_cross_entropy(in[0], in[1], std::nullopt, "mean")),
       {F32({3}, {0.1, 0.6, 0.9}), F32({3}, {0, 1, 0.25})},
       {0.789821696027936},
       {{0.3703703703703703, -0.5555555555555556, 2.407407407407408}, {0, 0, 0}}},
      {"binary_cross_entropy, sum",
       HT_CALL(binary_cross_entropy(in[0], in[1], std::nullopt, "sum")),
       {F32({3}, {0.1, 0.6, 0.9}), F32({3}, {0, 1, 0.25})},
       {2.3694650880838077},
       {{1.111111111111111, -1.6666666666666667, 7.222222222222224}, {0, 0, 0}}},
      {"binary_cross_entropy, none",
       HT_CALL(binary_cross_entropy(in[0], in[1], std::nullopt, "none")),
       {F32({3}, {0.1, 0.6, 0.9}), F32({3}, {0, 1, 0.25})},
       {0.10536051565782631, 0.5108256237659907, 1.753278948659991},
       {{1.111111111111111, -3.3333333333333335, 21.66666666666667}, {0, 0, 0}}},
      {"binary_cross_entropy, weighted",
       HT_CALL(binary_cross_entropy(in[0], in[1], in[2])),
       {F32({3}, {0.1, 0.6, 0.9}), F32({3}, {0, 1, 0.25}), F32({3}, {1, 2, 3})},
       {2.1289495363899267},
       {{0.3703703703703703, -1.1111111111111112, 7.222222222222224}, {0, 0, 0}, {0, 0, 0}}},
      {"binary_cross_entropy_with_logits",
       HT_CALL(binary_cross_entropy_with_logits(in[0], in[1], std::nullopt, "none")),
       {F32({3}, {-30, 0.4, 25}), F32({3}, {0, 1, 1})},
       {9.237055564881302e-14, 0.5130152523999526, 1.3887943864867583e-11},
       {{9.357622968839299e-14, -0.802624679775096, -4.1664005578923025e-11}, {0, 0, 0}}},
      {"binary_cross_entropy_with_logits, weighted",
       HT_CALL(binary_cross_entropy_with_logits(in[0], in[1], in[2], "mean", in[3])),
       {F32({3}, {-1, 0.4, 2}), F32({3}, {0, 1, 0.25}), F32({3}, {1, 2, 3}), F32({3}, {2, 0.5, 3})},
       {1.9658176632038504},
       {{0.08964714045666504, -0.133770779962516, 0.5711956169668235},
        {0, 0, 0},
        {0, 0, 0},
        {0, 0, 0}}},
      {"nll_loss",
       HT_CALL(nll_loss(in[0], in[1])),
       {F32({3, 3}, {-1, -0.5, -2, -0.3, -1.5, -3, -2, -0.2, -0.7}), I64({3}, {2, 0, 1})},
       {0.8333333333333334},
       {{0, 0, -0.3333333333333333, -0.3333333333333333, 0, 0, 0, -0.3333333333333333, 0}}},
      {"nll_loss, weighted",
       HT_CALL(nll_loss(in[0], in[1], in[2])),
       {F32({3, 3}, {-1, -0.5, -2, -0.3, -1.5, -3, -2, -0.2, -0.7}), I64({3}, {2, 0, 1}),
        F32({3}, {1, 2, 4})},
       {1.2428571428571427},
       {{0, 0, -0.5714285714285714, -0.14285714285714285, 0, 0, 0, -0.2857142857142857, 0},
        {0, 0, 0}}},
      {"nll_loss, ignored",
       HT_CALL(nll_loss(in[0], in[1], in[2], 0)),
       {F32({3, 3}, {-1, -0.5, -2, -0.3, -1.5, -3, -2, -0.2, -0.7}), I64({3}, {2, 0, 1}),
        F32({3}, {1, 2, 4})},
       {1.4000000000000001},
       {{0, 0, -0.6666666666666666, 0, 0, 0, 0, -0.3333333333333333, 0}, {0, 0, 0}}},
      {"nll_loss, none",
       HT_CALL(nll_loss(in[0], in[1], std::nullopt, -100, "none")),
       {F32({3, 3}, {-1, -0.5, -2, -0.3, -1.5, -3, -2, -0.2, -0.7}), I64({3}, {2, -100, 1})},
       {2, 0, 0.2},
       {{0, 0, -1, 0, 0, 0, 0, -3, 0}}},
      {"nll_loss, axes behind",
       HT_CALL(nll_loss(in[0], in[1], std::nullopt, -100, "sum")),
       {F32({1, 3, 3}, {-1, -0.5, -2, -0.3, -1.5, -3, -2, -0.2, -0.7}), I64({1, 3}, {2, 0, 1})},
       {5.5},
       {{0, -1, 0, 0, 0, -1, -1, 0, 0}}},
      {"nll_loss, of one",
       HT_CALL(nll_loss(in[0], in[1])),
       {F32({3}, {-1, -0.5, -2}), I64({}, {2})},
       {2},
       {{0, 0, -1}}},
      {"kl_div",
       HT_CALL(kl_div(in[0], in[1], "sum")),
       {F32({3}, {-1, -0.5, -2}), F32({3}, {0.2, 0.5, 0})},
       {-0.21846117276679272},
       {{-0.2, -0.5, -0}, {0, 0, 0}}},
      {"kl_div, batchmean",
       HT_CALL(kl_div(in[0], in[1], "batchmean")),
       {F32({2, 3}, {-1, -0.5, -2, -0.3, -1.5, -3}), F32({2, 3}, {0.2, 0.5, 0, 0.1, 0.1, 0.8})},
       {0.8612534837915152},
       {{-0.1, -0.25, -0, -0.05, -0.05, -0.4}, {0, 0, 0, 0, 0, 0}}},
      {"kl_div, log_target",
       HT_CALL(kl_div(in[0], in[1], "none", true)),
       {F32({3}, {-1, -0.5, -2}), F32({3}, {-1.2, -0.6, -3})},
       {-0.0602388423824404, -0.05488116360940263, -0.049787068367863944},
       {{-0.3011942119122021, -1.0976232721880528, -0.14936120510359183}, {0, 0, 0}}},
      {"smooth_l1_loss",
       HT_CALL(smooth_l1_loss(in[0], in[1], "none", 2)),
       {F32({3}, {-3, 0.5, 2}), F32({3}, {0, 1, 0})},
       {2, 0.0625, 1},
       {{-1, -0.5, 3}, {1, 0.5, -3}}},
      {"smooth_l1_loss, beta 0",
       HT_CALL(smooth_l1_loss(in[0], in[1], "mean", 0)),
       {F32({3}, {-3, 0.5, 2}), F32({3}, {0, 1, 0})},
       {1.8333333333333333},
       {{-0.3333333333333333, -0.3333333333333333, 0.3333333333333333},
        {0.3333333333333333, 0.3333333333333333, -0.3333333333333333}}},
      {"huber_loss",
       HT_CALL(huber_loss(in[0], in[1], "none", 2)),
       {F32({3}, {-3, 0.5, 2}), F32({3}, {0, 1, 0})},
       {4, 0.125, 2},
       {{-2, -1, 6}, {2, 1, -6}}},
      {"hinge_embedding_loss",
       HT_CALL(hinge_embedding_loss(in[0], in[1])),
       {F32({3}, {0.5, 0.25, 3}), I64({3}, {1, -1, -1})},
       {0.4166666666666667},
       {{0.3333333333333333, -0.3333333333333333, 0}}},
      {"cosine_similarity",
       HT_CALL(cosine_similarity(in[0], in[1])),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1}), F32({2, 3}, {1, 2, 3, -1, 0.5, 2})},
       {0.2542933876859272, -0.2514807862161761},
       {{0.16422939834879655, 0.16989248105047916, 0.2284110023011998, -0.3572494167193676,
         0.39107409553641415, 0.674973366057018},
        {-0.24521148098285828, -6.938893903907228e-18, 0.08173716032761943, 0.020265850903867663,
         0.8216881366477257, -0.19528910870999755}}},
      {"cosine_similarity, broadcast",
       HT_CALL(cosine_similarity(in[0], in[1], -1)),
       {F32({2}, {3, 4}), F32({2, 2}, {1, 3, 2, -1})},
       {0.9486832980505139, 0.1788854381999831},
       {{0.2642419286692763, -0.19818144650195724},
        {0.09486832980505137, -0.03162277660168378, 0.39354796403996295, 0.7870959280799259}}},
      {"cosine_embedding_loss",
       HT_CALL(cosine_embedding_loss(in[0], in[1], in[2], -0.9, "none")),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1}), F32({2, 3}, {1, 2, 3, -1, 0.5, 2}),
        I64({2}, {1, -1})},
       {0.7457066123140967, 0.6485192137838726},
       {{-0.1642293983487727, -0.16989248105046467, -0.22841100230118355, -0.3572494167193043,
         0.3910740955362997, 0.6749733660569068},
        {0.24521148098283407, -2.6020852139652106e-15, -0.08173716032761569, 0.020265850903881985,
         0.8216881366475576, -0.19528910870999627}}},
      {"triplet_margin_loss",
       HT_CALL(triplet_margin_loss(in[0], in[1], in[2], 1, 2, 1e-6, false, "none")),
       {F32({2, 2}, {1, 2, 0, 1}), F32({2, 2}, {1.5, 2.5, 3, 1.5}), F32({2, 2}, {1.5, 2, 0.5, 2})},
       {1.2071063669719853, 2.923347467247112},
       {{0.29289321881145247, -0.7071087811905474, -1.0783614610713332, 1.4600572983463984},
        {0.7071067811865475, 0.7071067811865475, 1.9727879365285663, 0.32879744142459605},
        {-0.9999999999979999, 2.0000040000039997e-06, -0.894426475457233, -1.7888547397709944}}},
      {"triplet_margin_loss, swap",
       HT_CALL(triplet_margin_loss(in[0], in[1], in[2], 0.5, 1, 1e-6, true)),
       {F32({2, 2}, {1, 2, 0, 1}), F32({2, 2}, {1.5, 2, 3, 1}), F32({2, 2}, {1, 2.5, 2, 2})},
       {1},
       {{-1, 1, -0.5, 0.5}, {0.5, -0.5, 0, 0}, {0.5, -0.5, 0.5, -0.5}}},
      {"stack",
       HT_CALL(stack({in[0], in[1]}, -1)),
       {F32({2}, {1, 2}), F32({2}, {3, 4})},
       {1, 3, 2, 4},
       {{1, 3}, {2, 4}}},
      {"split",
       HT_CALL(split(in[0], {1, 2}, 1)[1]),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {0.4, 1.5, 2, -1},
       {{0, 1, 2, 0, 3, 4}}},
      {"chunk",
       HT_CALL(chunk(in[0], 2, 1)[1]),
       {F32({2, 3}, {-2.5, 0.4, 1.5, 0.3, 2, -1})},
       {1.5, -1},
       {{0, 0, 1, 0, 0, 2}}},
  };
  return *rows;
}

TEST(TorchFunctions, ValuesAndGradients) {
  for (const TorchRow& row : FunctionRows()) ExpectAsInTorch(row);
}

// What a sigmoid rounds away stays: e^-30 and e^-25.
TEST(TorchFunctions, SmallLossesKeepTheirDigits) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = binary_cross_entropy_with_logits(in[0], in[1], std::nullopt, "none");
    return {y, gradients(sum(y), {in[0]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({2}, {-30, 25}), F32({2}, {0, 1})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_NEAR(out[0].at(0) / 9.357622968839299e-14, 1, 1e-5);
  EXPECT_NEAR(out[0].at(1) / 1.3887943864867583e-11, 1, 1e-5);
  EXPECT_NEAR(out[1].at(0) / 9.357622968839299e-14, 1, 1e-5);
  EXPECT_NEAR(out[1].at(1) / -1.3887943864867583e-11, 1, 1e-5);
}

TEST(TorchFunctions, BinaryCrossEntropyIsBounded) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = binary_cross_entropy(in[0], in[1], std::nullopt, "none");
    return {y, gradients(sum(y), {in[0]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({4}, {0, 0, 1, 1}), F32({4}, {0, 1, 0, 1})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(0, 100, 100, 0));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(out[1].at(i)));
}

TEST(TorchFunctions, InfinitiesOfLogsumexp) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = logsumexp(in[0], 1);
    return {y, gradients(sum(y), {in[0]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({3, 2}, {-kInf, -kInf, kInf, 1, -kInf, 2})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(-kInf, kInf, 2));
  for (int i : {0, 1, 4}) EXPECT_EQ(out[1].at(i), 0);
  EXPECT_EQ(out[1].at(5), 1);
}

// 300^2 is no f16, and neither is e^12.
TEST(TorchFunctions, SixteenBitValuesComputeInF32) {
  FnGraph graph([](const Values& in) -> Values {
    return {std(in[0]), norm(in[0]), logsumexp(in[1], 0), cosine_similarity(in[0], in[0], 0),
            smooth_l1_loss(in[0], in[1])};
  });
  const std::vector<Tensor> out = Call(
      graph, {Tensor::Of(DType::kF16, {2}, {-300, 300}), Tensor::Of(DType::kF16, {2}, {12, 12})});
  ASSERT_EQ(out.size(), 5u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i].dtype(), DType::kF16);
  EXPECT_NEAR(out[0].item(), 424.264, 0.2);
  EXPECT_NEAR(out[1].item(), 424.264, 0.2);
  EXPECT_NEAR(out[2].item(), 12.6931, 0.01);
  EXPECT_EQ(out[3].item(), 1);
  EXPECT_EQ(out[4].dtype(), DType::kF32);
  EXPECT_NEAR(out[4].item(), 299.5, 1e-3);  // (311.5 + 287.5) / 2
}

TEST(TorchFunctions, OfOneElementAndOfNone) {
  FnGraph graph([](const Values& in) -> Values {
    return {var(in[0]), std(in[0], {}, 0), norm(in[1]), huber_loss(in[1], in[1], "sum")};
  });
  const std::vector<Tensor> out = Call(graph, {F32({1}, {3}), F32({0}, {})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_TRUE(std::isnan(out[0].item()));
  EXPECT_EQ(out[1].item(), 0);
  EXPECT_EQ(out[2].item(), 0);
  EXPECT_EQ(out[3].item(), 0);
}

TEST(TorchFunctions, OneHot) {
  FnGraph graph([](const Values& in) -> Values { return {one_hot(in[0], 3)}; });
  const std::vector<Tensor> out = Call(graph, {I64({2}, {2, 0})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].TypeString(), "i64[2,3]");
  EXPECT_THAT(out[0].ToVector(), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(TorchFunctions, PartsOfAnAxis) {
  FnGraph graph([](const Values& in) -> Values {
    Values all = split(in[0], 2);
    for (const Value& part : chunk(in[0], 4)) all.push_back(part);
    return all;
  });
  const std::vector<Tensor> out = Call(graph, {F32({5}, {0, 1, 2, 3, 4})});
  ASSERT_EQ(out.size(), 6u);
  for (int first : {0, 3}) {
    EXPECT_THAT(out[first].ToVector(), ElementsAre(0, 1));
    EXPECT_THAT(out[first + 1].ToVector(), ElementsAre(2, 3));
    EXPECT_THAT(out[first + 2].ToVector(), ElementsAre(4));
  }
}

TEST(TorchFunctions, NllLossNamesATargetThatIsNoClass) {
  FnGraph graph([](const Values& in) -> Values { return {nll_loss(in[0], in[1])}; });
  EXPECT_FALSE(CallStatus(graph, {F32({1, 2}, {-1, -2}), I64({1}, {2})}).ok());
  EXPECT_FALSE(CallStatus(graph, {F32({1, 2}, {-1, -2}), I64({1}, {-1})}).ok());
  EXPECT_TRUE(std::isnan(Call1(graph, {F32({1, 2}, {-1, -2}), I64({1}, {-100})}).at(0)));
}

TEST(TorchFunctions, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(Message(CallStatus(graph, {F32({2, 3}, {0, 0, 0, 0, 0, 0}), F32({3}, {0, 0, 0}),
                                           I64({3}, {0, 0, 0})})),
                HasSubstr(message));
  };
#define HT_EXPECT(call, message) expect([](const Values& in) -> Values { return {call}; }, message)
  HT_EXPECT(smooth_l1_loss(in[0], in[1]),
            "smooth_l1_loss: target is f32[3]; expected the shape of x, [2,3]");
  HT_EXPECT(smooth_l1_loss(in[0], in[0], "mean", -1),
            "smooth_l1_loss: beta is -1; expected at least 0");
  HT_EXPECT(huber_loss(in[0], in[0], "mean", 0), "huber_loss: delta is 0; expected above 0");
  HT_EXPECT(huber_loss(in[0], in[0], "average"),
            "huber_loss: reduction \"average\"; expected \"mean\", \"sum\" or \"none\"");
  HT_EXPECT(kl_div(in[0], in[0], "average"),
            "expected \"mean\", \"sum\", \"batchmean\" or \"none\"");
  HT_EXPECT(binary_cross_entropy(in[0], in[1]), "binary_cross_entropy: target is f32[3]");
  HT_EXPECT(binary_cross_entropy_with_logits(in[1], in[0]),
            "binary_cross_entropy_with_logits: target is f32[2,3]; expected the shape of x, [3]");
  HT_EXPECT(nll_loss(in[0], in[2]), "nll_loss: target is i64[3]; expected i64 or i32 of shape [2]");
  HT_EXPECT(nll_loss(in[1], in[2]), "nll_loss: target is i64[3]; expected i64 or i32 of shape []");
  HT_EXPECT(nll_loss(in[2], in[2]), "nll_loss: x is i64[3]; expected a floating-point value");
  HT_EXPECT(hinge_embedding_loss(in[0], in[1]), "hinge_embedding_loss: target is f32[3]");
  HT_EXPECT(cosine_similarity(in[0], in[1], 2),
            "cosine_similarity: axis 2 out of range for f32[2,3]");
  HT_EXPECT(cosine_embedding_loss(in[0], in[0], in[2]),
            "cosine_embedding_loss: target is i64[3]; expected the shape of x, [2]");
  HT_EXPECT(triplet_margin_loss(in[0], in[0], in[0], 0),
            "triplet_margin_loss: margin is 0; expected above 0");
  HT_EXPECT(var(in[2]), "var: x is i64[3]; expected a floating-point value");
  HT_EXPECT(var(in[0], 2), "var: axis 2 out of range for f32[2,3]; expected -2..1");
  HT_EXPECT(norm(in[0], std::nan("")), "norm: p is nan; expected a number");
  HT_EXPECT(one_hot(in[2], 0), "one_hot: num_classes is 0; expected at least 1");
  HT_EXPECT(one_hot(in[1], 2), "one_hot: x is f32[3]; expected i64 or i32");
  HT_EXPECT(stack({in[0], in[1]}), "stack: f32[3]; expected the shape of the first, [2,3]");
  HT_EXPECT(stack({in[0] - in[0]}, 4), "unsqueeze: ");
  HT_EXPECT(stack(std::vector<Value>(in.size() - 3)), "stack: no values; expected at least one");
  HT_EXPECT(split(in[0], 0)[0], "split: size is 0; expected at least 1");
  HT_EXPECT(split(in[0], {1, 1}, 1)[0],
            "split: sizes [1,1]; expected some that add up to 3, axis 1 of f32[2,3]");
  HT_EXPECT(chunk(in[0], 0)[0], "chunk: chunks is 0; expected at least 1");
#undef HT_EXPECT
}

}  // namespace
}  // namespace halftone::nn
