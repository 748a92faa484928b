// Markers: what a step that is not yet differentiated asks of the passes. backward and gradient ask
// autodiff; loss_seed, scaler and optimizer ask loss scaling and optimizer insertion; amp asks
// insert-amp-casts; numerics asks apply-numerics; accumulation asks accumulate-gradients;
// memory_budget and hold_cheap_values ask rematerialise; no_fusion asks fuse; no_packing asks
// pack-weights. Each is removed by its pass; none has a kernel.
#include <algorithm>

#include "halftone/graph/ops/support/nn.h"
#include "halftone/graph/ops/support/optimizers.h"

namespace halftone::ops {
namespace {

using ir::InferContext;

ir::AttrSpec StringAttr(const char* name, const char* default_value, const char* doc) {
  return Optional(name, std::string(default_value), doc);
}

absl::Status CheckNamed(const InferContext& ctx) {
  if (!ctx.attrs.GetString("name").empty()) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": name is \"\"; expected a name");
}

absl::Status CheckIntAtLeast(const InferContext& ctx, const char* attr, int64_t min) {
  const int64_t value = ctx.attrs.GetInt(attr);
  if (value >= min && value <= INT32_MAX) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": ", attr, " is ", value, "; expected ", min, "..", INT32_MAX);
}

absl::Status CheckScalarLoss(const InferContext& ctx) {
  if (ctx.inputs[0].num_elements() == 1) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": loss is ", ctx.inputs[0].ToString(),
                         "; expected one element (reduce it with sum or mean)");
}

Types InferBackward(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckScalarLoss(ctx));
  return std::vector<ir::ValueType>{};
}

Types InferLossSeed(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckScalarLoss(ctx));
  return OneType(WideDType(ctx.inputs[0].dtype), ctx.inputs[0].shape);
}

Types InferGradientMarker(const InferContext& ctx) {
  if (ctx.inputs[0].num_elements() != 1) {
    return InvalidArgument(ctx.op, ": y is ", ctx.inputs[0].ToString(), "; expected one element");
  }
  if (ctx.inputs.size() < 2) {
    return InvalidArgument(ctx.op, ": got no x; expected one or more values to differentiate by");
  }
  std::vector<ir::ValueType> types(ctx.inputs.begin() + 1, ctx.inputs.end());
  // What a scale has saved would be lost again in 16 bit.
  if (!ctx.attrs.GetString("scaler").empty()) {
    for (ir::ValueType& type : types) type.dtype = WideDType(type.dtype);
  }
  return types;
}

Types InferOptimizer(const InferContext& ctx) {
  const ir::Attributes& a = ctx.attrs;
  HT_RETURN_IF_ERROR(CheckNamed(ctx));
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "rule", OptimizerRules()));
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "skip", {"own", "any"}));
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "rounding", {"nearest", "stochastic", "kahan"}));
  if (a.Get<std::vector<std::string>>("params").empty()) {
    return InvalidArgument(ctx.op, ": params is []; expected one parameter or more");
  }
  const size_t gradients = a.Get<std::vector<std::string>>("grad_params").size();
  if (gradients != ctx.inputs.size()) {
    return InvalidArgument(ctx.op, ": got ", ctx.inputs.size(), " gradients for ", gradients,
                           " names in grad_params; expected as many");
  }
  const size_t scalers = a.Get<std::vector<std::string>>("grad_scalers").size();
  if (scalers != 0 && scalers != gradients) {
    return InvalidArgument(ctx.op, ": got ", scalers, " names in grad_scalers for ", gradients,
                           " gradients; expected as many, or none");
  }
  const size_t owners = a.GetInts("owners").size();
  if (owners != 0 && owners != a.Get<std::vector<std::string>>("params").size()) {
    return InvalidArgument(ctx.op, ": got ", owners, " owners; expected one for each of params");
  }
  for (const char* name : {"lr", "clip_norm", "clip_value", "clip_norm_of_all"}) {
    HT_RETURN_IF_ERROR(
        CheckHyper(HyperOwner::kMarker, ctx.op, name, a.GetFloat(name), kNotNegative));
  }
  HT_RETURN_IF_ERROR(CheckIntAtLeast(ctx, "group", 0));
  absl::Status status;
  ForEachOptimizer([&](const OptimizerInfo& optimizer, const auto& update) {
    if (a.GetString("rule") != optimizer.rule) return;
    status = CheckHypers(HyperOwner::kMarker, ctx.op, WithAttributes(update, a));
  });
  HT_RETURN_IF_ERROR(status);
  return std::vector<ir::ValueType>{{DType::kF32, Shape{}}, {DType::kBool, Shape{}}};
}

