#include "halftone/graph/nn/graph_impl.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "halftone/distributed/distributed.h"
#include "halftone/graph/nn/data_parallel.h"
#include "halftone/graph/nn/graph_dump.h"
#include "halftone/graph/nn/scaler_watch.h"
#include "halftone/graph/nn/shards.h"
#include "halftone/graph/nn/tracer.h"
#include "halftone/graph/nn/window_sums.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::nn {
namespace {

absl::Status CheckInputs(const std::string& name, absl::Span<const Tensor> in) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) {
      return InvalidArgument("graph @", name, ": input ", i, " is an undefined tensor");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAccumulation(const StepConfig& config) {
  for (const auto& [what, count] :
       {std::pair{"set_gradient_accumulation_steps", config.gradient_accumulation_steps()},
        {"accumulate_calls", config.accumulated_calls()}}) {
    if (count >= 1) continue;
    return InvalidArgument("config.", what, "(", count, "); expected 1 or more");
  }
  return absl::OkStatus();
}

}  // namespace

Graph::Impl::Impl(std::string name)
    : declared(std::move(name), [this] { KeepSteps(0); }),
      notes(declared.name()),
      under_way([this](bool ok) { AfterTraining(ok); }),
      state(declared, under_way.counts()),
      accumulation(under_way, state) {}

absl::StatusOr<CompiledStep*> Graph::Impl::Prepare(GraphConfig& config, Build build,
                                                   absl::Span<const Tensor> in) {
  HT_RETURN_IF_ERROR(declared.status());
  if (internal::Trace::Of(declared.info()) != nullptr) {
    return FailedPrecondition("graph @", declared.name(), " was called inside its own build()");
  }
  if (training) HT_RETURN_IF_ERROR(CheckNoAverages("a training step"));
  HT_RETURN_IF_ERROR(declared.UpdateNames().status());
  HT_RETURN_IF_ERROR(CheckInputs(declared.name(), in));
  if (declared.TakeRuleChanges()) KeepSteps(0);
  const size_t mode = modes.Read(declared, training);
  const size_t limit = static_cast<size_t>(std::max(config.cache_size, 1));
  if (CompiledStep* found = cache.Find(in, config, training, mode); found != nullptr) {
    if (cache.size() > limit) KeepSteps(limit);
    return found;
  }
  HT_ASSIGN_OR_RETURN(std::unique_ptr<CompiledStep> step, Compile(config, build, in, mode));
  step->dropped_another = cache.size() >= limit;
  if (step->dropped_another) KeepSteps(limit - 1);
  return cache.Add(std::move(step));
}

absl::Status Graph::Impl::DumpFirst(CompiledStep& step, const GraphConfig& config) {
  if (step.dump_dir.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(StateDict variables, state.Save(config.seed));
  if (!step.training) variables[kRunCount] = CountTensor(under_way.counts().evaluation);
  HT_RETURN_IF_ERROR(DumpStart(step, variables));
  step.dump_dir.clear();
  return absl::OkStatus();
}

absl::Status Graph::Impl::Execute(CompiledStep& step, absl::Span<const Tensor> in,
                                  const GraphConfig& config) {
  step.SetInputs(in);
  if (step.training) NoteScalesBefore(declared);
  notes.AddCompilesAnew(step, config.cache_size);
  HT_RETURN_IF_ERROR(DumpFirst(step, config));
  const uint64_t before = under_way.counts().training;
  absl::Status ran = accumulation.Run(step);
  if (ran.ok()) {
    if (!step.training) return ran;
    if (accumulation.EndsWith(step)) {
      ran = Update(config);
    } else if (step.update != nullptr) {
      return ran;
    }
  }
  const bool has_run = ran.ok();
  const absl::Status status = AfterUpdate(std::move(ran), before);
  return status.ok() || !has_run ? status : Explain(status, step, in);
}

absl::Status Graph::Impl::Update(const GraphConfig& config) {
  HT_RETURN_IF_ERROR(DumpFirst(*accumulation.update(), config));
  return accumulation.Update();
}

absl::Status Graph::Impl::Flush(const GraphConfig& config) {
  HT_RETURN_IF_ERROR(declared.status());
  const RunCounts& counts = under_way.counts();
  if (counts.micro_batches == 0) return absl::OkStatus();
  if (declared.TakeRuleChanges()) KeepSteps(0);
  if (accumulation.update() == nullptr) {
    return FailedPrecondition("flush: graph @", declared.name(), " has the gradients of ",
                              counts.micro_batches, " micro-batches and no compiled step to ",
                              "update by; expected a call or compile() before");
  }
  return AfterUpdate(Update(config), counts.training);
}

absl::Status Graph::Impl::AfterUpdate(absl::Status ran, uint64_t before) {
  if (ran.ok()) {
    if (!under_way.any()) {
      NoteScales(declared);
      NoteStuckScalers(declared, state, notes);
    }
    return CheckSkips(declared, state);
  }
  if (under_way.counts().training != before) {
    // What earlier steps tell of the optimizers comes first.
    under_way.Settle();
    AfterTraining(false);
  }
  return ran;
}

void Graph::Impl::AfterTraining(bool ok) {
  if (ok) return NoteStuckScalers(declared, state, notes);
  for (OptimizerEntry& optimizer : declared.optimizers()) optimizer.last.applied = false;
}

void Graph::Impl::KeepSteps(size_t count) {
  under_way.Settle();
  cache.Keep(count);
  if (count == 0) accumulation.Forget();
}

absl::Status Graph::Impl::AddAutomaticScaler(const GraphConfig& config) {
  if (!declared.MayGetAutomaticScaler(config)) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const std::optional<DType> low, LowType(config));
  if (low != DType::kF16) return absl::OkStatus();
  declared.SetAutomaticScaler();
  return declared.status();
}

