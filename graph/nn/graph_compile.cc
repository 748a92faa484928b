// Tracing and compiling the step for one input signature.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "halftone/graph/ir/text.h"
#include "halftone/graph/nn/canonical_order.h"
#include "halftone/graph/nn/graph_impl.h"
#include "halftone/passes/amp/policy_match.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::nn {
namespace {

std::string DumpDir(const GraphConfig& config) {
  if (!config.dump_dir.empty()) return config.dump_dir;
  const char* from_environment = std::getenv("HALFTONE_DUMP");
  return from_environment == nullptr ? "" : from_environment;
}

// A number for the next folder "<dir>/<name>_<number>" of this process: graphs may share a name.
int NextDumpNumber(const std::string& dir, const std::string& name) {
  static std::mutex mutex;
  static auto* const numbers = new std::map<std::string, int>();
  const std::lock_guard<std::mutex> lock(mutex);
  return (*numbers)[Concat(dir, "/", name)]++;
}

}  // namespace

void Graph::Impl::NoteEntries(const amp::Policy& policy,
                              const std::map<std::string, std::string>& unmatched) {
  const std::pair<ir::AmpClass, const std::vector<std::string>*> lists[] = {
      {ir::AmpClass::kAllow, &policy.allow},
      {ir::AmpClass::kInfer, &policy.infer},
      {ir::AmpClass::kClear, &policy.clear},
      {ir::AmpClass::kDeny, &policy.deny}};
  for (const auto& [amp_class, list] : lists) {
    for (const std::string& pattern : *list) {
      const std::string entry = amp::EntryText(amp_class, pattern);
      const auto found = unmatched.find(entry);
      if (found == unmatched.end()) {
        matched_entries.insert(entry);
        const auto noted = entry_notes.find(entry);
        if (noted == entry_notes.end()) continue;
        notes.Remove(noted->second);
        entry_notes.erase(noted);
      } else if (matched_entries.count(entry) == 0 && (training || optimizers.empty())) {
        // Of a graph that is to train, evaluation alone tells nothing: losses may be missing.
        if (entry_notes.emplace(entry, found->second).second) {
          AddNote(NoteKind::kPass, found->second);
        }
      }
    }
  }
}

absl::StatusOr<std::optional<DType>> Graph::Impl::LowType(const GraphConfig& config) {
  if (!config.amp_enabled()) return std::optional<DType>();
  if (config.amp_policy().dtype.has_value()) {
    const DType dtype = *config.amp_policy().dtype;
    if (IsLow(dtype)) return std::optional<DType>(dtype);
    return InvalidArgument("enable_amp: dtype is ", Name(dtype), "; expected f16 or bf16");
  }
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(device));
  std::string reason;
  const DType preferred = target->PreferredLowType(&reason);
  if (IsLow(preferred)) return std::optional<DType>(preferred);
  AddNote(NoteKind::kNoLowType, Concat("amp: f32 throughout: ", reason));
  return std::optional<DType>();
}

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

absl::StatusOr<std::unique_ptr<ir::Graph>> Graph::Impl::Trace(Graph& graph,
                                                              absl::Span<const Tensor> in,
                                                              size_t* num_outputs) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    HT_ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> traced, TraceOnce(graph, in, num_outputs));
    if (traced != nullptr) return traced;
  }
  return FailedPrecondition("graph @", name, ": build() assigns other parameters at every call; ",
                            "expected the same, or none");
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Graph::Impl::TraceOnce(Graph& graph,
                                                                  absl::Span<const Tensor> in,
                                                                  size_t* num_outputs) {
  HT_ASSIGN_OR_RETURN(const std::optional<DType> low, LowType(graph.config));
  if (training) HT_RETURN_IF_ERROR(AddAutomaticScaler(graph));
  auto traced = std::make_unique<ir::Graph>(name);
  internal::Trace trace(traced.get(), &store, &info, training, graph.config.seed);
  ir::Builder& builder = trace.builder();
  std::vector<Value> inputs;
  for (size_t i = 0; i < in.size(); ++i) {
    inputs.push_back(
        trace.Wrap(builder.Input(Concat("in", i), ir::ValueType{in[i].dtype(), in[i].shape()})));
  }
  const GraphConfig config = graph.config;
  // Not with a NaN in it, which differs from itself; whoever reads it says so.
  const bool comparable = config == graph.config;
  const Values outputs = graph.build(Values(std::move(inputs)));
  const bool config_changed = comparable && config != graph.config;
  graph.config = config;
  // Before the errors: a parameter that build() assigned had no name yet.
  HT_ASSIGN_OR_RETURN(const bool renamed, UpdateNames());
  if (renamed) return nullptr;
  HT_RETURN_IF_ERROR(builder.status());
  if (config_changed) {
    return FailedPrecondition("graph @", name,
                              ": build() changed the configuration, though it only ",
                              "describes the step; expected the change before the call");
  }
  builder.At({});
  if (low.has_value()) {
    for (std::string& note : trace.AmpNotes()) AddNote(NoteKind::kPass, std::move(note));
  }
  for (const Value& value : outputs) {
    if (!value.valid()) {
      return FailedPrecondition("graph @", name,
                                ": build() returned a value that no op of this call gave");
    }
    traced->outputs().push_back({"", trace.Unwrap(value, Loc::current()).value()});
  }
  *num_outputs = outputs.size();
  trace.EmitCommits();
  if (low.has_value()) {
    amp::Policy policy = graph.config.amp_policy();
    policy.dtype = low;
    policy.low_outputs = policy.low_outputs || graph.config.amp_low_outputs;
    builder.Root("amp", {}, policy.ToMarker());
  }
  if (graph.config.allow_tf32 || !graph.config.deterministic) {
    builder.Root(
        "numerics", {},
        {{"allow_tf32", graph.config.allow_tf32}, {"deterministic", graph.config.deterministic}});
  }
  if (training && !trace.has_backward() && !optimizers.empty()) {
    builder.At(internal::ToSourceLocation(optimizers[0].added_at));
    builder.Fail(FailedPrecondition(optimizers[0].name, ": build() called no backward(); expected ",
                                    "loss.backward(), or eval() to run without training"));
  }
  const bool trains = training && trace.has_backward();
  // No step would ever lower the scale of an automatic scaler that is too large for the gradients.
  const bool keeps_scale = trains || scalers.empty() || !scalers[0].automatic;
  if (!keeps_scale) LeaveGradientsUnscaled(*traced);
  if (trains || (trace.reads_scale() && keeps_scale)) EmitScalers(graph.config, builder);
  if (trains && optimizers.empty()) NoteUnreadBackward(*traced);
  if (trains) EmitOptimizers(graph.config, builder);
  HT_RETURN_IF_ERROR(builder.status());
  return internal::InCanonicalOrder(*traced);
}

