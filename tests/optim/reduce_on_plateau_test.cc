// ReduceLROnPlateau against what torch 2.15 gives for the same metrics.
#include "halftone/optim/reduce_on_plateau.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace halftone::testing {
namespace {

using optim::PlateauMode;
using optim::PlateauState;
using optim::PlateauThreshold;
using optim::ReduceLROnPlateau;
using optim::ReduceLROnPlateauOptions;

// 34 metrics: better, as good, better by too little, worse, not a number, equal for long.
std::vector<double> Metrics() {
  std::vector<double> metrics = {5,   4,   4.2, 4.1, 4.0, 3.9999, 3.9,          3.9, 3.95,   4,
                                 4.5, 3.0, 3.5, 3.5, 3.5, 3.5,    std::nan(""), 2.9, 2.89999};
  metrics.resize(34, 2.8);
  return metrics;
}

struct Run {
  ReduceLROnPlateauOptions options;
  std::vector<double> want;  // rates after each metric, from 0.1
  PlateauState end;
};

void ExpectFollows(const Run& run) {
  const ReduceLROnPlateau plateau(run.options);
  ASSERT_TRUE(plateau.Validate().ok()) << plateau.Validate();
  PlateauState state = plateau.Start();
  double lr = 0.1;
  const std::vector<double> metrics = Metrics();
  ASSERT_EQ(run.want.size(), metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (plateau.Step(metrics[i], state)) lr = plateau.Reduced(lr);
    EXPECT_NEAR(lr, run.want[i], 1e-7 * run.want[i]) << i;
  }
  EXPECT_EQ(state, run.end);
}

TEST(ReduceLROnPlateau, DefaultsArePyTorchs) {
  const ReduceLROnPlateauOptions o;
  EXPECT_EQ(o.mode, PlateauMode::kMin);
  EXPECT_EQ(o.factor, 0.1);
  EXPECT_EQ(o.patience, 10);
  EXPECT_EQ(o.threshold, 1e-4);
  EXPECT_EQ(o.threshold_mode, PlateauThreshold::kRel);
  EXPECT_EQ(o.cooldown, 0);
  EXPECT_EQ(o.min_lr, 0);
  EXPECT_EQ(o.eps, 1e-8);
}

TEST(ReduceLROnPlateau, Patience) {
  ExpectFollows({{.patience = 2},
                 {0.1,  0.1,  0.1,  0.1,  0.01, 0.01, 0.01, 0.01, 0.01, 1e-3, 1e-3, 1e-3,
                  1e-3, 1e-3, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-5, 1e-5,
                  1e-5, 1e-6, 1e-6, 1e-6, 1e-7, 1e-7, 1e-7, 1e-8, 1e-8, 1e-8},
                 {2.8, 2, 0}});
}

TEST(ReduceLROnPlateau, OfPyTorchsDefaults) {
  std::vector<double> want(30, 0.1);
  want.resize(34, 0.01);
  ExpectFollows({{}, want, {2.8, 3, 0}});
}

TEST(ReduceLROnPlateau, HighestWithCooldownAndFloor) {
  std::vector<double> want = {0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025};
  want.resize(34, 0.02);
  ExpectFollows(
      {{.mode = PlateauMode::kMax, .factor = 0.5, .patience = 1, .cooldown = 2, .min_lr = 0.02},
       want,
       {5, 1, 0}});
}

TEST(ReduceLROnPlateau, AbsoluteThreshold) {
  ExpectFollows(
      {{.factor = 0.5,
        .patience = 3,
        .threshold = 0.15,
        .threshold_mode = PlateauThreshold::kAbs,
        .cooldown = 1},
       {0.1,     0.1,      0.1,      0.1,      0.1,      0.05,     0.05,     0.05,    0.05,
        0.05,    0.025,    0.025,    0.025,    0.025,    0.025,    0.0125,   0.0125,  0.0125,
        0.0125,  0.0125,   0.0125,   0.0125,   0.0125,   0.00625,  0.00625,  0.00625, 0.00625,
        0.00625, 0.003125, 0.003125, 0.003125, 0.003125, 0.003125, 0.0015625},
       {2.8, 0, 1}});
}

TEST(ReduceLROnPlateau, LeavesSmallReductionsOut) {
  std::vector<double> want(5, 0.1);
  want.resize(34, 0.01);
  ExpectFollows({{.mode = PlateauMode::kMax,
                  .patience = 4,
                  .threshold = 0.1,
                  .threshold_mode = PlateauThreshold::kAbs,
                  .eps = 0.05},
                 want,
                 {5, 3, 0}});
}

TEST(ReduceLROnPlateau, ErrorsNameOptionAndRange) {
  const auto message = [](const ReduceLROnPlateauOptions& options) {
    return Message(ReduceLROnPlateau(options).Validate());
  };
  EXPECT_EQ(message({.factor = 1}), "ReduceLROnPlateau: factor = 1; expected 0 <= factor < 1");
  EXPECT_EQ(message({.patience = -1}), "ReduceLROnPlateau: patience = -1; expected >= 0");
  EXPECT_EQ(message({.cooldown = -2}), "ReduceLROnPlateau: cooldown = -2; expected >= 0");
  EXPECT_EQ(message({.threshold = std::nan("")}),
            "ReduceLROnPlateau: threshold = nan; expected a number >= 0 that is finite in f32");
  EXPECT_EQ(message({.min_lr = -0.5}),
            "ReduceLROnPlateau: min_lr = -0.5; expected a number >= 0 that is finite in f32");
  EXPECT_EQ(message({.eps = 1e39}),
            "ReduceLROnPlateau: eps = 1e+39; expected a number >= 0 that is finite in f32");
}

}  // namespace
}  // namespace halftone::testing
