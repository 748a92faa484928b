// Shapes and refusals of losses, optimizer updates, loss scaling and markers.
#include <gtest/gtest.h>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

using Strings = std::vector<std::string>;

TEST(CrossEntropyInference, DropsTheClassAxis) {
  EXPECT_EQ(Infer("cross_entropy", "f16[4,10] i64[4]"), "f32[] f32[2,4]");
  EXPECT_EQ(Infer("cross_entropy", "f32[2,5,3,4] i32[2,3,4]", {{"reduction", std::string("none")}}),
            "f32[2,3,4] f32[2,2,3,4]");
  EXPECT_EQ(Infer("cross_entropy", "f64[10] i64[]", {{"axis", int64_t{-1}}}), "f64[] f64[2]");
  EXPECT_EQ(Infer("cross_entropy_grad", "bf16[4,10] i64[4] f32[2,4] f32[]"), "bf16[4,10]");
}

TEST(CrossEntropyInference, Refuses) {
  EXPECT_EQ(Infer("cross_entropy", "f32[4,10] i64[5]"),
            "cross_entropy: target is i64[5]; expected i64[4] (logits f32[4,10] without axis 1)");
  EXPECT_EQ(Infer("cross_entropy", "f32[4,10] f32[4]"),
            "cross_entropy: input 1 (target) is f32[4]; expected i64 i32");
  EXPECT_EQ(Infer("cross_entropy", "f32[10] i64[]"),
            "cross_entropy: axis 1 out of range for f32[10]; expected -1..0");
  EXPECT_EQ(Infer("cross_entropy", "f32[4,0] i64[4]"),
            "cross_entropy: logits is f32[4,0] with class axis 1; expected one class or more");
  EXPECT_EQ(Infer("cross_entropy", "f32[4,10] i64[4]", {{"label_smoothing", -0.1}}),
            "cross_entropy: label_smoothing is -0.1; expected 0..1");
  EXPECT_EQ(Infer("cross_entropy", "f32[4,10] i64[4]", {{"reduction", std::string("max")}}),
            "cross_entropy: reduction is \"max\"; expected one of \"none\", \"sum\", \"mean\"");
  EXPECT_EQ(Infer("cross_entropy_grad", "f16[4,10] i64[4] f32[2,4] f32[4]"),
            "cross_entropy_grad: dloss is f32[4]; expected f32[] (type of the loss)");
}

TEST(RegressionInference, DoesNotBroadcast) {
  EXPECT_EQ(Infer("mse_loss", "f16[2,3] f16[2,3]"), "f32[]");
  EXPECT_EQ(Infer("l1_loss", "f64[2,3] f64[2,3]", {{"reduction", std::string("none")}}),
            "f64[2,3]");
  EXPECT_EQ(Infer("mse_loss", "f32[2,3] f32[3]"),
            "mse_loss: b is f32[3]; expected f32[2,3] (type of a)");
}

constexpr const char* kUpdateScalars = " f32[] f32[] f32[] bool[] i64[]";

