// grad_stats and loss_scale_update: what dynamic loss scaling computes once a step.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::InferContext;

Types InferGradStats(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckType(ctx, 0, "inv_scale", DType::kF32, Shape{}, "one number"));
  return std::vector<ir::ValueType>{
      {DType::kBool, Shape{}}, {DType::kF32, Shape{}}, {DType::kI32, Shape{}}};
}

Types InferLossScaleUpdate(const InferContext& ctx) {
  const struct {
    const char* name;
    DType dtype;
  } ports[] = {{"scale", DType::kF32},           {"growth_tracker", DType::kI32},
               {"hysteresis_left", DType::kI32}, {"total_steps", DType::kI64},
               {"skipped_steps", DType::kI64},   {"consecutive_skips", DType::kI64},
               {"finite", DType::kBool}};
  for (int i = 0; i < 7; ++i) {
    HT_RETURN_IF_ERROR(CheckType(ctx, i, ports[i].name, ports[i].dtype, Shape{}, "one value"));
  }
  const double growth = ctx.attrs.GetFloat("growth_factor");
  const double backoff = ctx.attrs.GetFloat("backoff_factor");
  const double min_scale = ctx.attrs.GetFloat("min_scale");
  const double max_scale = ctx.attrs.GetFloat("max_scale");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "growth_factor", growth > 1, "above 1"));
  HT_RETURN_IF_ERROR(
      CheckFloat(ctx, "backoff_factor", backoff > 0 && backoff < 1, "above 0 and below 1"));
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "min_scale", min_scale > 0, "above 0"));
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "max_scale", max_scale >= min_scale, "at least min_scale"));
  for (const char* name : {"growth_interval", "hysteresis"}) {
    if (ctx.attrs.GetInt(name) < 1 || ctx.attrs.GetInt(name) > INT32_MAX) {
      return InvalidArgument(ctx.op, ": ", name, " is ", ctx.attrs.GetInt(name), "; expected 1..",
                             INT32_MAX);
    }
  }
  return std::vector<ir::ValueType>(ctx.inputs.begin(), ctx.inputs.begin() + 6);
}

}  // namespace

void Register_scaling_updates(ir::OpRegistry& registry) {
  ir::OpRecord stats;
  stats.name = "grad_stats";
  stats.doc =
      "Over gradients u = g inv_scale (a product in f32; f64 for f64 g): "
      "finite = no element of any is inf or NaN; "
      "norm = sqrt(sum of u^2 over all), summed in f64, inf if not finite; "
      "first_bad = position of the first gradient that is not finite, -1 if none. "
      "Shapes: inv_scale and outputs [], gradients any; none, and empty ones, are fine.";
  stats.source =
      "Micikevicius et al.: \"Mixed precision training\", https://arxiv.org/abs/1710.03740, 3.2; "
      "https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html";
  stats.inputs = {{"inv_scale", {DType::kF32}, "[] 1 / loss scale"},
                  {"grads", ir::kFloats, "still multiplied by the loss scale", /*optional=*/false,
                   /*variadic=*/true}};
  stats.outputs = {{"finite", "[] bool"}, {"norm", "[] f32"}, {"first_bad", "[] i32"}};
  stats.no_gradient = kAfterGradients;
  stats.infer = InferGradStats;
  stats.amp = Deny("a norm of unscaled gradients leaves 16-bit range");
  stats.amp.accumulates_in_f32 = true;
  stats.fusion = ir::FusionClass::kReduction;
  stats.cost = [](const ir::Node& node) {
    double elements = 0;
    for (const ir::Value& v : node.inputs()) {
      elements += static_cast<double>(v.type().num_elements());
    }
    return ir::Cost{3 * elements, IoBytes(node)};
  };
  AddOp(registry, std::move(stats));

  ir::OpRecord update;
  update.name = "loss_scale_update";
  update.no_gradient = kIsUpdate;
  update.doc =
      "The state of a loss scaler after a step. "
      "Not finite: growth_tracker = 0, hysteresis_left - 1 (not below 0), "
      "and at 0 scale = max(scale backoff_factor, min(scale, min_scale)). "
      "Finite: hysteresis_left = hysteresis, growth_tracker + 1; "
      "at growth_interval growth_tracker = 0 and scale = scale growth_factor, "
      "unless that exceeds max_scale or f32. Counters: total_steps + 1; "
      "skipped_steps and consecutive_skips + 1 if not finite, else consecutive_skips = 0. "
      "dynamic = false: only the counters change. All shapes [].";
  update.source =
      "https://pytorch.org/docs/stable/amp.html#gradient-scaling; "
      "hysteresis: Megatron-LM's dynamic gradient scaler";
  update.inputs = {{"scale", {DType::kF32}, ""},           {"growth_tracker", {DType::kI32}, ""},
                   {"hysteresis_left", {DType::kI32}, ""}, {"total_steps", {DType::kI64}, ""},
                   {"skipped_steps", {DType::kI64}, ""},   {"consecutive_skips", {DType::kI64}, ""},
                   {"finite", {DType::kBool}, ""}};
  update.outputs = {{"new_scale", ""},           {"new_growth_tracker", ""},
                    {"new_hysteresis_left", ""}, {"new_total_steps", ""},
                    {"new_skipped_steps", ""},   {"new_consecutive_skips", ""}};
  update.attrs = {
      {"growth_factor", ir::AttrType::kFloat, 2.0, "above 1"},
      {"backoff_factor", ir::AttrType::kFloat, 0.5, "between 0 and 1"},
      {"growth_interval", ir::AttrType::kInt, int64_t{2000}, "finite steps per growth"},
      {"min_scale", ir::AttrType::kFloat, 1.0, "backoff stops here; a scale below it stays"},
      {"max_scale", ir::AttrType::kFloat, MaxFinite(DType::kF32), "a growth beyond it is dropped"},
      {"hysteresis", ir::AttrType::kInt, int64_t{1},
       "steps in a row that must fail before backoff"},
      {"dynamic", ir::AttrType::kBool, true, "false: the scale stays"}};
  update.infer = InferLossScaleUpdate;
  update.amp = Deny("a loss scale beyond 65504 is no f16");
  for (int i = 0; i < 6; ++i) update.in_place.push_back({i, i});
  AddOp(registry, std::move(update));
}

}  // namespace halftone::ops
