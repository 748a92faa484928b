#include "halftone/graph/nn/graph.h"

#include <algorithm>
#include <cmath>

#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"
#include "halftone/graph/nn/data_parallel.h"
#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/scaler_watch.h"
#include "halftone/graph/nn/shards.h"
#include "halftone/graph/nn/window_sums.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/passes/amp/report.h"

namespace halftone::nn {
namespace {

absl::Status CheckOverlap(const std::string& name, const CompiledStep& step,
                          absl::Span<const Tensor> in, absl::Span<const Tensor> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto overlaps = [&out, i](const Tensor& other) {
      return other.num_bytes() != 0 && out[i].address() == other.address();
    };
    if (std::any_of(in.begin(), in.end(), overlaps) ||
        std::any_of(out.begin(), out.begin() + static_cast<int64_t>(i), overlaps)) {
      return InvalidArgument("graph @", name, ": output ", i, " (", step.outputs[i].ToString(),
                             ") shares its memory with an input or another output");
    }
  }
  return absl::OkStatus();
}

// Whether ranks have sums of gradients that they have not reduced yet.
bool HasWindowOfRanks(const Graph& graph) {
  return IsDataParallel(graph.config) && graph.accumulated_micro_batches() > 0;
}

}  // namespace

Graph::Graph(std::string name) : impl_(std::make_unique<Impl>(std::move(name))) {}

Graph::~Graph() = default;

runtime::StateLock Graph::Lock() const { return impl_->declared.Lock(); }

runtime::StateLock Graph::TryLock() const {
  return runtime::StateLock(impl_->declared.store().guards(), std::try_to_lock);
}

absl::StatusOr<std::vector<Tensor>> Graph::operator()(absl::Span<const Tensor> in) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const auto describe = [this](const Values& values) { return build(values); };
  HT_ASSIGN_OR_RETURN(CompiledStep * step, impl_->Prepare(config, describe, in));
  std::vector<Tensor> out;
  for (const ir::ValueType& type : step->outputs) {
    HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type.dtype, type.shape));
    out.push_back(std::move(tensor));
  }
  step->SetOutputs(out);
  HT_RETURN_IF_ERROR(impl_->Execute(*step, in, config));
  return out;
}

absl::Status Graph::Run(absl::Span<const Tensor> in, absl::Span<Tensor> out) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const auto describe = [this](const Values& values) { return build(values); };
  HT_ASSIGN_OR_RETURN(CompiledStep * step, impl_->Prepare(config, describe, in));
  if (out.size() != step->outputs.size()) {
    return InvalidArgument("graph @", name(), ": got ", out.size(), " output tensors, expected ",
                           step->outputs.size());
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const ir::ValueType& type = step->outputs[i];
    if (!out[i].defined() || out[i].dtype() != type.dtype || out[i].shape() != type.shape) {
      return InvalidArgument("graph @", name(), ": output ", i, ": got ",
                             out[i].defined() ? out[i].TypeString() : "an undefined tensor",
                             ", expected ", type.ToString());
    }
  }
  HT_RETURN_IF_ERROR(CheckOverlap(name(), *step, in, out));
  step->SetOutputs(out);
  return impl_->Execute(*step, in, config);
}

absl::Status Graph::compile(absl::Span<const Tensor> in) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const auto describe = [this](const Values& values) { return build(values); };
  return impl_->Prepare(config, describe, in).status();
}

absl::Status Graph::flush() {
  HT_RETURN_IF_ERROR(internal::CheckMayChange(impl_->declared.info(), "flush"));
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(impl_->CheckNoAverages("flush"));
  return impl_->Flush(config);
}

uint64_t Graph::accumulated_micro_batches() const {
  const runtime::StateLock lock = Lock();
  return impl_->under_way.counts().micro_batches;
}

absl::Status Graph::synchronize() {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  impl_->under_way.Settle();
  return impl_->under_way.TakeError();
}

