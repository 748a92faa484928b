// amp::GradScaler: PyTorch's names and defaults, validation, state dictionaries.
#include "halftone/optim/grad_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/graph/ir/builder.h"

namespace halftone::testing {
namespace {

using amp::GradScaler;
using amp::GradScalerOptions;
using amp::StateDict;

void ExpectInvalid(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_EQ(Message(status), message);
}

TEST(GradScaler, DefaultsArePyTorchs) {
  const StateDict dict = GradScaler().state_dict();
  EXPECT_EQ(dict.at("scale"), 65536);
  EXPECT_EQ(dict.at("growth_factor"), 2);
  EXPECT_EQ(dict.at("backoff_factor"), 0.5);
  EXPECT_EQ(dict.at("growth_interval"), 2000);
  EXPECT_EQ(dict.at("_growth_tracker"), 0);
  for (const auto& [key, value] : dict) {
    if (key == "scale" || key == "growth_factor" || key == "backoff_factor" ||
        key == "growth_interval" || key == "_growth_tracker") {
      continue;
    }
    EXPECT_THAT(key, ::testing::StartsWith("halftone."));
  }
  EXPECT_EQ(dict.at("halftone.min_scale"), 1);
  EXPECT_EQ(dict.at("halftone.max_scale"), std::numeric_limits<float>::max());
}

TEST(GradScaler, ValidationNamesOptionAndRange) {
  const double inf = std::numeric_limits<double>::infinity();
  auto check = [](GradScalerOptions options) { return GradScaler(options).Validate(); };
  EXPECT_TRUE(check({}).ok());
  EXPECT_TRUE(check({.init_scale = 0.5, .min_scale = 0.25}).ok());
  ExpectInvalid(check({.growth_factor = 1}), "GradScaler: growth_factor = 1; expected > 1");
  ExpectInvalid(check({.growth_factor = inf}), "GradScaler: growth_factor = inf; expected > 1");
  ExpectInvalid(check({.backoff_factor = 1}),
                "GradScaler: backoff_factor = 1; expected 0 < factor < 1");
  ExpectInvalid(check({.backoff_factor = 0}),
                "GradScaler: backoff_factor = 0; expected 0 < factor < 1");
  ExpectInvalid(check({.growth_interval = 0}),
                "GradScaler: growth_interval = 0; expected 1 to 2147483647");
  const std::string scale = "; expected a finite f32 > 0 whose inverse is finite";
  ExpectInvalid(check({.init_scale = 0}), "GradScaler: init_scale = 0" + scale);
  ExpectInvalid(check({.init_scale = -2}), "GradScaler: init_scale = -2" + scale);
  ExpectInvalid(check({.init_scale = 1e39}), "GradScaler: init_scale = 1e+39" + scale);
  ExpectInvalid(check({.init_scale = std::nan("")}), "GradScaler: init_scale = nan" + scale);
  ExpectInvalid(check({.min_scale = 1e-40}), "GradScaler: min_scale = 1e-40" + scale);
  ExpectInvalid(check({.max_scale = 0.5}),
                "GradScaler: max_scale = 0.5; expected a finite f32 >= min_scale");
  ExpectInvalid(check({.hysteresis = 0}), "GradScaler: hysteresis = 0; expected 1 to 2147483647");
  ExpectInvalid(check({.max_consecutive_skips = -1}),
                "GradScaler: max_consecutive_skips = -1; expected >= 0 (0: no limit)");
}

TEST(GradScaler, ModesAndMarker) {
  EXPECT_STREQ(GradScaler().mode(), "dynamic");
  EXPECT_STREQ(GradScaler({.dynamic = false}).mode(), "static");
  EXPECT_STREQ(GradScaler({.enabled = false}).mode(), "disabled");
  ir::Graph graph;
  ir::Builder b(&graph);
  const GradScaler scaler({.init_scale = 128, .growth_interval = 5, .hysteresis = 2});
  ir::Node* marker = b.Root("scaler", {}, scaler.ToMarker("mine", /*automatic=*/true));
  ASSERT_NE(marker, nullptr) << b.status();
  EXPECT_EQ(marker->attrs().GetString("name"), "mine");
  EXPECT_TRUE(marker->attrs().GetBool("automatic"));
  EXPECT_EQ(marker->attrs().GetFloat("init_scale"), 128);
  EXPECT_EQ(marker->attrs().GetInt("growth_interval"), 5);
  EXPECT_EQ(marker->attrs().GetInt("hysteresis"), 2);
}

TEST(GradScaler, StateDictRestoresExactly) {
  GradScaler saved({.init_scale = 3,
                    .growth_factor = 1.7,
                    .backoff_factor = 0.3,
                    .growth_interval = 11,
                    .dynamic = false,
                    .min_scale = 0.125,
                    .max_scale = 1e30,
                    .hysteresis = 4,
                    .max_consecutive_skips = 9});
  saved.set_state({.scale = 0.1f,
                   .growth_tracker = 7,
                   .hysteresis_left = 2,
                   .total_steps = int64_t{1} << 40,
                   .skipped_steps = 12,
                   .consecutive_skips = 3});
  GradScaler loaded;
  ASSERT_TRUE(loaded.load_state_dict(saved.state_dict()).ok());
  EXPECT_EQ(loaded.state(), saved.state());
  EXPECT_EQ(loaded.state_dict(), saved.state_dict());
  EXPECT_STREQ(loaded.mode(), "static");
}

TEST(GradScaler, AcceptsPyTorchsDictionary) {
  GradScaler scaler({.hysteresis = 3});
  ASSERT_TRUE(scaler
                  .load_state_dict({{"scale", 512},
                                    {"growth_factor", 2},
                                    {"backoff_factor", 0.5},
                                    {"growth_interval", 100},
                                    {"_growth_tracker", 42}})
                  .ok());
  EXPECT_EQ(scaler.state().scale, 512);
  EXPECT_EQ(scaler.state().growth_tracker, 42);
  EXPECT_EQ(scaler.state().hysteresis_left, 3);
  EXPECT_EQ(scaler.options().growth_interval, 100);
}

TEST(GradScaler, AnIntervalBelowTheTrackerIsAccepted) {
  GradScaler scaler;
  StateDict dict = scaler.state_dict();
  dict["growth_interval"] = 5;
  dict["_growth_tracker"] = 8;
  EXPECT_TRUE(scaler.load_state_dict(dict).ok()) << "the next finite step grows";
}

TEST(GradScaler, BadDictionariesChangeNothing) {
  const StateDict good = GradScaler().state_dict();
  auto load = [&](const char* key, double value) {
    StateDict dict = good;
    dict[key] = value;
    GradScaler scaler({.init_scale = 7});
    absl::Status status = scaler.load_state_dict(dict);
    EXPECT_EQ(scaler.state().scale, 7);
    return status;
  };
  ExpectInvalid(load("growth_factor", 0.5), "GradScaler: growth_factor = 0.5; expected > 1");
  ExpectInvalid(load("scale", 0),
                "GradScaler: scale = 0; expected a finite f32 > 0 whose inverse is finite");
  ExpectInvalid(
      load("scale", 0x1p-140),  // kept in f32, exactly
      "GradScaler: scale = 7.17465e-43; expected a finite f32 > 0 whose inverse is finite");
  ExpectInvalid(load("_growth_tracker", 1.5),
                "GradScaler: state \"_growth_tracker\" = 1.5; "
                "expected a whole number from 0 to 2.14748e+09");
  ExpectInvalid(load("halftone.color", 1),
                "GradScaler: state has an unknown key \"halftone.color\"");
  GradScaler scaler;
  ExpectInvalid(scaler.load_state_dict({{"scale", 2}}),
                "GradScaler: state has no \"growth_factor\"; expected PyTorch's five keys");
}

TEST(GradScaler, DisabledHasNoState) {
  GradScaler scaler({.enabled = false});
  EXPECT_TRUE(scaler.state_dict().empty());
  EXPECT_TRUE(scaler.load_state_dict({}).ok());
}

TEST(GradScaler, StateTravelsThroughTensors) {
  GradScaler a;
  a.set_state({.scale = 2.5f, .growth_tracker = 3, .total_steps = 1000000000000});
  std::map<std::string, Tensor> tensors = a.StateTensors("s");
  EXPECT_EQ(tensors.size(), 6u);
  EXPECT_EQ(tensors.at("s.scale").dtype(), DType::kF32);
  EXPECT_EQ(tensors.at("s.growth_tracker").dtype(), DType::kI32);
  EXPECT_EQ(tensors.at("s.total_steps").dtype(), DType::kI64);
  GradScaler b;
  ASSERT_TRUE(b.SetStateTensors("s", tensors).ok());
  EXPECT_EQ(b.state(), a.state());
  const absl::Status absent = b.SetStateTensors("t", tensors);
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(absent), "GradScaler: no variable \"t.scale\"");
  tensors["s.scale"] = Tensor::Scalar(DType::kI64, 1);
  ExpectInvalid(b.SetStateTensors("s", tensors),
                "GradScaler: variable \"s.scale\" is i64[]; expected f32[]");
}

TEST(GradScaler, TooManySkipsAreAnError) {
  EXPECT_TRUE(amp::CheckConsecutiveSkips("s", 1000, 0, "").ok());
  EXPECT_TRUE(amp::CheckConsecutiveSkips("s", 4, 4, "w").ok());
  absl::Status status = amp::CheckConsecutiveSkips("s", 5, 4, "fc1.weight");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "s: 5 steps in a row were skipped; limit 4; first non-finite gradient: fc1.weight");
}

}  // namespace
}  // namespace halftone::testing