TEST(UpdateInference, SgdHasABufferExactlyWithMomentum) {
  const std::string plain = std::string("f32[3] f32[3]") + kUpdateScalars;
  EXPECT_EQ(Infer("sgd_update", plain), "f32[3]");
  EXPECT_EQ(Infer("sgd_update", plain + " f32[3]", {{"momentum", 0.9}}), "f32[3] f32[3]");
  EXPECT_EQ(
      Infer("sgd_update", plain, {{"momentum", 0.9}}),
      "sgd_update: momentum is 0.9 and momentum_buf is absent; expected a buffer exactly with "
      "momentum above 0");
  EXPECT_EQ(Infer("sgd_update", plain + " f32[3]"),
            "sgd_update: momentum is 0 and momentum_buf is given; expected a buffer exactly with "
            "momentum above 0");
  EXPECT_EQ(Infer("sgd_update", plain + " f32[3] f32[3] f32[3]", {{"momentum", 0.9}}),
            "sgd_update: got 10 inputs; expected 7..9");
  EXPECT_EQ(Infer("sgd_update", plain + " f32[2]", {{"momentum", 0.9}}),
            "sgd_update: momentum_buf is f32[2]; expected f32[3] (type of param)");
  EXPECT_EQ(
      Infer("sgd_update", plain + " f32[3]",
            {{"momentum", 0.9}, {"nesterov", true}, {"dampening", 0.5}}),
      "sgd_update: nesterov with momentum 0.9 and dampening 0.5; expected momentum above 0 and "
      "dampening 0");
  EXPECT_EQ(Infer("sgd_update", plain, {{"weight_decay", -1.0}}),
            "sgd_update: weight_decay is -1; expected 0 or more");
  EXPECT_EQ(Infer("sgd_update", std::string("f32[3] f32[2]") + kUpdateScalars),
            "sgd_update: grad is f32[2]; expected f32[3] (type of param)");
  EXPECT_EQ(Infer("sgd_update", "f32[3] f32[3] f32[1] f32[] f32[] bool[] i64[]"),
            "sgd_update: lr is f32[1]; expected f32[] (one number)");
}

TEST(UpdateInference, Adam) {
  const std::string inputs = std::string("f32[3] f32[3]") + kUpdateScalars + " f32[3] f32[3]";
  EXPECT_EQ(Infer("adam_update", inputs), "f32[3] f32[3] f32[3]");
  EXPECT_EQ(Infer("adam_update", inputs, {{"beta2", 1.0}}),
            "adam_update: beta2 is 1; expected 0 or more and below 1");
  EXPECT_EQ(Infer("adam_update", inputs, {{"eps", -1e-8}}),
            "adam_update: eps is -1e-08; expected 0 or more");
  EXPECT_EQ(Infer("adam_update", std::string("f16[3] f16[3]") + kUpdateScalars + " f16[3] f16[3]"),
            "adam_update: input 0 (param) is f16[3]; expected f64 f32 bf16");
}

TEST(UpdateInference, OfRows) {
  const std::string scalars = kUpdateScalars;
  const std::string inputs = "f32[9,4] f32[3,4]" + scalars + " i64[3]";
  EXPECT_EQ(Infer("sgd_update_rows", inputs), "f32[9,4]");
  EXPECT_EQ(Infer("adagrad_update_rows", inputs + " f32[9,4]"), "f32[9,4] f32[9,4]");
  EXPECT_EQ(Infer("adam_update_rows", inputs + " f32[9,4] f32[9,4]"), "f32[9,4] f32[9,4] f32[9,4]");
  EXPECT_EQ(Infer("adagrad_update_rows", inputs + " f32[3,4]"),
            "adagrad_update_rows: sum is f32[3,4]; expected f32[9,4] (type of param)");
  EXPECT_EQ(
      Infer("sgd_update_rows", "f32[9,4] f32[9,4]" + scalars + " i64[3]"),
      "sgd_update_rows: grad is f32[9,4]; expected f32[3,4] (a row of param for each of ids)");
  EXPECT_EQ(Infer("sgd_update_rows", "f32[9] f32[3]" + scalars + " i64[3]"),
            "sgd_update_rows: param is f32[9]; expected rank 2");
  EXPECT_EQ(Infer("sgd_update_rows", "f32[9,4] f32[3,4]" + scalars + " i64[3,1]"),
            "sgd_update_rows: ids is i64[3,1]; expected rank 1");
  EXPECT_EQ(
      Infer("sgd_update_rows", inputs, {{"momentum", 0.9}}),
      "sgd_update_rows: momentum is 0.9 and momentum_buf is absent; expected a buffer exactly "
      "with momentum above 0");
  EXPECT_EQ(Infer("sgd_update_rows", inputs, {{"weight_decay", -1.0}}),
            "sgd_update_rows: weight_decay is -1; expected 0 or more");
}

