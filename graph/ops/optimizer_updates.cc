// sgd_update and adam_update: one parameter's step.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

using ir::InferContext;

constexpr ir::DTypeSet kMasterDTypes{DType::kF64, DType::kF32};

// Ports of both ops: param grad lr inv_scale clip apply step state...
constexpr int kStepPort = 6;

absl::Status CheckUpdate(const InferContext& ctx, std::initializer_list<const char*> states) {
  const ir::ValueType& param = ctx.inputs[0];
  const Shape scalar;
  HT_RETURN_IF_ERROR(CheckType(ctx, 1, "grad", param.dtype, param.shape, "type of param"));
  const char* const names[] = {"lr", "inv_scale", "clip"};
  for (int i = 0; i < 3; ++i) {
    HT_RETURN_IF_ERROR(CheckType(ctx, 2 + i, names[i], DType::kF32, scalar, "one number"));
  }
  HT_RETURN_IF_ERROR(CheckType(ctx, 5, "apply", DType::kBool, scalar, "one flag"));
  HT_RETURN_IF_ERROR(CheckType(ctx, kStepPort, "step", DType::kI64, scalar, "one number"));
  int port = kStepPort;
  for (const char* name : states) {
    HT_RETURN_IF_ERROR(CheckType(ctx, ++port, name, param.dtype, param.shape, "type of param"));
  }
  for (const char* name : {"weight_decay", "clip_value"}) {
    HT_RETURN_IF_ERROR(CheckFloat(ctx, name, ctx.attrs.GetFloat(name) >= 0, "0 or more"));
  }
  return absl::OkStatus();
}

Types InferSgdUpdate(const InferContext& ctx) {
  const double momentum = ctx.attrs.GetFloat("momentum");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "momentum", momentum >= 0, "0 or more"));
  if (ctx.inputs.size() > kStepPort + 2) {
    return InvalidArgument(ctx.op, ": got ", ctx.inputs.size(), " inputs; expected 7 or 8");
  }
  const bool has_buffer = ctx.inputs.size() > kStepPort + 1;
  if (has_buffer != (momentum > 0)) {
    return InvalidArgument(ctx.op, ": momentum is ", momentum, " and momentum_buf is ",
                           has_buffer ? "given" : "absent",
                           "; expected a buffer exactly with momentum above 0");
  }
  const double dampening = ctx.attrs.GetFloat("dampening");
  if (ctx.attrs.GetBool("nesterov") && (momentum <= 0 || dampening != 0)) {
    return InvalidArgument(ctx.op, ": nesterov with momentum ", momentum, " and dampening ",
                           dampening, "; expected momentum above 0 and dampening 0");
  }
  if (!has_buffer) {
    HT_RETURN_IF_ERROR(CheckUpdate(ctx, {}));
    return std::vector<ir::ValueType>{ctx.inputs[0]};
  }
  HT_RETURN_IF_ERROR(CheckUpdate(ctx, {"momentum_buf"}));
  return std::vector<ir::ValueType>{ctx.inputs[0], ctx.inputs[kStepPort + 1]};
}

Types InferAdamUpdate(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckUpdate(ctx, {"exp_avg", "exp_avg_sq"}));
  for (const char* name : {"beta1", "beta2"}) {
    const double beta = ctx.attrs.GetFloat(name);
    HT_RETURN_IF_ERROR(CheckFloat(ctx, name, beta >= 0 && beta < 1, "0 or more and below 1"));
  }
  const double eps = ctx.attrs.GetFloat("eps");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "eps", eps >= 0, "0 or more"));
  return std::vector<ir::ValueType>{ctx.inputs[0], ctx.inputs[7], ctx.inputs[8]};
}

ir::OpRecord UpdateRecord(const char* name) {
  ir::OpRecord r;
  r.name = name;
  r.inputs = {{"param", kMasterDTypes, "any shape"},
              {"grad", kMasterDTypes, "as param, still multiplied by the loss scale"},
              {"lr", {DType::kF32}, "[] learning rate"},
              {"inv_scale", {DType::kF32}, "[] 1 / loss scale"},
              {"clip", {DType::kF32}, "[] factor of global-norm clipping"},
              {"apply", {DType::kBool}, "[] false: every output is its input, bit for bit"},
              {"step", {DType::kI64}, "[] number of this step among the applied ones, from 1"}};
  r.outputs = {{"new_param", "as param"}};
  r.amp = Deny("updates work on f32 masters");
  r.fusion = ir::FusionClass::kElementwise;
  r.in_place = {{0, 0}};
  return r;
}

}  // namespace

