#include "halftone/graph/nn/tracer.h"

#include <utility>
#include <vector>

#include "halftone/distributed/distributed.h"
#include "halftone/graph/nn/canonical_order.h"
#include "halftone/graph/nn/data_parallel.h"
#include "halftone/graph/nn/shards.h"
#include "halftone/passes/memory/pack_weights.h"
#include "halftone/passes/rewrite/fuse.h"

namespace halftone::nn {
namespace {

// Takes the scaler from the `gradient` markers. Their outputs stay f32 for those who read them.
void LeaveGradientsUnscaled(ir::Graph& graph) {
  std::vector<ir::Node*> markers;
  for (const auto& node : graph.nodes()) {
    if (node->op().name == "gradient") markers.push_back(node.get());
  }
  ir::Builder builder(&graph);
  for (ir::Node* marker : markers) {
    marker->mutable_attrs().Set("scaler", std::string());
    for (int i = 0; i < marker->num_outputs(); ++i) {
      const DType wide = marker->output_type(i).dtype, own = marker->input_type(i + 1).dtype;
      if (wide == own) continue;
      marker->mutable_output_types()[static_cast<size_t>(i)].dtype = own;
      const ir::Value widened = builder.Cast(builder.Wrap(marker->output(i)), wide).value();
      graph.ReplaceUses(marker->output(i), widened);
      widened.node->set_input(0, marker->output(i));
    }
  }
}

}  // namespace

bool GivesGradNorm(const Declaration& declared, const StepConfig& config,
                   const OptimizerEntry& entry) {
  const optim::StepOptions& options = entry.optimizer.step_options();
  const ScalerEntry* scaler =
      declared.FindScaler(options.scaler.empty() ? declared.info().default_scaler : options.scaler);
  return config.track_grad_norm || config.clip_grad_norm > 0 || options.clip_norm > 0 ||
         options.skip_nonfinite || (scaler != nullptr && scaler->scaler().is_enabled());
}

Tracer::Tracer(const Declaration& declared, const StepConfig& config, bool training,
               std::optional<DType> low, GraphNotes& notes)
    : declared_(declared),
      config_(config),
      training_(training),
      low_(low),
      notes_(notes),
      traced_(std::make_unique<ir::Graph>(declared.name())),
      trace_(traced_.get(), &declared.store(), &declared.info(), training, config.seed) {}

Values Tracer::Inputs(absl::Span<const ir::ValueType> in) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < in.size(); ++i) {
    inputs.push_back(trace_.Wrap(trace_.builder().Input(Concat("in", i), in[i])));
  }
  return Values(std::move(inputs));
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Tracer::Finish(const Values& outputs) {
  ir::Builder& builder = trace_.builder();
  HT_RETURN_IF_ERROR(builder.status());
  builder.At({});
  if (low_.has_value()) {
    for (std::string& note : trace_.AmpNotes()) notes_.Add(NoteKind::kPass, std::move(note));
  }
  for (const Value& value : outputs) {
    if (!value.valid()) {
      return FailedPrecondition("graph @", declared_.name(),
                                ": build() returned a value that no op of this call gave");
    }
    traced_->outputs().push_back({"", trace_.Unwrap(value, Loc::current()).value()});
  }
  trace_.EmitCommits();
  if (low_.has_value()) {
    amp::Policy policy = config_.amp_policy();
    policy.dtype = low_;
    policy.low_outputs = policy.low_outputs || config_.amp_low_outputs;
    builder.Root("amp", {}, policy.ToMarker());
  }
  if (config_.allow_tf32 || !config_.deterministic || config_.allow_low_weight_gradients) {
    builder.Root("numerics", {},
                 {{"allow_tf32", config_.allow_tf32},
                  {"deterministic", config_.deterministic},
                  {"low_weight_gradients", config_.allow_low_weight_gradients}});
  }
  if (!config_.allow_fusion) passes::ForbidFusion(*traced_);
  if (!config_.pack_weights) passes::ForbidPacking(*traced_);
  if (config_.memory_budget != 0) {
    builder.Root("memory_budget", {}, {{"bytes", config_.memory_budget}});
  }
  if (!config_.recompute_cheap_values) builder.Root("hold_cheap_values", {});
  if (training_ && !trace_.has_backward() && !declared_.optimizers().empty()) {
    builder.At(internal::ToSourceLocation(declared_.optimizers()[0].added_at));
    builder.Fail(FailedPrecondition(declared_.optimizers()[0].name,
                                    ": build() called no backward(); expected ",
                                    "loss.backward(), or eval() to run without training"));
  }
  const bool trains = training_ && trace_.has_backward();
  // No step would ever lower the scale of an automatic scaler that is too large for the gradients.
  const bool keeps_scale =
      trains || declared_.scalers().empty() || !declared_.scalers()[0].automatic;
  if (!keeps_scale) LeaveGradientsUnscaled(*traced_);
  if (trains || (trace_.reads_scale() && keeps_scale)) EmitScalers();
  if (trains && declared_.optimizers().empty()) notes_.AddUnreadBackward(*traced_);
  if (trains) EmitOptimizers();
  if (trains && !declared_.optimizers().empty()) {
    EmitAccumulation();
    EmitDataParallel();
  }
  HT_RETURN_IF_ERROR(builder.status());
  return internal::InCanonicalOrder(*traced_);
}