Types InferScaler(const InferContext& ctx) {
  const ir::Attributes& a = ctx.attrs;
  HT_RETURN_IF_ERROR(CheckNamed(ctx));
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "mode", {"dynamic", "static", "disabled"}));
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    HT_RETURN_IF_ERROR(
        CheckType(ctx, static_cast<int>(i), "finite", DType::kBool, Shape{}, "one flag"));
  }
  const double init = a.GetFloat("init_scale"), growth = a.GetFloat("growth_factor");
  const double backoff = a.GetFloat("backoff_factor"), min_scale = a.GetFloat("min_scale");
  const double largest = MaxFinite(DType::kF32);
  HT_RETURN_IF_ERROR(
      CheckFloat(ctx, "init_scale", init > 0 && init <= largest, "above 0 and finite in f32"));
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "growth_factor", growth > 1, "above 1"));
  HT_RETURN_IF_ERROR(
      CheckFloat(ctx, "backoff_factor", backoff > 0 && backoff < 1, "above 0 and below 1"));
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "min_scale", min_scale > 0, "above 0"));
  HT_RETURN_IF_ERROR(
      CheckFloat(ctx, "max_scale", a.GetFloat("max_scale") >= min_scale, "at least min_scale"));
  HT_RETURN_IF_ERROR(CheckIntAtLeast(ctx, "growth_interval", 1));
  HT_RETURN_IF_ERROR(CheckIntAtLeast(ctx, "hysteresis", 1));
  HT_RETURN_IF_ERROR(CheckIntAtLeast(ctx, "max_consecutive_skips", 0));
  return std::vector<ir::ValueType>{};
}

Types InferAmpMarker(const InferContext& ctx) {
  const DType dtype = ctx.attrs.GetDType("dtype");
  if (!IsLow(dtype) && dtype != DType::kF8) {
    return InvalidArgument(ctx.op, ": dtype is ", Name(dtype), "; expected f16, bf16 or ",
                           Name(DType::kF8));
  }
  const std::string& level = ctx.attrs.GetString("level");
  for (const char* known : {"balanced", "conservative", "only_matmul", "force"}) {
    if (level == known) return std::vector<ir::ValueType>{};
  }
  return InvalidArgument(ctx.op, ": level is \"", level,
                         "\"; expected balanced, conservative, only_matmul or force");
}

ir::OpRecord MarkerRecord(const char* name, const char* doc) {
  ir::OpRecord r;
  r.name = name;
  r.doc = doc;
  r.source = "Halftone";
  r.amp = Deny("a marker computes nothing");
  r.cost = [](const ir::Node&) { return ir::Cost{}; };
  r.is_marker = true;
  return r;
}

void RegisterDifferentiationMarkers(ir::OpRegistry& registry) {
  ir::OpRecord backward =
      MarkerRecord("backward",
                   "Asks autodiff for the gradient of a loss in the parameters of the graph's "
                   "optimizers. Several losses add up. Shapes: loss has one element.");
  backward.inputs = {{"loss", ir::kFloats, "one element"}};
  backward.attrs = {StringAttr("scaler", "", "name of the scaler marker; empty: none"),
                    Optional("optimizers", std::vector<std::string>{},
                             "names of the optimizers whose parameters it reaches; empty: all")};
  backward.infer = InferBackward;
  backward.has_side_effect = true;
  AddOp(registry, std::move(backward));

  ir::OpRecord gradient = MarkerRecord("gradient",
                                       "dx_i = dy / dx_i, true gradients as values: scaled by the "
                                       "scaler on their way and unscaled in f32. Shapes: y has one "
                                       "element, each dx has its x's type, but with a scaler f32 "
                                       "for 16 bit.");
  gradient.inputs = {{"y", ir::kFloats, "one element"},
                     {"x", ir::kFloats, "one or more", /*optional=*/false, /*variadic=*/true}};
  gradient.outputs = {{"dx", "one for each x"}};
  gradient.attrs = {StringAttr("scaler", "", "name of the scaler marker; empty: none")};
  gradient.infer = InferGradientMarker;
  AddOp(registry, std::move(gradient));

  ir::OpRecord seed = MarkerRecord(
      "loss_seed",
      "The number that the reverse sweep of a loss starts from: 1, times the loss scale where the "
      "scaler is active. Made by autodiff. Shapes: that of the loss; f32, also for a 16-bit loss, "
      "since a scale of 65536 is no f16 (f64 for f64).");
  seed.inputs = {{"loss", ir::kFloats, "one element"}};
  seed.outputs = {{"seed", "shape of the loss"}};
  seed.attrs = {StringAttr("scaler", "", "name of the scaler marker; empty: none")};
  seed.infer = InferLossSeed;
  AddOp(registry, std::move(seed));
}