void Register_optimizer_updates(ir::OpRegistry& registry) {
  const ir::AttrSpec decay{"weight_decay", ir::AttrType::kFloat, 0.0, "L2 penalty"};
  const ir::AttrSpec clip_value{"clip_value", ir::AttrType::kFloat, 0.0,
                                "largest magnitude of an entry of g; 0: no clipping"};

  ir::OpRecord sgd = UpdateRecord("sgd_update");
  sgd.doc =
      "u = grad inv_scale clip (two roundings in f32), brought into -clip_value..clip_value where "
      "that is above 0 (NaN stays); g = u + weight_decay param; buf = g at step 1, else momentum "
      "buf + (1 - dampening) g; d = g without momentum, g + momentum buf under nesterov, else buf; "
      "param = param - lr d. Shapes: param, grad, momentum_buf alike, the rest [].";
  sgd.source = "https://pytorch.org/docs/stable/generated/torch.optim.SGD.html";
  // Variadic, since an output is absent with it.
  sgd.inputs.push_back({"momentum_buf", kMasterDTypes, "as param; exactly with momentum above 0",
                        /*optional=*/true, /*variadic=*/true});
  sgd.outputs.push_back({"new_momentum_buf", "as param; present if momentum_buf is"});
  sgd.attrs = {{"momentum", ir::AttrType::kFloat, 0.0, "0 or more"},
               {"dampening", ir::AttrType::kFloat, 0.0, "of the gradient in the buffer"},
               decay,
               {"nesterov", ir::AttrType::kBool, false, "needs momentum and no dampening"},
               clip_value};
  sgd.infer = InferSgdUpdate;
  sgd.in_place.push_back({kStepPort + 1, 1});
  sgd.cost = FlopsPerInput(6);
  AddOp(registry, std::move(sgd));

  ir::OpRecord adam = UpdateRecord("adam_update");
  adam.doc =
      "g = grad inv_scale clip (two roundings in f32), brought into -clip_value..clip_value where "
      "that is above 0 (NaN stays); with weight_decay w: param = param (1 - lr w) if "
      "decoupled (AdamW), else g = g + w param. exp_avg = exp_avg + (1 - beta1) (g - exp_avg), "
      "exp_avg_sq = beta2 exp_avg_sq + (1 - beta2) g^2, param = param - lr / (1 - beta1^step) "
      "exp_avg / "
      "(sqrt(exp_avg_sq) / sqrt(1 - beta2^step) + eps); the corrections in f64. Shapes: param, "
      "grad and "
      "averages alike, the rest [].";
  adam.source =
      "Kingma, Ba: \"Adam\", https://arxiv.org/abs/1412.6980, algorithm 1; Loshchilov, Hutter: "
      "\"Decoupled weight decay\", https://arxiv.org/abs/1711.05101; order of operations: "
      "https://pytorch.org/docs/stable/generated/torch.optim.Adam.html";
  adam.inputs.push_back({"exp_avg", kMasterDTypes, "as param"});
  adam.inputs.push_back({"exp_avg_sq", kMasterDTypes, "as param"});
  adam.outputs.push_back({"new_exp_avg", "as param"});
  adam.outputs.push_back({"new_exp_avg_sq", "as param"});
  adam.attrs = {{"beta1", ir::AttrType::kFloat, 0.9, "decay of exp_avg"},
                {"beta2", ir::AttrType::kFloat, 0.999, "decay of exp_avg_sq"},
                {"eps", ir::AttrType::kFloat, 1e-8, "added to the root"},
                decay,
                {"decoupled", ir::AttrType::kBool, false, "true: AdamW"},
                clip_value};
  adam.infer = InferAdamUpdate;
  adam.in_place.push_back({7, 1});
  adam.in_place.push_back({8, 2});
  adam.cost = FlopsPerInput(14);
  AddOp(registry, std::move(adam));
}

}  // namespace halftone::ops