void Graph::Impl::EmitScalers(const GraphConfig& config, ir::Builder& builder) {
  for (const ScalerEntry& entry : scalers) {
    ir::Attributes attrs = entry.scaler.ToMarker(entry.name, entry.automatic);
    attrs.Set("update_buffers_on_skip", config.update_buffers_on_skip);
    builder.NameNext(entry.name);
    builder.Root("scaler", {}, std::move(attrs));
  }
}

absl::Status Graph::Impl::CheckOptimizer(const GraphConfig& config, const OptimizerEntry& entry) {
  const optim::StepOptions& options = entry.optimizer.step_options();
  if (!options.scaler.empty() && FindScaler(options.scaler) == nullptr) {
    return NotFound(entry.name, ": this graph has no grad scaler \"", options.scaler, "\"");
  }
  const double clip = config.clip_grad_norm;
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

void Graph::Impl::DeclareUnused(const OptimizerEntry& entry, ir::Builder& builder) {
  constexpr size_t kNamed = 10;
  size_t unused = 0;
  std::string names;
  for (const std::string& parameter : entry.parameter_names) {
    if (builder.graph().FindVariable(parameter) != nullptr) continue;
    builder.Var(store.Find(parameter)->Describe(parameter));
    if (unused++ < kNamed) names += Concat(names.empty() ? "\"" : ", \"", parameter, "\"");
  }
  if (unused == 0) return;
  if (unused > kNamed) names += Concat(" and ", unused - kNamed, " more");
  AddNote(NoteKind::kUnusedParameters,
          Concat(entry.name, ": build() does not use ", names,
                 unused == 1 ? "; it stays as it is" : "; they stay as they are"));
}

void Graph::Impl::EmitOptimizers(const GraphConfig& config, ir::Builder& builder) {
  for (const OptimizerEntry& entry : optimizers) {
    builder.At(internal::ToSourceLocation(entry.added_at));
    const absl::Status checked = CheckOptimizer(config, entry);
    if (!checked.ok()) return builder.Fail(checked);
    builder.At({});
    DeclareUnused(entry, builder);
    std::vector<ir::Expr> results;  // of the first group; all groups have the same
    for (size_t group = 0; group < entry.optimizer.groups().size(); ++group) {
      // A tie made later may have left none.
      if (entry.optimizer.groups()[group].parameters.empty()) continue;
      ir::Attributes marker = entry.ToMarker(group);
      if (marker.GetString("scaler").empty()) marker.Set("scaler", info.default_scaler);
      marker.Set("clip_norm_of_all", config.clip_grad_norm);
      marker.Set("update_buffers_on_skip", config.update_buffers_on_skip);
      builder.NameNext(group == 0 ? entry.name : Concat(entry.name, ".group", group));
      std::vector<ir::Expr> made = builder.Make("optimizer", {}, std::move(marker));
      if (!builder.status().ok()) return;
      if (results.empty()) results = std::move(made);
    }
    if (GivesGradNorm(config, entry)) {
      builder.graph().outputs().push_back({entry.name + ".grad_norm", results[0].value()});
    }
    builder.graph().outputs().push_back({entry.name + ".applied", results[1].value()});
  }
}

bool Graph::Impl::GivesGradNorm(const GraphConfig& config, const OptimizerEntry& entry) {
  const optim::StepOptions& options = entry.optimizer.step_options();
  const ScalerEntry* scaler =
      FindScaler(options.scaler.empty() ? info.default_scaler : options.scaler);
  return config.track_grad_norm || config.clip_grad_norm > 0 || options.clip_norm > 0 ||
         options.skip_nonfinite || (scaler != nullptr && scaler->scaler.is_enabled());
}

absl::StatusOr<std::unique_ptr<CompiledStep>> Graph::Impl::CompileStep(
    Graph& graph, absl::Span<const Tensor> in) {
  auto step = std::make_unique<CompiledStep>();
  step->training = training;
  step->config = graph.config;
  step->modes = training ? modes.training : modes.evaluation;
  step->modes_remark = ModesRemark();
  for (const Tensor& tensor : in) step->inputs.push_back({tensor.dtype(), tensor.shape()});
  HT_ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> traced, Trace(graph, in, &step->num_outputs));
  const bool has_optimizers = traced->outputs().size() > step->num_outputs;
  const bool lowers = passes::FindMarker(*traced, "amp") != nullptr;
  step->traced = traced->Clone();

  runtime::CompileOptions options;
  options.device = device;
  options.seed = graph.config.seed;
  options.every_stage = debug >= 1;
  options.own_passes = graph.config.own_passes();
  options.dump_dir = DumpDir(graph.config);
  if (!options.dump_dir.empty()) {
    options.dump_name = Concat(name, "_", NextDumpNumber(options.dump_dir, name));
  }
  options.dump_remark = step->modes_remark;
  std::vector<std::string> pass_notes;
  options.notes = &pass_notes;
  std::map<std::string, std::string> unmatched_entries;
  options.unmatched_entries = &unmatched_entries;
  HT_ASSIGN_OR_RETURN(step->executable, runtime::Compile(std::move(traced), options, store, arena));
  step->executable->set_profile(profile);

  if (!options.dump_dir.empty()) step->dump_dir = options.dump_dir + "/" + options.dump_name;
  for (std::string& note : pass_notes) AddNote(NoteKind::kPass, std::move(note));
  if (lowers) NoteEntries(graph.config.amp_policy(), unmatched_entries);

  step->in.resize(in.size());
  step->out.resize(step->executable->output_types().size());
  step->buffers.resize(step->out.size());
  if (has_optimizers) {
    size_t i = step->num_outputs;
    for (OptimizerEntry& entry : optimizers) {
      if (GivesGradNorm(graph.config, entry)) step->out[i++] = &entry.last.grad_norm;
      step->out[i++] = &entry.last.applied;
    }
  }
  if (debug >= 1) {
    std::fprintf(stderr, "halftone: compiled @%s (%s): %zu kernels, arena %zu bytes\n",
                 name.c_str(), training ? "train" : "eval", step->executable->steps().size(),
                 static_cast<size_t>(step->executable->plan().memory.arena_bytes));
  }
  NoteSurprises(*step);
  if (debug >= 3) {
    std::fprintf(stderr, "%s%s", TextOf(*step->traced, true).c_str(),
                 TextOf(step->executable->graph()).c_str());
  }
  return step;
}