void Tracer::EmitScalers() {
  ir::Builder& builder = trace_.builder();
  for (const ScalerEntry& entry : declared_.scalers()) {
    ir::Attributes attrs = entry.scaler().ToMarker(entry.name, entry.automatic);
    attrs.Set("update_buffers_on_skip", config_.update_buffers_on_skip);
    builder.NameNext(entry.name);
    builder.Root("scaler", {}, std::move(attrs));
  }
}

absl::Status Tracer::CheckOptimizer(const OptimizerEntry& entry) const {
  const optim::StepOptions& options = entry.optimizer.step_options();
  if (!options.scaler.empty() && declared_.FindScaler(options.scaler) == nullptr) {
    return NotFound(entry.name, ": this graph has no grad scaler \"", options.scaler, "\"");
  }
  const double clip = config_.clip_grad_norm;
  if (!(clip >= 0 && clip <= MaxFinite(DType::kF32))) {
    return InvalidArgument("config.clip_grad_norm = ", clip,
                           "; expected a number >= 0 that is finite in f32 (0: off)");
  }
  if (clip > 0 && options.clip_norm > 0) {
    return InvalidArgument(entry.name, ": clip_norm = ", options.clip_norm,
                           " beside config.clip_grad_norm = ", clip, "; expected one of the two");
  }
  return absl::OkStatus();
}

void Tracer::DeclareUnused(const OptimizerEntry& entry) {
  ir::Builder& builder = trace_.builder();
  constexpr size_t kNamed = 10;
  size_t unused = 0;
  std::string names;
  for (const std::string& parameter : entry.parameter_names) {
    if (builder.graph().FindVariable(parameter) != nullptr) continue;
    builder.Var(declared_.store().Find(parameter)->Describe(parameter));
    if (unused++ < kNamed) names += Concat(names.empty() ? "\"" : ", \"", parameter, "\"");
  }
  if (unused == 0) return;
  if (unused > kNamed) names += Concat(" and ", unused - kNamed, " more");
  notes_.Add(NoteKind::kUnusedParameters,
             Concat(entry.name, ": build() does not use ", names,
                    unused == 1 ? "; it stays as it is" : "; they stay as they are"));
}

void Tracer::EmitOptimizers() {
  ir::Builder& builder = trace_.builder();
  const StateOwners owners =
      ShardsState(config_) ? AssignOwners(declared_, distributed::Size()) : StateOwners();
  for (const OptimizerEntry& entry : declared_.optimizers()) {
    builder.At(internal::ToSourceLocation(entry.added_at));
    const absl::Status checked = CheckOptimizer(entry);
    if (!checked.ok()) return builder.Fail(checked);
    builder.At({});
    DeclareUnused(entry);
    std::vector<ir::Expr> results;  // of the first group; all groups have the same
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      // A tie made later may have left none.
      if (entry.optimizer.groups()[group].parameters.empty()) continue;
      ir::Attributes marker = entry.ToMarker(group);
      if (marker.GetString("scaler").empty()) marker.Set("scaler", declared_.info().default_scaler);
      marker.Set("clip_norm_of_all", config_.clip_grad_norm);
      if (entry.optimizer.step_options().weights != optim::Weights::kDeclared) {
        marker.Set("seed", static_cast<int64_t>(config_.seed));
      }
      marker.Set("update_buffers_on_skip", config_.update_buffers_on_skip);
      if (!owners.empty()) {
        std::vector<int64_t> of_group;
        for (const std::string& parameter : entry.GroupNames(group)) {
          of_group.push_back(owners.at(declared_.store().Find(parameter).get()));
        }
        marker.Set("owners", of_group);
      }
      builder.NameNext(group == 0 ? entry.name : Concat(entry.name, ".group", group));
      std::vector<ir::Expr> made = builder.Make("optimizer", {}, std::move(marker));
      if (!builder.status().ok()) return;
      if (results.empty()) results = std::move(made);
    }
    if (GivesGradNorm(declared_, config_, entry)) {
      builder.graph().outputs().push_back({entry.name + ".grad_norm", results[0].value()});
    }
    builder.graph().outputs().push_back({entry.name + ".applied", results[1].value()});
  }
}

void Tracer::EmitAccumulation() {
  if (!config_.accumulates()) return;
  trace_.builder().Root("accumulation", {}, {{"part", std::string("accumulate")}});
}

void Tracer::EmitDataParallel() {
  if (!IsDataParallel(config_)) return;
  const DataParallel& options = *config_.data_parallel_options();
  const bool sums = options.reduction == DataParallel::Reduction::kSum;
  trace_.builder().Root("data_parallel", {},
                        {{"ranks", int64_t{distributed::Size()}},
                         {"bucket_bytes", options.bucket_bytes},
                         {"reduction", std::string(sums ? "sum" : "mean")},
                         {"wire", options.wire_dtype},
                         {"sync_batch_norm", options.sync_batch_norm},
                         {"shard_optimizer", options.shard_optimizer}});
}

}  // namespace halftone::nn