// "\"sgd\", \"adam\" or \"adamw\"".
std::string RulesDoc() {
  const std::vector<std::string> rules = OptimizerRules();
  std::string doc;
  for (size_t i = 0; i < rules.size(); ++i) {
    doc += Concat(i == 0 ? "" : i + 1 == rules.size() ? " or " : ", ", "\"", rules[i], "\"");
  }
  return doc;
}

// The hyper-parameters of all rules, each with the default of the first update that has it and with
// the rules that have it as its description.
std::vector<ir::AttrSpec> HyperAttrs() {
  std::vector<ir::AttrSpec> attrs;
  ForEachOptimizer([&attrs]<typename Update>(const OptimizerInfo& optimizer, const Update&) {
    const Update defaults;
    HypersOf<Update>::ForEach(defaults, [&](const HyperInfo& info, const auto& value) {
      if (!info.is_option) return;
      const auto known = std::find_if(attrs.begin(), attrs.end(),
                                      [&info](const auto& attr) { return attr.name == info.name; });
      if (known == attrs.end()) {
        attrs.push_back(Optional(info.name, value, optimizer.rule));
      } else {
        known->doc += Concat(", ", optimizer.rule);
      }
    });
  });
  return attrs;
}

void RegisterOptimizerMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord("optimizer",
                                "Asks for one update of the named parameters a step. Autodiff "
                                "appends their gradients as inputs and their names as "
                                "grad_params. Markers of one name are the parameter groups of one "
                                "optimizer and agree in rule, scaler, skips and norms. Shapes: "
                                "both outputs [].");
  r.inputs = {{"grads", ir::kFloats, "aligned with grad_params", /*optional=*/false,
               /*variadic=*/true}};
  r.outputs = {{"grad_norm", "[] f32, global norm of the unscaled gradients before clipping"},
               {"applied", "[] bool, false for a skipped step"}};
  r.attrs = {
      StringAttr("name", "optimizer0", "prefix of its state variables"),
      Optional("group", int64_t{0}, "which parameter group of the optimizer this is"),
      Required("rule", ir::AttrType::kString, RulesDoc()),
      Required("params", ir::AttrType::kStrings, "names of parameter variables"),
      Optional("grad_params", std::vector<std::string>{}, "parameter of each input"),
      Optional("grad_scalers", std::vector<std::string>{},
               "scaler of each input, where one is not the optimizer's; a parameter has an input "
               "for each scaler then"),
      Optional("lr", 1e-3, "base learning rate, initial value of <name>.lr"),
      StringAttr("schedule", "",
                 "product of step(n,f) cosine(n,f) warmup(n,f) restarts(n,n,f) polynomial(n,f) "
                 "onecycle(f,n,f,0,f,f,0), see optim::LRSchedule; empty: constant"),
      StringAttr("scaler", "", "name of the scaler marker; empty: none"),
      StringAttr("skip", "own",
                 "\"own\": skips on its own gradients, \"any\": on any of the scaler"),
      Optional("skip_nonfinite", false, "also without scaler skips if a gradient is not finite"),
      Optional("update_buffers_on_skip", false,
               "whether norm statistics move in a step that skip_nonfinite skips"),
      Optional("owners", std::vector<int64_t>{},
               "rank that updates each of params and keeps its state; none: every rank"),
      Optional("rank", int64_t{0}, "set by insert-all-reduce where there are owners: this one's"),
      Optional("ranks", int64_t{1}, "set likewise: processes of the job"),
      Optional("bucket_bytes", int64_t{25} << 20,
               "set likewise: of parameters that travel together"),
      Optional("grads_elsewhere", std::vector<std::string>{},
               "set likewise: those of params whose gradients another rank has"),
      Optional("clip_norm", 0.0, "largest norm over all groups; 0: no clipping"),
      Optional("clip_norm_of_all", 0.0, "largest norm over all optimizers that have this"),
      Optional("clip_value", 0.0, "largest magnitude of an entry of a gradient; 0: no clipping"),
      Optional("accumulated", false,
               "set by accumulate-gradients: gradients are sums over accumulation.micro_batches "
               "micro-batches, unscaled"),
      StringAttr(
          "rounding", "nearest",
          "of parameters and states, see the update ops: nearest for f64 and f32, stochastic "
          "or kahan for bf16"),
      Optional("seed", int64_t{0}, "of stochastic rounding"),
      Optional("ema", false, "keeps <name>.<param>.ema, an average of each parameter"),
      Optional("ema_decay", 0.9999, "of the average, see optim::Ema, as are the following"),
      Optional("ema_min_decay", 0.0, "lowest decay of the warm-up"),
      Optional("ema_update_after_step", int64_t{0}, "updates before averaging begins"),
      Optional("ema_use_warmup", false, "whether the decay grows"),
      Optional("ema_warmup_gamma", 1.0, "how slowly it grows"),
      Optional("ema_warmup_power", 2.0 / 3, "how it grows")};
  for (ir::AttrSpec& attr : HyperAttrs()) r.attrs.push_back(std::move(attr));
  r.infer = InferOptimizer;
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

void RegisterScalerMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord("scaler",
                                "Declares a loss scaler and, once the gradients exist, takes the "
                                "finite flag of each optimizer; "
                                "asks for its state update (see loss_scale_update).");
  r.inputs = {{"finite",
               {DType::kBool},
               "[] one for each optimizer",
               /*optional=*/false,
               /*variadic=*/true}};
  r.attrs = {
      StringAttr("name", "scaler0", "prefix of its state variables"),
      StringAttr("mode", "dynamic", "\"dynamic\", \"static\" or \"disabled\""),
      Optional("automatic", false, "made by the framework: dropped where f16 is not in use"),
      Optional("init_scale", 65536.0, "first scale"),
      Optional("growth_factor", 2.0, "above 1"),
      Optional("backoff_factor", 0.5, "between 0 and 1"),
      Optional("growth_interval", int64_t{2000}, "finite steps per growth"),
      Optional("min_scale", 1.0, "backoff stops here; a scale below it stays"),
      Optional("max_scale", MaxFinite(DType::kF32), "a growth beyond it is dropped"),
      Optional("hysteresis", int64_t{1}, "steps in a row that must fail before backoff"),
      Optional("max_consecutive_skips", int64_t{0}, "then the call is an error; 0: never"),
      Optional("update_buffers_on_skip", false, "whether norm statistics move in a step it skips")};
  r.infer = InferScaler;
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

void RegisterAmpMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord(
      "amp", "Asks insert-amp-casts for mixed precision; the lists overrule the ops' own classes.");
  const std::vector<std::string> none;
  r.attrs = {Required("dtype", ir::AttrType::kDType,
                      "f16, bf16, or f8e4m3: bf16 around matrix products in 8 bits"),
             Optional("allow", none, "op types, or patterns over node paths such as \"head/*\""),
             Optional("infer", none, "likewise"),
             Optional("clear", none, "likewise"),
             Optional("deny", none, "likewise"),
             Optional("low_outputs", false, "graph outputs may be 16 bit"),
             Optional("trim", true, "drop islands whose casts cost more than they save"),
             Optional("level", std::string("balanced"),
                      "of what neither list nor request names: balanced, conservative, only_matmul "
                      "or force")};
  r.infer = InferAmpMarker;
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

void RegisterNumericsMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord(
      "numerics",
      "Asks apply-numerics to let kernels choose otherwise than they do by themselves.");
  r.attrs = {Optional("allow_tf32", false, "products may round f32 operands to TF32"),
             Optional("deterministic", true,
                      "false: sums may be added in an order that differs from run to run"),
             Optional("low_weight_gradients", false,
                      "weight gradients of 16-bit convolutions are rounded to 16 bit")};
  r.infer = [](const InferContext&) -> Types { return std::vector<ir::ValueType>{}; };
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

void RegisterF8Marker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord(
      "f8_products",
      "Asks quantise-matmuls for products on 8-bit operands. Left by trim-amp-islands where `amp` "
      "asks for f8.");
  r.infer = [](const InferContext&) -> Types { return std::vector<ir::ValueType>{}; };
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

void RegisterAccumulationMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord(
      "accumulation",
      "Asks accumulate-gradients for one of the two steps that take the place of a training step: "
      "the one that adds a micro-batch's gradients to their sums, or the one that updates the "
      "parameters by those sums.");
  r.attrs = {Required("part", ir::AttrType::kString, "\"accumulate\" or \"update\"")};
  r.infer = [](const InferContext& ctx) -> Types {
    HT_RETURN_IF_ERROR(CheckChoice(ctx, "part", {"accumulate", "update"}));
    return std::vector<ir::ValueType>{};
  };
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

Types InferDataParallel(const InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "reduction", {"mean", "sum"}));
  const int64_t ranks = ctx.attrs.GetInt("ranks"), bytes = ctx.attrs.GetInt("bucket_bytes");
  if (ranks < 1) return InvalidArgument(ctx.op, ": ranks is ", ranks, "; expected 1 or more");
  const int64_t rank = ctx.attrs.GetInt("rank");
  if (rank < 0 || rank >= ranks) {
    return InvalidArgument(ctx.op, ": rank is ", rank, "; expected 0..", ranks - 1);
  }
  if (bytes < 1)
    return InvalidArgument(ctx.op, ": bucket_bytes is ", bytes, "; expected 1 or more");
  const DType wire = ctx.attrs.GetDType("wire");
  if (wire == DType::kF32 || IsLow(wire)) return std::vector<ir::ValueType>{};
  return InvalidArgument(ctx.op, ": wire is ", Name(wire), "; expected f32, f16 or bf16");
}

void RegisterDataParallelMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord(
      "data_parallel",
      "Asks insert-all-reduce for gradients that are reduced over the processes of a job.");
  r.attrs = {Required("ranks", ir::AttrType::kInt, "processes; of one nothing is reduced"),
             Optional("bucket_bytes", int64_t{25} << 20, "of gradients that travel together"),
             Optional("reduction", std::string("mean"), "\"mean\" or \"sum\" over the ranks"),
             Optional("wire", DType::kF32, "f32, f16 or bf16, in which gradients travel"),
             Optional("sync_batch_norm", false,
                      "whether batch norms with running statistics take those of all ranks"),
             Optional("shard_optimizer", false,
                      "whether gradients go to the owners that optimizers name alone"),
             Optional("rank", int64_t{0}, "this one's number, where gradients go to owners")};
  r.infer = InferDataParallel;
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

Types InferMemoryBudget(const InferContext& ctx) {
  const int64_t bytes = ctx.attrs.GetInt("bytes");
  if (bytes > 0) return std::vector<ir::ValueType>{};
  return InvalidArgument(ctx.op, ": bytes is ", bytes, "; expected 1 or more");
}

void RegisterMemoryBudgetMarker(ir::OpRegistry& registry) {
  ir::OpRecord r = MarkerRecord(
      "memory_budget",
      "Asks rematerialise to make values anew for the backward pass where the step takes more.");
  r.attrs = {Required("bytes", ir::AttrType::kInt, "of working memory")};
  r.infer = InferMemoryBudget;
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

// A wish that says all by being there.
void RegisterWish(ir::OpRegistry& registry, const char* name, const char* doc) {
  ir::OpRecord r = MarkerRecord(name, doc);
  r.infer = [](const InferContext&) -> Types { return std::vector<ir::ValueType>{}; };
  r.has_side_effect = true;
  AddOp(registry, std::move(r));
}

}  // namespace

void Register_markers(ir::OpRegistry& registry) {
  RegisterDifferentiationMarkers(registry);
  RegisterOptimizerMarker(registry);
  RegisterScalerMarker(registry);
  RegisterAmpMarker(registry);
  RegisterF8Marker(registry);
  RegisterNumericsMarker(registry);
  RegisterAccumulationMarker(registry);
  RegisterDataParallelMarker(registry);
  RegisterMemoryBudgetMarker(registry);
  RegisterWish(registry, "no_fusion", "Asks fuse to leave every node by itself.");
  RegisterWish(registry, "no_packing",
               "Asks pack-weights to let kernels read weights as they lie.");
  RegisterWish(
      registry, "hold_cheap_values",
      "Asks rematerialise to make nothing anew that neither a module nor a budget asks for.");
}

}  // namespace halftone::ops