void Graph::Impl::NoteStuckScalers() {
  constexpr int64_t kStuckSkips = 5;
  const auto applied = [](const OptimizerEntry& o) { return o.last.applied; };
  if (std::all_of(optimizers.begin(), optimizers.end(), applied)) return;
  for (ScalerEntry& entry : scalers) {
    if (entry.consecutive_skips == nullptr || entry.stuck_is_noted) continue;
    const amp::GradScalerOptions& options = entry.scaler.options();
    const int64_t skips = *entry.consecutive_skips->value().data<int64_t>();
    const float scale = *entry.scale->value().data<float>();
    const bool is_stuck = !options.dynamic || scale <= static_cast<float>(options.min_scale);
    if (!is_stuck || skips == 0) {
      entry.stuck_since = -1;
    } else if (entry.stuck_since < 0 || skips < entry.stuck_since) {
      entry.stuck_since = skips;
    }
    if (entry.stuck_since < 0 || skips < entry.stuck_since + kStuckSkips) continue;
    entry.stuck_is_noted = true;
    AddNote(NoteKind::kStuckScaler,
            Concat(entry.name, ": ", skips, " steps in a row were skipped, the last ",
                   skips - entry.stuck_since, " at scale ", scale, ", which does not fall: ",
                   options.dynamic ? Concat("min_scale = ", options.min_scale)
                                   : std::string("dynamic = false"),
                   "; gradients that are finite at a lower scale need a lower ",
                   options.dynamic ? "min_scale" : "init_scale",
                   "; first non-finite gradient: ", FirstNonFinite()));
  }
}

absl::Status Graph::Impl::CheckSkips() const {
  for (const ScalerEntry& entry : scalers) {
    const int64_t limit = entry.scaler.options().max_consecutive_skips;
    if (limit == 0 || entry.consecutive_skips == nullptr) continue;
    const int64_t skips = *entry.consecutive_skips->value().data<int64_t>();
    if (skips > limit) {
      return amp::CheckConsecutiveSkips(entry.name, skips, limit, FirstNonFinite());
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::nn