absl::StatusOr<std::optional<DType>> Graph::Impl::LowType(const GraphConfig& config) {
  if (!config.amp_enabled()) return std::optional<DType>();
  if (config.amp_policy().dtype.has_value()) {
    const DType dtype = *config.amp_policy().dtype;
    if (amp::IsPolicyDType(dtype)) return std::optional<DType>(dtype);
    return InvalidArgument("enable_amp: dtype is ", Name(dtype), "; expected ", amp::kPolicyDTypes);
  }
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(device));
  std::string reason;
  const DType preferred = target->PreferredLowType(&reason);
  if (IsLow(preferred)) return std::optional<DType>(preferred);
  notes.Add(NoteKind::kNoLowType, Concat("amp: f32 throughout: ", reason));
  return std::optional<DType>();
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Graph::Impl::Trace(GraphConfig& config, Build build,
                                                              absl::Span<const ir::ValueType> in,
                                                              size_t* num_outputs) {
  HT_ASSIGN_OR_RETURN(const std::optional<DType> low, LowType(config));
  if (training) HT_RETURN_IF_ERROR(AddAutomaticScaler(config));
  for (int attempt = 0; attempt < 2; ++attempt) {
    HT_ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> traced,
                        TraceOnce(config, build, in, low, num_outputs));
    if (traced != nullptr) return traced;
  }
  return FailedPrecondition("graph @", declared.name(),
                            ": build() assigns other parameters at every call; ",
                            "expected the same, or none");
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Graph::Impl::TraceOnce(
    GraphConfig& config, Build build, absl::Span<const ir::ValueType> in, std::optional<DType> low,
    size_t* num_outputs) {
  const GraphConfig before = config;
  // Not with a NaN in it, which differs from itself; whoever reads it says so.
  const bool comparable = before == config;
  Tracer tracer(declared, before, training, low, notes);
  const Values outputs = build(tracer.Inputs(in));
  const bool config_changed = comparable && before != config;
  config = before;
  // Before the errors: a parameter that build() assigned had no name yet.
  HT_ASSIGN_OR_RETURN(const bool renamed, declared.UpdateNames());
  if (renamed) return nullptr;
  HT_RETURN_IF_ERROR(tracer.status());
  if (config_changed) {
    return FailedPrecondition("graph @", declared.name(),
                              ": build() changed the configuration, though it only ",
                              "describes the step; expected the change before the call");
  }
  *num_outputs = outputs.size();
  return tracer.Finish(outputs);
}