TEST(UpdateInference, LambNeedsAnEpsilon) {
  const std::string all = std::string("f32[3] f32[3]") + kUpdateScalars + " f32[3] f32[3]";
  EXPECT_EQ(Infer("lamb_update", all), "f32[3] f32[3] f32[3]");
  EXPECT_EQ(Infer("lamb_update", all, {{"eps", 0.0}}), "lamb_update: eps is 0; expected above 0");
}

TEST(UpdateInference, RmspropHasTheStatesOfItsOptions) {
  const std::string plain = std::string("f32[3] f32[3]") + kUpdateScalars + " f32[3]";
  const ir::Attributes centered = {{"centered", true}};
  const ir::Attributes both = {{"centered", true}, {"momentum", 0.9}};
  EXPECT_EQ(Infer("rmsprop_update", plain), "f32[3] f32[3]");
  EXPECT_EQ(Infer("rmsprop_update", plain + " f32[3]", centered), "f32[3] f32[3] f32[3]");
  EXPECT_EQ(Infer("rmsprop_update", plain + " f32[3] f32[3]", both), "f32[3] f32[3] f32[3] f32[3]");
  EXPECT_EQ(Infer("rmsprop_update", plain, centered),
            "rmsprop_update: centered is true and grad_avg is absent; expected an average exactly "
            "with centered");
  EXPECT_EQ(Infer("rmsprop_update", plain + " f32[3]", both),
            "rmsprop_update: momentum is 0.9 and momentum_buffer is absent; expected a buffer "
            "exactly with momentum above 0");
  EXPECT_EQ(Infer("rmsprop_update", plain + " f32[3]"),
            "rmsprop_update: centered is false and grad_avg is given; expected an average exactly "
            "with centered");
  EXPECT_EQ(Infer("rmsprop_update", plain + " f32[3] f32[3] f32[3] f32[3]", both),
            "rmsprop_update: got 12 inputs; expected 8..11");
  EXPECT_EQ(Infer("rmsprop_update", plain + " f32[2]", centered),
            "rmsprop_update: grad_avg is f32[2]; expected f32[3] (type of param)");
  EXPECT_EQ(Infer("rmsprop_update", plain, {{"alpha", 1.0}}),
            "rmsprop_update: alpha is 1; expected 0 or more and below 1");
}

TEST(UpdateInference, BF16IsRoundedByChanceOrWithACompensation) {
  const std::string plain = std::string("bf16[3] bf16[3]") + kUpdateScalars;
  const ir::Attributes stochastic = {{"rounding", std::string("stochastic")}},
                       kahan = {{"rounding", std::string("kahan")}};
  EXPECT_EQ(Infer("sgd_update", plain, stochastic), "bf16[3]");
  EXPECT_EQ(Infer("sgd_update", plain + " bf16[3]", kahan), "bf16[3] bf16[3]");
  EXPECT_EQ(Infer("sgd_update", plain + " bf16[3] bf16[3]",
                  {{"rounding", std::string("kahan")}, {"momentum", 0.9}}),
            "bf16[3] bf16[3] bf16[3]");
  EXPECT_EQ(Infer("sgd_update", plain, kahan),
            "sgd_update: rounding is kahan and compensation is absent; expected a compensation "
            "exactly with rounding kahan");
  EXPECT_EQ(Infer("sgd_update", plain + " bf16[3]", stochastic),
            "sgd_update: momentum is 0 and momentum_buf is given; expected a buffer exactly with "
            "momentum above 0");
  EXPECT_EQ(Infer("adam_update", plain + " bf16[3] bf16[3] bf16[3]", stochastic),
            "adam_update: rounding is stochastic and compensation is given; expected a "
            "compensation exactly with rounding kahan");
  EXPECT_EQ(
      Infer("sgd_update", plain),
      "sgd_update: param is bf16 and rounding is nearest; expected stochastic or kahan, since "
      "to nearest small steps are lost");
  EXPECT_EQ(Infer("sgd_update", std::string("f32[3] f32[3]") + kUpdateScalars, stochastic),
            "sgd_update: param is f32 and rounding is stochastic; expected nearest, or param in "
            "bf16");
  EXPECT_EQ(Infer("sgd_update", plain, {{"rounding", std::string("up")}}),
            "sgd_update: rounding is \"up\"; expected one of \"nearest\", \"stochastic\", "
            "\"kahan\"");
  EXPECT_EQ(Infer("sgd_update", std::string("bf16[3] f32[3]") + kUpdateScalars, stochastic),
            "sgd_update: grad is f32[3]; expected bf16[3] (type of param)");
}