void Graph::to(Device device, Loc loc) {
  const runtime::StateLock lock = Lock();
  if (!internal::MayChange(impl_->declared.info(), "to", loc)) return;
  if (device == impl_->device) return;
  impl_->KeepSteps(0);
  impl_->device = device;
}

Device Graph::device() const {
  const runtime::StateLock lock = Lock();
  return impl_->device;
}

void Graph::train(Loc loc) {
  const runtime::StateLock lock = Lock();
  if (internal::MayChange(impl_->declared.info(), "train", loc)) impl_->training = true;
}

void Graph::eval(Loc loc) {
  const runtime::StateLock lock = Lock();
  if (internal::MayChange(impl_->declared.info(), "eval", loc)) impl_->training = false;
}

bool Graph::is_training() const {
  const runtime::StateLock lock = Lock();
  return impl_->training;
}

bool Graph::last_step_skipped() const {
  const runtime::StateLock lock = Lock();
  impl_->under_way.Settle();
  const auto skipped = [](const OptimizerEntry& o) { return !o.last.applied; };
  return std::any_of(impl_->declared.optimizers().begin(), impl_->declared.optimizers().end(),
                     skipped);
}

double Graph::grad_norm() const {
  const runtime::StateLock lock = Lock();
  impl_->under_way.Settle();
  if (impl_->declared.optimizers().empty()) return std::nan("");
  double sum = 0;
  for (const OptimizerEntry& optimizer : impl_->declared.optimizers()) {
    const double norm = optimizer.last.grad_norm;
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

uint64_t Graph::run_count() const {
  const runtime::StateLock lock = Lock();
  return impl_->under_way.counts().training;
}

std::string Graph::traced_text() const {
  const runtime::StateLock lock = Lock();
  const CompiledStep* step = impl_->cache.last();
  if (step == nullptr) return "";
  const std::string text = TextOf(*step->traced, true);
  return step->modes_remark.empty() ? text : Concat(text, "// ", step->modes_remark, "\n");
}

std::string Graph::compiled_text() const {
  const runtime::StateLock lock = Lock();
  const CompiledStep* step = impl_->cache.last();
  if (step == nullptr) return "";
  const std::string text = TextOf(step->executable->graph());
  return step->update == nullptr ? text : Concat(text, TextOf(step->update->executable->graph()));
}

const ir::Graph* Graph::compiled_graph() const {
  const runtime::StateLock lock = Lock();
  const CompiledStep* step = impl_->cache.last();
  return step == nullptr ? nullptr : &step->executable->graph();
}

void Graph::set_profile(Profile profile) {
  const runtime::StateLock lock = Lock();
  impl_->under_way.Settle();
  for (const auto& step : impl_->cache.steps()) {
    step->executable->set_profile(profile);
    if (step->update != nullptr) step->update->executable->set_profile(profile);
  }
  impl_->profile = std::move(profile);
}

std::string Graph::kernel_log() const {
  const runtime::StateLock lock = Lock();
  const CompiledStep* step = impl_->cache.last();
  if (step == nullptr) return "";
  const std::string& log = step->executable->kernel_log();
  return step->update == nullptr ? log : Concat(log, step->update->executable->kernel_log());
}

std::string Graph::amp_summary() const {
  const runtime::StateLock lock = Lock();
  const CompiledStep* step = impl_->cache.last();
  return step == nullptr ? "" : passes::Summary(ReportAmp(*step, impl_->device));
}

std::string Graph::amp_table() const {
  const runtime::StateLock lock = Lock();
  const CompiledStep* step = impl_->cache.last();
  return step == nullptr ? "" : passes::ToText(ReportAmp(*step, impl_->device));
}

std::vector<std::string> Graph::notes() const {
  const runtime::StateLock lock = Lock();
  impl_->under_way.Settle();
  return impl_->notes.texts();
}

void Graph::debug(int level) {
  const runtime::StateLock lock = Lock();
  impl_->debug = level;
  impl_->notes.set_print(level >= 1);
}

size_t Graph::arena_bytes() const {
  const runtime::StateLock lock = Lock();
  return impl_->arena->size();
}

const std::string& Graph::name() const { return impl_->declared.name(); }
const absl::Status& Graph::status() const { return impl_->declared.status(); }
absl::Status Graph::TakeStatus() { return impl_->declared.TakeStatus(); }

std::string Graph::first_nonfinite_param() const {
  const runtime::StateLock lock = Lock();
  return impl_->state.FirstNonFinite();
}

absl::StatusOr<std::optional<NonFiniteNode>> Graph::first_nonfinite_node(
    absl::Span<const Tensor> in) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  const auto describe = [this](const Values& values) { return build(values); };
  HT_ASSIGN_OR_RETURN(const CompiledStep* step, impl_->Prepare(config, describe, in));
  return impl_->FirstNonFiniteNode(*step, in);
}

absl::Status Graph::initialize() {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  return impl_->state.Initialize(config.seed);
}

absl::StatusOr<StateDict> Graph::TakeState(int to, bool for_checkpoint) {
  const runtime::StateLock lock = Lock();
  const auto own = [&]() -> absl::StatusOr<StateDict> {
    HT_RETURN_IF_ERROR(lock.status());
    if (for_checkpoint) HT_RETURN_IF_ERROR(impl_->CheckNoAverages("save_checkpoint"));
    return impl_->state.Save(config.seed);
  };
  absl::StatusOr<StateDict> state = own();
  const bool has_window = for_checkpoint && HasWindowOfRanks(*this);
  if (impl_->declared.state_owners().empty() && !has_window) return state;
  distributed::Communicator& world = distributed::World();
  HT_RETURN_IF_ERROR(world.Agree(state.status(), "gathering state"));
  HT_RETURN_IF_ERROR(world.Agree(GatherState(impl_->declared, to, "", *state), "gathering state"));
  if (has_window) {
    HT_RETURN_IF_ERROR(
        world.Agree(GatherWindow(impl_->declared, config, *state), "gathering state"));
  }
  return state;
}

absl::StatusOr<StateDict> Graph::state_dict() { return TakeState(-1, /*for_checkpoint=*/false); }

absl::StatusOr<LoadReport> Graph::load_state_dict(const StateDict& state, bool strict) {
  return load_state_dict(state, LoadOptions{.strict = strict});
}

absl::StatusOr<LoadReport> Graph::load_state_dict(const StateDict& state,
                                                  const LoadOptions& options) {
  HT_RETURN_IF_ERROR(internal::CheckMayChange(impl_->declared.info(), "load_state_dict"));
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(impl_->CheckNoAverages("load_state_dict"));
  NoteScales(impl_->declared);
  const auto report = impl_->state.Load(state, options, config);
  NoteScales(impl_->declared, /*are_set=*/true);
  return report;
}

absl::Status Graph::save_checkpoint(const std::string& path,
                                    const std::map<std::string, std::string>& metadata) {
  // One file has the state of all ranks: they have the same, or give rank 0 what it lacks.
  const bool writes = !IsDataParallel(config) || distributed::Rank() == 0;
  const bool gathers = !impl_->declared.state_owners().empty() || HasWindowOfRanks(*this);
  absl::Status saved;
  if (writes || gathers) {
    runtime::Checkpoint checkpoint;
    checkpoint.metadata = metadata;
    // Without a lock while the file is written: steps of other threads do not wait for a disk.
    absl::StatusOr<StateDict> state = TakeState(0, /*for_checkpoint=*/true);
    saved = state.status();
    if (!saved.ok() && gathers) return saved;  // that of all
    if (saved.ok() && writes) {
      checkpoint.tensors = *std::move(state);
      saved = runtime::WriteCheckpoint(path, checkpoint);
    }
  }
  return AgreeOn(config, saved, "save_checkpoint");
}

absl::StatusOr<LoadReport> Graph::load_checkpoint(const std::string& path, bool strict,
                                                  std::map<std::string, std::string>* metadata) {
  return load_checkpoint(path, LoadOptions{.strict = strict}, metadata);
}

absl::StatusOr<LoadReport> Graph::load_checkpoint(const std::string& path,
                                                  const LoadOptions& options,
                                                  std::map<std::string, std::string>* metadata) {
  absl::StatusOr<runtime::Checkpoint> read = runtime::ReadCheckpoint(path);
  HT_RETURN_IF_ERROR(AgreeOn(config, read.status(), "load_checkpoint"));
  runtime::Checkpoint checkpoint = *std::move(read);
  absl::StatusOr<LoadReport> report = load_state_dict(checkpoint.tensors, options);
  if (!report.ok()) report = Annotate(report.status(), path + ": ");
  HT_RETURN_IF_ERROR(AgreeOn(config, report.status(), "load_checkpoint"));
  if (metadata != nullptr) *metadata = std::move(checkpoint.metadata);
  return report;
}

void Graph::add_module(const std::string& name, Module& module, Loc loc) {
  impl_->declared.AddModule(name, module, loc);
}

void Graph::add_parameter(const std::string& name, const Parameter& parameter, Loc loc) {
  impl_->declared.AddParameter(name, parameter, loc);
}

std::vector<std::pair<std::string, Parameter>> Graph::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> named;
  for (const auto& variable : impl_->declared.NamedVariables()) {
    const bool is_parameter = variable.second.storage()->kind() == ir::VariableKind::kParameter;
    if (is_parameter) named.push_back(variable);
  }
  return named;
}