absl::StatusOr<std::unique_ptr<CompiledStep>> Graph::Impl::Compile(GraphConfig& config, Build build,
                                                                   absl::Span<const Tensor> in,
                                                                   size_t mode) {
  auto step = std::make_unique<CompiledStep>();
  step->training = training;
  step->config = config;
  step->modes = mode;
  if (training) step->modes_remark = ModesRemark(declared.info());
  if (training && !declared.optimizers().empty()) {
    step->micro_batches = static_cast<size_t>(config.gradient_accumulation_steps());
  }
  for (const Tensor& tensor : in) step->inputs.push_back({tensor.dtype(), tensor.shape()});
  size_t num_outputs = 0;
  HT_ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> traced,
                      TraceCall(config, build, in, step->micro_batches, &num_outputs));
  if (training && IsDataParallel(config)) HT_RETURN_IF_ERROR(PlaceState(config));
  HT_RETURN_IF_ERROR(Join(*step, MakeExecutables(*step, std::move(traced), num_outputs)));
  notes.AddSurprises(*step, device);
  if (debug >= 3) {
    std::fprintf(stderr, "%s%s", TextOf(*step->traced, true).c_str(),
                 TextOf(step->executable->graph()).c_str());
  }
  return step;
}

absl::StatusOr<std::unique_ptr<ir::Graph>> Graph::Impl::TraceCall(GraphConfig& config, Build build,
                                                                  absl::Span<const Tensor> in,
                                                                  size_t micro_batches,
                                                                  size_t* num_outputs) {
  const auto trace = [&]() -> absl::StatusOr<std::unique_ptr<ir::Graph>> {
    HT_RETURN_IF_ERROR(CheckAccumulation(config));
    absl::StatusOr<std::vector<ir::ValueType>> types = MicroBatchTypes(in, micro_batches);
    if (!types.ok()) return Annotate(types.status(), Concat("graph @", declared.name(), ": "));
    return Trace(config, build, *types, num_outputs);
  };
  if (training && config.data_parallel_options().has_value() && distributed::IsForgotten()) {
    return FailedPrecondition(
        "graph @", declared.name(), ": config.data_parallel in one of several ",
        "processes that would each train alone; expected a call of ", "distributed::Init before");
  }
  if (training && !IsDataParallel(config) && !declared.state_owners().empty()) {
    return FailedPrecondition("graph @", declared.name(), ": each rank has the optimizers' state ",
                              "of some parameters alone (data_parallel.shard_optimizer); expected ",
                              "config.data_parallel also in this call");
  }
  absl::StatusOr<std::unique_ptr<ir::Graph>> traced = trace();
  if (!training || !IsDataParallel(config)) return traced;
  HT_RETURN_IF_ERROR(AgreeOn(config, traced.status(), "the end of a trace"));
  HT_RETURN_IF_ERROR(CompareTraces(**traced, config, device, under_way.counts().micro_batches));
  HT_RETURN_IF_ERROR(JoinOnDevice(device));
  MakeOwn(**traced);
  return traced;
}

absl::Status Graph::Impl::MakeExecutables(CompiledStep& step, std::unique_ptr<ir::Graph> traced,
                                          size_t num_outputs) {
  const bool has_results = traced->outputs().size() > num_outputs;
  step.traced = traced->Clone();
  HT_RETURN_IF_ERROR(state.StartAverages(step.config.seed));
  HT_RETURN_IF_ERROR(MakeExecutable(step, std::move(traced)));
  for (size_t i = 0; i < num_outputs; ++i) {
    step.outputs.push_back(JoinedType(step.executable->output_types()[i], step.micro_batches));
  }
  if (has_results && step.config.accumulates()) {
    HT_ASSIGN_OR_RETURN(step.update, UpdateOf(step));
    accumulation.Offer(step);
  } else if (has_results) {
    TakeResults(step);
  }
  return absl::OkStatus();
}

absl::Status Graph::Impl::PlaceState(const StepConfig& config) {
  if (!ShardsState(config)) {
    if (declared.state_owners().empty()) return absl::OkStatus();
    KeepSteps(0);
    return AgreeOn(config, UnshardState(declared), "the end of sharded state");
  }
  const StateOwners owners = AssignOwners(declared, distributed::Size());
  if (owners == declared.state_owners()) return absl::OkStatus();
  KeepSteps(0);
  return AgreeOn(config, ShardState(declared, owners), "sharding state");
}