TEST(ScalingInference, GradStats) {
  EXPECT_EQ(Infer("grad_stats", "f32[]"), "bool[] f32[] i32[]");
  EXPECT_EQ(Infer("grad_stats", "f32[] f32[3] f16[0] f64[2,2]"), "bool[] f32[] i32[]");
  EXPECT_EQ(Infer("grad_stats", "f32[1] f32[3]"),
            "grad_stats: inv_scale is f32[1]; expected f32[] (one number)");
}

TEST(ScalingInference, LossScaleUpdate) {
  const std::string inputs = "f32[] i32[] i32[] i64[] i64[] i64[] bool[]";
  EXPECT_EQ(Infer("loss_scale_update", inputs), "f32[] i32[] i32[] i64[] i64[] i64[]");
  EXPECT_EQ(Infer("loss_scale_update", inputs, {{"growth_factor", 1.0}}),
            "loss_scale_update: growth_factor is 1; expected above 1");
  EXPECT_EQ(Infer("loss_scale_update", inputs, {{"backoff_factor", 1.0}}),
            "loss_scale_update: backoff_factor is 1; expected above 0 and below 1");
  EXPECT_EQ(Infer("loss_scale_update", inputs, {{"growth_interval", int64_t{0}}}),
            "loss_scale_update: growth_interval is 0; expected 1..2147483647");
  EXPECT_EQ(Infer("loss_scale_update", inputs, {{"min_scale", 0.0}}),
            "loss_scale_update: min_scale is 0; expected above 0");
  EXPECT_EQ(Infer("loss_scale_update", inputs, {{"max_scale", 0.5}}),
            "loss_scale_update: max_scale is 0.5; expected at least min_scale");
  EXPECT_EQ(Infer("loss_scale_update", "f32[] i32[] i32[] i64[] i64[1] i64[] bool[]"),
            "loss_scale_update: skipped_steps is i64[1]; expected i64[] (one value)");
}

TEST(MarkerInference, Differentiation) {
  EXPECT_EQ(Infer("backward", "f32[]"), "");
  EXPECT_EQ(Infer("backward", "f32[3]"),
            "backward: loss is f32[3]; expected one element (reduce it with sum or mean)");
  EXPECT_EQ(Infer("gradient", "f32[] f32[3] f16[2,2]"), "f32[3] f16[2,2]");
  EXPECT_EQ(Infer("gradient", "f32[2] f32[3]"), "gradient: y is f32[2]; expected one element");
  EXPECT_EQ(Infer("gradient", "f32[]"),
            "gradient: got no x; expected one or more values to differentiate by");
  EXPECT_EQ(Infer("loss_seed", "f16[1]"), "f32[1]");
  EXPECT_EQ(Infer("loss_seed", "f64[]"), "f64[]");
}

