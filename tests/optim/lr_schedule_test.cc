// Schedules: the host formula against numbers worked out by hand, the graph nodes against the host
// formula, the text form.
#include "halftone/optim/lr_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/optim/update_nodes.h"

namespace halftone::testing {
namespace {

using optim::CosineAnnealingWarmRestarts;
using optim::CosineLR;
using optim::LinearWarmup;
using optim::LRSchedule;
using optim::OneCycleLR;
using optim::PolynomialLR;
using optim::StepLR;

TEST(LRSchedule, ConstantByDefault) {
  EXPECT_TRUE(LRSchedule().constant());
  EXPECT_EQ(LRSchedule().At(0.3, 1000), 0.3);
  EXPECT_EQ(LRSchedule().ToString(), "");
}

TEST(LRSchedule, StepHalvesEveryTen) {
  const LRSchedule s = StepLR(10, 0.5);
  EXPECT_EQ(s.At(0.8, 0), 0.8);
  EXPECT_EQ(s.At(0.8, 9), 0.8);
  EXPECT_EQ(s.At(0.8, 10), 0.4);
  EXPECT_EQ(s.At(0.8, 29), 0.2);
}

TEST(LRSchedule, CosineGoesToEtaMinAndStays) {
  const LRSchedule s = CosineLR(4, 0.1);
  EXPECT_DOUBLE_EQ(s.At(1, 0), 1);
  EXPECT_DOUBLE_EQ(s.At(1, 1), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(s.At(1, 2), 0.55);
  EXPECT_DOUBLE_EQ(s.At(1, 4), 0.1);
  EXPECT_DOUBLE_EQ(s.At(1, 100), 0.1);
}

TEST(LRSchedule, WarmupIsPyTorchsLinearLR) {
  const LRSchedule s = LinearWarmup(4, 0.2);
  EXPECT_DOUBLE_EQ(s.At(1, 0), 0.2);
  EXPECT_DOUBLE_EQ(s.At(1, 1), 0.4);
  EXPECT_DOUBLE_EQ(s.At(1, 4), 1);
  EXPECT_DOUBLE_EQ(s.At(1, 9), 1);
  EXPECT_DOUBLE_EQ(LinearWarmup(4).At(3, 0), 1) << "PyTorch's start_factor is a third";
}

// The rates of torch 2.15 at base rate 0.1, steps from 0 (cycle_momentum=False).
struct Rates {
  LRSchedule schedule;
  std::vector<double> want;
};
const std::vector<Rates>& PyTorchRates() {
  static const auto* const rates = new std::vector<Rates>{
      {CosineAnnealingWarmRestarts(7),
       {0.1, 0.095048443, 0.08117449, 0.061126047, 0.038873953, 0.01882551, 0.0049515566,
        0.1, 0.095048443, 0.08117449, 0.061126047, 0.038873953, 0.01882551, 0.0049515566,
        0.1, 0.095048443, 0.08117449, 0.061126047, 0.038873953, 0.01882551, 0.0049515566,
        0.1, 0.095048443, 0.08117449, 0.061126047, 0.038873953, 0.01882551, 0.0049515566,
        0.1, 0.095048443, 0.08117449, 0.061126047, 0.038873953, 0.01882551}},
      {CosineAnnealingWarmRestarts(3, 2, 0.01),
       {0.1,         0.0775,      0.0325,      0.1,         0.093971143, 0.0775,      0.055,
        0.0325,      0.016028857, 0.1,         0.098466662, 0.093971143, 0.086819805, 0.0775,
        0.066646857, 0.055,       0.043353143, 0.0325,      0.023180195, 0.016028857, 0.011533338,
        0.1,         0.099615019, 0.098466662, 0.096574579, 0.093971143, 0.0907009,   0.086819805,
        0.082394264, 0.0775,      0.072220754, 0.066646857, 0.060873679, 0.055}},
      {CosineAnnealingWarmRestarts(2, 3),
       {0.1,         0.05,          0.1,         0.09330127,  0.075,       0.05,
        0.025,       0.0066987298,  0.1,         0.099240388, 0.096984631, 0.09330127,
        0.088302222, 0.08213938,    0.075,       0.067101007, 0.058682409, 0.05,
        0.041317591, 0.032898993,   0.025,       0.01786062,  0.011697778, 0.0066987298,
        0.003015369, 0.00075961235, 0.1,         0.099915408, 0.099661918, 0.099240388,
        0.098652244, 0.097899476,   0.096984631, 0.095910805}},
      {PolynomialLR(), {0.1, 0.08, 0.06, 0.04, 0.02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        0,   0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {PolynomialLR(30, 2),
       {0.1,
        0.093444444,
        0.087111111,
        0.081,
        0.075111111,
        0.069444444,
        0.064,
        0.058777778,
        0.053777778,
        0.049,
        0.044444444,
        0.040111111,
        0.036,
        0.032111111,
        0.028444444,
        0.025,
        0.021777778,
        0.018777778,
        0.016,
        0.013444444,
        0.011111111,
        0.009,
        0.0071111111,
        0.0054444444,
        0.004,
        0.0027777778,
        0.0017777778,
        0.001,
        0.00044444444,
        0.00011111111,
        0,
        0,
        0,
        0}},
      {OneCycleLR(0.5, 34),
       {0.02,        0.033857379, 0.07382929, 0.13529985,   0.21117056,   0.29268,     0.37041561,
        0.43540063,  0.48013071,  0.4994405,  0.49860739,   0.49297648,   0.48311812,  0.46920385,
        0.45147575,  0.43024227,  0.40587283, 0.37879143,   0.34946926,   0.31841647,  0.28617335,
        0.25330088,  0.220371,    0.18795664, 0.15662176,   0.12691156,   0.099342944, 0.074395572,
        0.052503496, 0.034047606, 0.01934901, 0.0086634432, 0.0021768205, 2e-06}},
      {OneCycleLR(0.5, 34,
                  {.pct_start = 0.4, .linear = true, .div_factor = 10, .final_div_factor = 100}),
       {0.05,       0.085714286, 0.12142857,  0.15714286,  0.19285714,  0.22857143, 0.26428571,
        0.3,        0.33571429,  0.37142857,  0.40714286,  0.44285714,  0.47857143, 0.49020588,
        0.46572059, 0.44123529,  0.41675,     0.39226471,  0.36777941,  0.34329412, 0.31880882,
        0.29432353, 0.26983824,  0.24535294,  0.22086765,  0.19638235,  0.17189706, 0.14741176,
        0.12292647, 0.098441176, 0.073955882, 0.049470588, 0.024985294, 0.0005}},
      {OneCycleLR(0.5, 34, {.three_phase = true}),
       {0.02,         0.033857379,   0.07382929,    0.13529985,   0.21117056,   0.29268,
        0.37041561,   0.43540063,    0.48013071,    0.4994405,    0.49110015,   0.45607277,
        0.39840328,   0.32475123,    0.24362182,    0.16438374,   0.096187246,  0.046907548,
        0.022235373,  0.019916782,   0.019413232,   0.018475562,  0.017147019,  0.015488881,
        0.013577625,  0.011501404,   0.00935598,    0.0072403064, 0.0052519642, 0.0034826619,
        0.0020140051, 0.00091373244, 0.00023259201, 2e-06}},
      {OneCycleLR(0.5, 34, {.pct_start = 0}),
       {0.49893355,  0.49574329,  0.49045645,  0.48311812,   0.47379093,   0.46255443,  0.44950451,
        0.43475249,  0.41842424,  0.40065906,  0.38160851,   0.36143514,   0.34031106,  0.31841647,
        0.2959382,   0.273068,    0.250001,    0.226934,     0.2040638,    0.18158553,  0.15969094,
        0.13856686,  0.11839349,  0.099342944, 0.081577763,  0.06524951,   0.050497491, 0.037447566,
        0.026211072, 0.016883875, 0.009545551, 0.0042587081, 0.0010684517, 2e-06}}};
  return *rates;
}

TEST(LRSchedule, RatesArePyTorchs) {
  for (const Rates& rates : PyTorchRates()) {
    ASSERT_TRUE(rates.schedule.Validate().ok()) << rates.schedule.Validate();
    ASSERT_EQ(rates.want.size(), 34u);
    for (size_t t = 0; t < rates.want.size(); ++t) {
      EXPECT_NEAR(rates.schedule.At(0.1, static_cast<int64_t>(t)), rates.want[t],
                  1e-7 * rates.want[t] + 1e-15)
          << rates.schedule.ToString() << " at " << t;
    }
  }
}

// Every boundary of a long run, at which a logarithm is a whole number, starts anew.
TEST(LRSchedule, RestartsAtEveryBoundary) {
  for (const int64_t factor : {2, 3, 7, 10}) {
    const LRSchedule s = CosineAnnealingWarmRestarts(5, factor);
    int64_t begin = 0, length = 5;
    while (begin < int64_t{1} << 40) {
      EXPECT_EQ(s.At(1, begin), 1) << factor << " at " << begin;
      if (begin > 0) {
        EXPECT_LT(s.At(1, begin - 1), 0.1) << factor << " before " << begin;
      }
      begin += length;
      length *= factor;
    }
  }
  for (const int64_t t : {int64_t{6}, int64_t{7'000'000}, int64_t{123'456'789'012}}) {
    const LRSchedule s = CosineAnnealingWarmRestarts(t);
    EXPECT_EQ(s.At(1, 3 * t), 1) << t;
  }
}

TEST(LRSchedule, StaysWhereItEnds) {
  EXPECT_NEAR(OneCycleLR(0.5, 34).At(9, 1'000'000), 2e-6, 1e-12);
  EXPECT_EQ(PolynomialLR(30, 2).At(1, 1'000'000), 0);
  EXPECT_DOUBLE_EQ(OneCycleLR(0.5, 10, {.pct_start = 1}).At(9, 20), 0.5);  // it only rises
  EXPECT_NEAR(OneCycleLR(0.5, 1).At(9, 0), 2e-6, 1e-15);
}

TEST(LRSchedule, ChainsApplyLeftToRight) {
  const LRSchedule s = CosineLR(4, 0.1) * LinearWarmup(2, 0.5);
  EXPECT_DOUBLE_EQ(s.At(1, 0), 0.5);
  EXPECT_DOUBLE_EQ(s.At(1, 4), 0.1);
  EXPECT_DOUBLE_EQ((LinearWarmup(2, 0.5) * CosineLR(4, 0.1)).At(1, 0), 0.5);
}

TEST(LRSchedule, TextIsAFixedPoint) {
  for (const LRSchedule& s :
       {LRSchedule(), StepLR(10, 0.5), StepLR(3), CosineLR(100), CosineLR(7, 1e-5), LinearWarmup(5),
        StepLR(2, 0.3) * LinearWarmup(500, 0.001), CosineAnnealingWarmRestarts(10),
        CosineAnnealingWarmRestarts(1'000'000, 3, 1e-5), PolynomialLR(), PolynomialLR(100, 0.9),
        OneCycleLR(0.1, 1000), OneCycleLR(0.1, 1000, {.linear = true, .div_factor = 10}),
        OneCycleLR(0.3, 7, {.pct_start = 0.5, .final_div_factor = 3, .three_phase = true})}) {
    absl::StatusOr<LRSchedule> parsed = LRSchedule::Parse(s.ToString());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, s) << s.ToString();
  }
  EXPECT_EQ((StepLR(10, 0.5) * LinearWarmup(5)).ToString(), "step(10,0.5)*warmup(5)");
  EXPECT_EQ(*LRSchedule::Parse("cosine(100,0.0)"), CosineLR(100, 0));
  EXPECT_EQ(CosineAnnealingWarmRestarts(1'000'000, 1, 0.5).ToString(), "restarts(1000000,1,0.5)");
  EXPECT_EQ(PolynomialLR().ToString(), "polynomial()");
  EXPECT_EQ(*LRSchedule::Parse("polynomial()"), PolynomialLR(5, 1));
  EXPECT_EQ(OneCycleLR(0.1, 1000, {.linear = true}).ToString(), "onecycle(0.1,1000,0.3,1)");
}

TEST(LRSchedule, BadTextNamesTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"linear(3)",
       "schedule \"linear(3)\", column 1: expected step(, cosine(, warmup(, restarts(, polynomial( "
       "or onecycle("},
      {"onecycle(0.1)", "schedule \"onecycle(0.1)\", column 13: expected ','"},
      {"onecycle(0.1,2.5)", "schedule \"onecycle(0.1,2.5)\", column 15: expected ','"},
      {"onecycle(0.1,0)", "OneCycleLR: total_steps = 0; expected > 0"},
      {"onecycle(-1,5)", "OneCycleLR: max_lr = -1; expected a number >= 0 that is finite in f32"},
      {"onecycle(1,5,1.5)", "OneCycleLR: pct_start = 1.5; expected 0..1"},
      {"onecycle(1,5,0.3,2)", "OneCycleLR: linear = 2; expected 0 or 1"},
      {"onecycle(1,5,0.3,0,0)",
       "OneCycleLR: div_factor = 0; expected a number > 0 that is finite in f32"},
      {"restarts(0)", "CosineAnnealingWarmRestarts: t_0 = 0; expected > 0"},
      {"restarts(5,0)", "CosineAnnealingWarmRestarts: t_mult = 0; expected > 0"},
      {"restarts(5,2,-1)",
       "CosineAnnealingWarmRestarts: eta_min = -1; expected a number >= 0 that is finite in f32"},
      {"polynomial(0)", "PolynomialLR: total_iters = 0; expected > 0"},
      {"polynomial(5,-1)",
       "PolynomialLR: power = -1; expected a number >= 0 that is finite in f32"},
      {"step(", "schedule \"step(\", column 6: expected a whole number"},
      {"step(3,x)", "schedule \"step(3,x)\", column 8: expected a number"},
      {"step(3", "schedule \"step(3\", column 7: expected ')'"},
      {"step(3)warmup(2)", "schedule \"step(3)warmup(2)\", column 8: expected '*'"},
      {"step(0,0.5)", "StepLR: step_size = 0; expected > 0"},
      {"cosine(3,-1)", "CosineLR: eta_min = -1; expected a number >= 0 that is finite in f32"},
      {"step(3,nan)", "StepLR: gamma = nan; expected a number >= 0 that is finite in f32"},
      {"warmup(3,1.5)", "LinearWarmup: start_factor = 1.5; expected 0..1"}};
  for (const auto& [text, message] : cases) {
    absl::Status status = LRSchedule::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(Message(status), message);
  }
}

// A whole number is kept as a double; beyond 2^53 it is 2^53, which no run gets to.
TEST(LRSchedule, StepsUpToTheLargest) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const std::pair<LRSchedule, const char*> cases[] = {
      {StepLR(kLargest), "step(9007199254740992)"},
      {CosineLR(kLargest), "cosine(9007199254740992)"},
      {LinearWarmup(kLargest, 0.5), "warmup(9007199254740992,0.5)"},
      {CosineAnnealingWarmRestarts(kLargest, kLargest),
       "restarts(9007199254740992,9007199254740992)"},
      {PolynomialLR(kLargest), "polynomial(9007199254740992)"},
      {OneCycleLR(0.5, kLargest), "onecycle(0.5,9007199254740992)"}};
  for (const auto& [schedule, text] : cases) {
    EXPECT_TRUE(schedule.Validate().ok()) << schedule.Validate();
    EXPECT_EQ(schedule.ToString(), text);
    EXPECT_EQ(*LRSchedule::Parse(text), schedule);
  }
  EXPECT_EQ(StepLR(kLargest).At(0.5, 1'000'000), 0.5);
  EXPECT_EQ(*LRSchedule::Parse("step(9223372036854775807)"), StepLR(kLargest));
  EXPECT_EQ(Message(StepLR(std::numeric_limits<int64_t>::min()).Validate()),
            "StepLR: step_size = -9007199254740992; expected > 0");
  EXPECT_EQ(Message(StepLR(-12345678).Validate()), "StepLR: step_size = -12345678; expected > 0");
}

TEST(LRSchedule, TermsMadeByHandAreChecked) {
  using Kind = LRSchedule::Kind;
  const LRSchedule short_one(LRSchedule::Term{Kind::kStep, {10.0}});
  EXPECT_EQ(Message(short_one.Validate()), "StepLR: 1 arguments; expected 2");
  EXPECT_EQ(short_one.ToString(), "step(10)");
  EXPECT_TRUE(std::isnan(short_one.At(0.5, 3)));
  const LRSchedule long_one(LRSchedule::Term{Kind::kWarmup, {10, 0.5, 1}});
  EXPECT_EQ(Message(long_one.Validate()), "LinearWarmup: 3 arguments; expected 2");
  EXPECT_EQ(Message(LRSchedule(LRSchedule::Term{Kind::kStep, {2.5, 1}}).Validate()),
            "StepLR: step_size = 2.5; expected a whole number");
  EXPECT_EQ(Message(LRSchedule(LRSchedule::Term{Kind::kStep, {1e30, 1}}).Validate()),
            "StepLR: step_size = 1e+30; expected at most 2^53");
  EXPECT_EQ(Message(LRSchedule(LRSchedule::Term{Kind::kStep, {std::nan(""), 1}}).Validate()),
            "StepLR: step_size = nan; expected > 0");
}

TEST(LRSchedule, F62AProductOfProductsIsAnErrorNotMemory) {
  LRSchedule s = StepLR(30);
  for (int i = 0; i < 8; ++i) s = s * s;
  EXPECT_TRUE(s.Validate().ok()) << s.Validate();
  EXPECT_EQ(s.terms().size(), 256u);
  const LRSchedule one_more = s * StepLR(30);
  EXPECT_EQ(Message(one_more.Validate()), "a product of 257 terms; expected at most 256");
  EXPECT_FALSE(one_more.constant());
  for (int i = 8; i < 60; ++i) s = s * s;
  EXPECT_EQ(s.Validate().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(s.Validate()), "a product of at least 1000000 terms; expected at most 256");
  EXPECT_EQ(s.terms().size(), 0u);

  std::string text = "step(30)";
  for (int i = 0; i < 300; ++i) text += "*step(30)";
  EXPECT_EQ(Message(LRSchedule::Parse(text).status()),
            "a product of 301 terms; expected at most 256");
}

// The nodes for `schedule`, evaluated.
float FromNodes(const LRSchedule& schedule, double base_lr, int64_t steps) {
  ir::Graph graph;
  ir::Builder b(&graph);
  ir::Expr lr = optim::LearningRateNodes(schedule, b.Scalar(DType::kF32, base_lr),
                                         b.Scalar(DType::kI64, static_cast<double>(steps)));
  EXPECT_TRUE(b.status().ok()) << b.status();
  std::map<const ir::Node*, Tensor> values;
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> inputs;
    for (ir::Value v : node->inputs()) inputs.push_back(values.at(v.node));
    auto outputs = kernels::ReferenceEvaluator().Evaluate(*node, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    values[node.get()] = (*outputs)[0];
  }
  return values.at(lr.value().node).data<float>()[0];
}

TEST(LearningRateNodes, AgreeWithTheHostFormulaInF32) {
  for (const LRSchedule& s :
       {LRSchedule(), StepLR(3, 0.7), CosineLR(10, 1e-4), LinearWarmup(5, 0.1),
        CosineLR(50, 1e-4) * LinearWarmup(7), CosineAnnealingWarmRestarts(4, 1, 1e-4),
        CosineAnnealingWarmRestarts(4, 3) * LinearWarmup(7), PolynomialLR(10, 0.9),
        OneCycleLR(0.3, 12), OneCycleLR(0.3, 12, {.linear = true, .three_phase = true}),
        OneCycleLR(0.3, 12, {.pct_start = 0})}) {
    for (int64_t t : {0, 1, 2, 3, 4, 5, 9, 10, 11, 1000, 20000000}) {
      const float base = 0.1f;
      EXPECT_FLOAT_EQ(FromNodes(s, base, t), static_cast<float>(s.At(base, t)))
          << s.ToString() << " at " << t;
    }
  }
}

}  // namespace
}  // namespace halftone::testing