absl::Status Graph::Impl::Join(const CompiledStep& step, const absl::Status& compiled) {
  if (!step.training || !IsDataParallel(step.config)) return compiled;
  HT_RETURN_IF_ERROR(AgreeOn(step.config, compiled, "the end of a compilation"));
  std::string exchanges;
  std::vector<ir::Variable> variables;
  for (const CompiledStep* part : {&step, static_cast<const CompiledStep*>(step.update.get())}) {
    if (part == nullptr) continue;
    exchanges += ExchangesOf(part->executable->graph());
    const std::vector<ir::Variable>& own = part->executable->graph().variables();
    variables.insert(variables.end(), own.begin(), own.end());
  }
  HT_RETURN_IF_ERROR(CompareExchanges(exchanges, declared.name()));
  std::set<std::string> own;  // which no other rank has
  for (const ShardedVariable& sharded : ShardedState(declared)) own.insert(sharded.name);
  for (const auto& window : OwnWindowState(declared)) own.insert(window.first);
  std::erase_if(variables, [&](const ir::Variable& v) { return own.contains(v.name); });
  return TakeStateOfFirst(variables, declared.store(), under_way.counts());
}

absl::Status Graph::Impl::MakeExecutable(CompiledStep& step, std::unique_ptr<ir::Graph> traced) {
  const bool lowers = passes::FindMarker(*traced, "amp") != nullptr;
  const StepConfig& config = step.config;
  runtime::CompileOptions options;
  options.device = device;
  options.seed = config.seed;
  options.every_stage = debug >= 1;
  options.own_passes = config.own_passes();
  options.dump_dir = DumpDir(config);
  if (!options.dump_dir.empty()) {
    options.dump_name = NextDumpName(options.dump_dir, traced->name());
    step.dump_dir = options.dump_dir + "/" + options.dump_name;
  }
  options.dump_remark = step.modes_remark;
  std::vector<std::string> pass_notes;
  options.notes = &pass_notes;
  std::map<std::string, std::string> unmatched_entries;
  options.unmatched_entries = &unmatched_entries;
  const size_t num_inputs = step.is_update ? 0 : step.inputs.size();
  HT_ASSIGN_OR_RETURN(step.executable,
                      runtime::Compile(std::move(traced), options, declared.store(), arena));
  step.executable->set_profile(profile);

  for (std::string& note : pass_notes) notes.Add(NoteKind::kPass, std::move(note));
  if (lowers) {
    // Of a graph that is to train, evaluation alone tells nothing: losses may be missing.
    const bool complete = training || declared.optimizers().empty();
    notes.AddEntries(config.amp_policy(), unmatched_entries, complete);
  }
  step.in.resize(num_inputs);
  step.out.resize(step.executable->output_types().size());
  step.buffers.resize(step.out.size());
  if (debug >= 1) {
    std::fprintf(stderr, "halftone: compiled @%s (%s): %zu kernels, arena %zu bytes\n",
                 step.executable->graph().name().c_str(), training ? "train" : "eval",
                 step.executable->steps().size(),
                 static_cast<size_t>(step.executable->plan().memory.arena_bytes));
  }
  return absl::OkStatus();
}

void Graph::Impl::TakeResults(CompiledStep& step) {
  size_t i = step.outputs.size();
  for (OptimizerEntry& entry : declared.optimizers()) {
    if (GivesGradNorm(declared, step.config, entry)) step.out[i++] = &entry.last.grad_norm;
    step.out[i++] = &entry.last.applied;
  }
}

absl::StatusOr<std::shared_ptr<CompiledStep>> Graph::Impl::UpdateOf(const CompiledStep& step) {
  const std::string ending = Concat(".", optim::kGradSumSlot);
  auto update = std::make_shared<CompiledStep>();
  for (const ir::Variable& variable : step.executable->graph().variables()) {
    if (variable.name.ends_with(ending)) update->sums.push_back(variable.name);
  }
  for (const std::unique_ptr<CompiledStep>& other : cache.steps()) {
    if (other->update == nullptr || !(other->config == step.config)) continue;
    if (other->update->sums == update->sums) return other->update;
  }
  update->is_update = true;
  update->config = step.config;
  update->modes_remark = step.modes_remark;
  update->traced = step.traced->Clone();
  update->traced->set_name(declared.name() + "_update");
  ir::Node* const marker = passes::FindMarker(*update->traced, "accumulation");
  marker->mutable_attrs().Set("part", std::string("update"));
  HT_RETURN_IF_ERROR(MakeExecutable(*update, update->traced->Clone()));
  TakeResults(*update);
  return update;
}

}  // namespace halftone::nn