TEST(MarkerInference, F65Optimizer) {
  const ir::Attributes sgd = {{"rule", std::string("sgd")}, {"params", Strings{"w"}}};
  const auto with = [&](const char* name, ir::AttrValue value) {
    ir::Attributes attrs = sgd;
    attrs.Set(name, std::move(value));
    return attrs;
  };
  EXPECT_EQ(Infer("optimizer", "", sgd), "f32[] bool[]");
  EXPECT_EQ(Infer("optimizer", "f32[3]", with("grad_params", Strings{"w"})), "f32[] bool[]");
  EXPECT_EQ(Infer("optimizer", "f32[3]", sgd),
            "optimizer: got 1 gradients for 0 names in grad_params; expected as many");
  ir::Attributes scalers = with("grad_params", Strings{"w", "w"});
  scalers.Set("grad_scalers", Strings{"a", "b"});
  EXPECT_EQ(Infer("optimizer", "f32[3] f32[3]", scalers), "f32[] bool[]");
  scalers.Set("grad_scalers", Strings{"a"});
  EXPECT_EQ(Infer("optimizer", "f32[3] f32[3]", scalers),
            "optimizer: got 1 names in grad_scalers for 2 gradients; expected as many, or none");
  EXPECT_EQ(
      Infer("optimizer", "", with("rule", std::string("ftrl"))),
      "optimizer: rule is \"ftrl\"; expected one of \"sgd\", \"adam\", \"adamw\", \"sparse_adam\", "
      "\"rmsprop\", \"adagrad\", \"lion\", \"nadam\", \"lamb\"");
  EXPECT_EQ(Infer("optimizer", "", with("params", Strings{})),
            "optimizer: params is []; expected one parameter or more");
  EXPECT_EQ(Infer("optimizer", "", with("skip", std::string("all"))),
            "optimizer: skip is \"all\"; expected one of \"own\", \"any\"");
  EXPECT_EQ(Infer("optimizer", "", with("clip_norm", -1.0)),
            "optimizer: clip_norm is -1; expected 0 or more and finite in f32");
  EXPECT_EQ(Infer("optimizer", "", with("lr", 1e39)),
            "optimizer: lr is 1e+39; expected 0 or more and finite in f32");
  EXPECT_EQ(Infer("optimizer", "", with("clip_value", 1e39)),
            "optimizer: clip_value is 1e+39; expected 0 or more and finite in f32");
  EXPECT_EQ(Infer("optimizer", "", with("dampening", -1e39)),
            "optimizer: dampening is -1e+39; expected a number that is finite in f32");
  EXPECT_EQ(Infer("optimizer", "", with("group", int64_t{-1})),
            "optimizer: group is -1; expected 0..2147483647");
  ir::Attributes adam = with("rule", std::string("adam"));
  adam.Set("beta1", 1.0);
  EXPECT_EQ(Infer("optimizer", "", adam), "optimizer: beta1 is 1; expected 0 or more and below 1");
  // Of another rule's it may be anything: 0 is no epsilon of lamb.
  EXPECT_EQ(Infer("optimizer", "", with("eps", 0.0)), "f32[] bool[]");
  ir::Attributes lamb = with("rule", std::string("lamb"));
  lamb.Set("eps", 0.0);
  EXPECT_EQ(Infer("optimizer", "", lamb),
            "optimizer: eps is 0; expected above 0 and a number that f32 can hold");
  EXPECT_EQ(Infer("optimizer", "", with("nesterov", true)),
            "optimizer: nesterov with momentum 0 and dampening 0; expected momentum above 0 and "
            "dampening 0");
  EXPECT_EQ(Infer("optimizer", "", with("name", std::string())),
            "optimizer: name is \"\"; expected a name");
}

TEST(MarkerInference, ScalerAndAmp) {
  EXPECT_EQ(Infer("scaler", "bool[] bool[]"), "");
  EXPECT_EQ(Infer("scaler", "bool[2]"), "scaler: finite is bool[2]; expected bool[] (one flag)");
  EXPECT_EQ(Infer("scaler", "", {{"mode", std::string("auto")}}),
            "scaler: mode is \"auto\"; expected one of \"dynamic\", \"static\", \"disabled\"");
  EXPECT_EQ(Infer("scaler", "", {{"init_scale", 1e39}}),
            "scaler: init_scale is 1e+39; expected above 0 and finite in f32");
  EXPECT_EQ(Infer("scaler", "", {{"hysteresis", int64_t{0}}}),
            "scaler: hysteresis is 0; expected 1..2147483647");
  EXPECT_EQ(Infer("amp", "", {{"dtype", DType::kF16}}), "");
  EXPECT_EQ(Infer("amp", "", {{"dtype", DType::kF32}}),
            "amp: dtype is f32; expected f16, bf16 or f8e4m3");
}

}  // namespace
}  // namespace halftone::testing
