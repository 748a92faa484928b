// The scale and growth tracker of a grad scaler beside PyTorch's, step by step over 10,000 steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::nn {
namespace {

using testing::kInf;

constexpr int kTrajectorySteps = 10000;

struct LoadedOptions {
  double growth_factor, backoff_factor;
  int64_t growth_interval;
};

struct Trajectory {
  double growth_factor, backoff_factor;
  int64_t growth_interval;
  uint64_t rate;  // bad steps of 10,000
  uint64_t seed;
  std::optional<LoadedOptions> loaded;  // before step 5,000
  // What PyTorch has after the last step, and a hash over all steps.
  double scale;
  int64_t tracker, skipped;
  uint64_t digest;
};

bool IsBadStep(uint64_t step, uint64_t seed, uint64_t rate) {
  uint64_t x = step * 0x9E3779B97F4A7C15u + seed * 0xBF58476D1CE4E5B9u;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBu;
  x ^= x >> 29;
  return x % 10000 < rate;
}

// FNV-1a over the bits of every scale and growth tracker.
void AddToDigest(uint64_t& digest, double scale, int64_t tracker) {
  const auto scale32 = static_cast<float>(scale);
  const auto tracker32 = static_cast<int32_t>(tracker);
  unsigned char bytes[8];
  std::memcpy(bytes, &scale32, 4);
  std::memcpy(bytes + 4, &tracker32, 4);
  for (const unsigned char byte : bytes) digest = (digest ^ byte) * 0x100000001B3u;
}

class ScalerTrajectory : public ::testing::TestWithParam<Trajectory> {};

TEST_P(ScalerTrajectory, IsPyTorchs) {
  const Trajectory& expected = GetParam();
  Parameter w(Shape{1}, {ir::Initializer::Kind::kConstant, 0, 0});
  FnGraph graph([&](const Values& in) -> Values {
    sum(w * in[0]).backward();
    return {};
  });
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD({w}, {.lr = 0}));
  // PyTorch's scale has no floor.
  ScalerHandle scaler =
      graph.set_grad_scaler(amp::GradScaler({.growth_factor = expected.growth_factor,
                                             .backoff_factor = expected.backoff_factor,
                                             .growth_interval = expected.growth_interval,
                                             .min_scale = std::numeric_limits<float>::min()}));
  const Tensor good = F32({1}, {1}), bad = F32({1}, {kInf});
  uint64_t digest = 0xCBF29CE484222325u;
  for (uint64_t step = 0; step < kTrajectorySteps; ++step) {
    if (step == kTrajectorySteps / 2 && expected.loaded.has_value()) {
      amp::StateDict state = *scaler.state_dict();
      state["growth_factor"] = expected.loaded->growth_factor;
      state["backoff_factor"] = expected.loaded->backoff_factor;
      state["growth_interval"] = static_cast<double>(expected.loaded->growth_interval);
      ASSERT_TRUE(scaler.load_state_dict(state).ok());
    }
    ASSERT_TRUE(graph({IsBadStep(step, expected.seed, expected.rate) ? bad : good}).ok());
    AddToDigest(digest, scaler.scale(), scaler.growth_tracker());
  }
  EXPECT_EQ(scaler.scale(), expected.scale);
  EXPECT_EQ(scaler.growth_tracker(), expected.tracker);
  EXPECT_EQ(scaler.skipped_count(), expected.skipped);
  EXPECT_EQ(digest, expected.digest);
}

// Written by torch_grad_scaler.py, torch 2.15.0. Where Halftone differs on purpose has tests of its
// own: the floor (F31 in loss_scaling_test.cc), an interval that is set below the tracker
// (scaler_scenarios_test.cc).
INSTANTIATE_TEST_SUITE_P(
    Recorded, ScalerTrajectory,
    ::testing::Values(
        Trajectory{2.0, 0.5, 1, 4500, 1, std::nullopt, 0x1p+115, 0, 4486, 0x3d22ce2b6ae6a6d2u},
        Trajectory{2.0, 0.5, 2, 2000, 2, std::nullopt, 0x1p+123, 1, 1943, 0xfbf7655c6db18912u},
        Trajectory{2.0, 0.5, 2000, 4, 3, std::nullopt, 0x1p+19, 631, 1, 0x332067e87e8ab38eu},
        Trajectory{1.5, 0.75, 2, 3000, 4, std::nullopt, 0x1.42c3040000000p+127, 1, 2941,
                   0xcabc42228da6f42bu},
        Trajectory{2.0, 0.5, 2, 2000, 5, LoadedOptions{4.0, 0.25, 3}, 0x1p+125, 1, 2063,
                   0xdefd3df8b6b249f7u},
        Trajectory{2.0, 0.5, 2000, 4, 6, LoadedOptions{1.25, 0.9, 2500}, 0x1.9000000000000p+14,
                   1221, 3, 0x585ae1f86498e6b3u}));

}  // namespace
}  // namespace halftone::nn