optim::ParameterList Graph::parameters() const {
  return internal::DistinctStorages(named_parameters());
}

ParameterSplit Graph::split_parameters(const std::vector<std::string>& patterns, Loc loc) {
  absl::StatusOr<ParameterSplit> split = nn::split_parameters(named_parameters(), patterns);
  impl_->declared.Fail(loc, split.status());
  return split.ok() ? *std::move(split) : ParameterSplit();
}

OptimizerHandle Graph::add_optimizer(const optim::Optimizer& optimizer, Loc loc) {
  return OptimizerHandle(this, impl_->declared.AddOptimizer(optimizer, loc));
}

PlateauHandle Graph::add_plateau(const OptimizerHandle& optimizer,
                                 const optim::ReduceLROnPlateau& plateau, Loc loc) {
  const std::string name = optimizer.graph_ == this ? optimizer.name() : "";
  impl_->declared.AddPlateau(name, plateau, loc);
  return PlateauHandle(this, name);
}

ScalerHandle Graph::add_scaler(const amp::GradScaler& scaler, Loc loc) {
  return ScalerHandle(this, impl_->declared.AddScaler(scaler, loc));
}

ScalerHandle Graph::set_grad_scaler(const amp::GradScaler& scaler, Loc loc) {
  return ScalerHandle(this, impl_->declared.SetGradScaler(scaler, loc));
}

std::string Graph::Share(const ScalerHandle& shared, Loc loc) {
  if (shared.graph_ == nullptr) return impl_->declared.ShareScaler(nullptr, nullptr, loc);
  const Declaration& owner = shared.graph_->impl_->declared;
  const runtime::StateLock lock = owner.Lock();
  return impl_->declared.ShareScaler(owner.FindScaler(shared.name()), &owner, loc);
}

ScalerHandle Graph::add_scaler(const ScalerHandle& shared, Loc loc) {
  return ScalerHandle(this, Share(shared, loc));
}

ScalerHandle Graph::set_grad_scaler(const ScalerHandle& shared, Loc loc) {
  return ScalerHandle(this,
                      impl_->declared.SetDefaultScaler([&] { return Share(shared, loc); }, loc));
}

ScalerHandle Graph::grad_scaler() { return ScalerHandle(this, ""); }

}  // namespace halftone::nn
