#include "halftone/graph/nn/graph.h"

#include <algorithm>
#include <cmath>

#include "halftone/graph/ir/text.h"
#include "halftone/graph/nn/graph_impl.h"
#include "halftone/passes/amp/report.h"

namespace halftone::nn {

Graph::Graph(std::string name) : impl_(std::make_unique<Impl>()) { impl_->name = std::move(name); }

Graph::~Graph() = default;

runtime::StateLock Graph::Lock() const { return impl_->Lock(); }

runtime::StateLock Graph::TryLock() const {
  return runtime::StateLock(impl_->store.guards(), std::try_to_lock);
}

absl::StatusOr<std::vector<Tensor>> Graph::operator()(absl::Span<const Tensor> in) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_ASSIGN_OR_RETURN(CompiledStep * step, impl_->Prepare(*this, in));
  std::vector<Tensor> out;
  for (size_t i = 0; i < step->num_outputs; ++i) {
    const ir::ValueType& type = step->executable->output_types()[i];
    HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type.dtype, type.shape));
    out.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < in.size(); ++i) step->in[i] = in[i].raw();
  step->SetOutputs(out);
  HT_RETURN_IF_ERROR(impl_->Execute(*this, *step));
  return out;
}

absl::Status Graph::Run(absl::Span<const Tensor> in, absl::Span<Tensor> out) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  HT_ASSIGN_OR_RETURN(CompiledStep * step, impl_->Prepare(*this, in));
  if (out.size() != step->num_outputs) {
    return InvalidArgument("graph @", impl_->name, ": got ", out.size(),
                           " output tensors, expected ", step->num_outputs);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const ir::ValueType& type = step->executable->output_types()[i];
    if (!out[i].defined() || out[i].dtype() != type.dtype || out[i].shape() != type.shape) {
      return InvalidArgument("graph @", impl_->name, ": output ", i, ": got ",
                             out[i].defined() ? out[i].TypeString() : "an undefined tensor",
                             ", expected ", type.ToString());
    }
  }
  HT_RETURN_IF_ERROR(impl_->CheckOverlap(*step, in, out));
  for (size_t i = 0; i < in.size(); ++i) step->in[i] = in[i].raw();
  step->SetOutputs(out);
  return impl_->Execute(*this, *step);
}

absl::Status Graph::compile(absl::Span<const Tensor> in) {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  return impl_->Prepare(*this, in).status();
}

absl::Status Graph::synchronize() {
  const runtime::StateLock lock = Lock();
  HT_RETURN_IF_ERROR(lock.status());
  impl_->Settle();
  return std::exchange(impl_->late_error, absl::OkStatus());
}

void Graph::to(Device device, Loc loc) {
  const runtime::StateLock lock = Lock();
  if (!internal::MayChange(impl_->info, "to", loc)) return;
  if (device == impl_->device) return;
  impl_->DropSteps(0);
  impl_->device = device;
}

Device Graph::device() const {
  const runtime::StateLock lock = Lock();
  return impl_->device;
}

void Graph::train(Loc loc) {
  const runtime::StateLock lock = Lock();
  if (internal::MayChange(impl_->info, "train", loc)) impl_->training = true;
}

void Graph::eval(Loc loc) {
  const runtime::StateLock lock = Lock();
  if (internal::MayChange(impl_->info, "eval", loc)) impl_->training = false;
}

bool Graph::is_training() const {
  const runtime::StateLock lock = Lock();
  return impl_->training;
}

bool Graph::last_step_skipped() const {
  const runtime::StateLock lock = Lock();
  impl_->Settle();
  const auto skipped = [](const OptimizerEntry& o) { return !o.last.applied; };
  return std::any_of(impl_->optimizers.begin(), impl_->optimizers.end(), skipped);
}

double Graph::grad_norm() const {
  const runtime::StateLock lock = Lock();
  impl_->Settle();
  if (impl_->optimizers.empty()) return std::nan("");
  double sum = 0;
  for (const OptimizerEntry& optimizer : impl_->optimizers) {
    const double norm = optimizer.last.grad_norm;
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

uint64_t Graph::run_count() const {
  const runtime::StateLock lock = Lock();
  return impl_->run_count;
}

std::string TextOf(const ir::Graph& graph, bool scopes) {
  ir::TextOptions options;
  options.scopes = scopes;
  options.constant_files = true;
  return ir::Print(graph, options);
}

std::string Graph::traced_text() const {
  const runtime::StateLock lock = Lock();
  if (impl_->cache.empty()) return "";
  const CompiledStep& step = *impl_->cache[0];
  const std::string text = TextOf(*step.traced, true);
  return step.modes_remark.empty() ? text : Concat(text, "// ", step.modes_remark, "\n");
}

std::string Graph::compiled_text() const {
  const runtime::StateLock lock = Lock();
  return impl_->cache.empty() ? "" : TextOf(impl_->cache[0]->executable->graph());
}

const ir::Graph* Graph::compiled_graph() const {
  const runtime::StateLock lock = Lock();
  return impl_->cache.empty() ? nullptr : &impl_->cache[0]->executable->graph();
}

void Graph::set_profile(Profile profile) {
  const runtime::StateLock lock = Lock();
  impl_->Settle();
  for (const auto& step : impl_->cache) step->executable->set_profile(profile);
  impl_->profile = std::move(profile);
}

std::string Graph::kernel_log() const {
  const runtime::StateLock lock = Lock();
  return impl_->cache.empty() ? "" : impl_->cache[0]->executable->kernel_log();
}

std::string Graph::amp_summary() const {
  const runtime::StateLock lock = Lock();
  const ir::Graph* graph = compiled_graph();
  return graph == nullptr ? "" : passes::Summary(passes::MakeAmpReport(*graph));
}

std::string Graph::amp_table() const {
  const runtime::StateLock lock = Lock();
  const ir::Graph* graph = compiled_graph();
  return graph == nullptr ? "" : passes::ToText(passes::MakeAmpReport(*graph));
}

std::vector<std::string> Graph::notes() const {
  const runtime::StateLock lock = Lock();
  impl_->Settle();
  return impl_->notes.texts();
}

void Graph::debug(int level) {
  const runtime::StateLock lock = Lock();
  impl_->debug = level;
}

size_t Graph::arena_bytes() const {
  const runtime::StateLock lock = Lock();
  return impl_->arena->size();
}

const std::string& Graph::name() const { return impl_->name; }
const absl::Status& Graph::status() const { return impl_->status; }
absl::Status Graph::TakeStatus() { return std::exchange(impl_->status, absl::OkStatus()); }

absl::Status Graph::Impl::CheckInputs(absl::Span<const Tensor> in) const {
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) {
      return InvalidArgument("graph @", name, ": input ", i, " is an undefined tensor");
    }
  }
  return absl::OkStatus();
}

absl::Status Graph::Impl::CheckOverlap(const CompiledStep& step, absl::Span<const Tensor> in,
                                       absl::Span<const Tensor> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto overlaps = [&out, i](const Tensor& other) {
      return other.num_bytes() != 0 && out[i].address() == other.address();
    };
    if (std::any_of(in.begin(), in.end(), overlaps) ||
        std::any_of(out.begin(), out.begin() + static_cast<int64_t>(i), overlaps)) {
      return InvalidArgument("graph @", name, ": output ", i, " (",
                             step.executable->output_types()[i].ToString(),
                             ") shares its memory with an input or another output");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledStep*> Graph::Impl::Prepare(Graph& graph, absl::Span<const Tensor> in) {
  HT_RETURN_IF_ERROR(status);
  if (internal::Trace::Of(info) != nullptr) {
    return FailedPrecondition("graph @", name, " was called inside its own build()");
  }
  HT_RETURN_IF_ERROR(UpdateNames().status());
  HT_RETURN_IF_ERROR(CheckInputs(in));
  ReadModes();
  const size_t mode = training ? modes.training : modes.evaluation;
  const auto fits = [&](const std::unique_ptr<CompiledStep>& step) {
    if (step->training != training || step->modes != mode || step->inputs.size() != in.size())
      return false;
    for (size_t i = 0; i < in.size(); ++i) {
      if (step->inputs[i].dtype != in[i].dtype() || step->inputs[i].shape != in[i].shape()) {
        return false;
      }
    }
    return step->config == graph.config;
  };
  const size_t limit = static_cast<size_t>(std::max(graph.config.cache_size, 1));
  const auto found = std::find_if(cache.begin(), cache.end(), fits);
  if (found != cache.end()) {
    std::rotate(cache.begin(), found, found + 1);
    if (cache.size() > limit) DropSteps(limit);
    return cache[0].get();
  }
  HT_ASSIGN_OR_RETURN(std::unique_ptr<CompiledStep> step, CompileStep(graph, in));
  step->dropped_another = cache.size() >= limit;
  if (step->dropped_another) DropSteps(limit - 1);
  cache.insert(cache.begin(), std::move(step));
  return cache[0].get();
}

absl::Status Graph::Impl::Execute(Graph& graph, CompiledStep& step) {
  NoteCompilesAnew(step, graph.config);
  if (!step.dump_dir.empty()) {
    HT_RETURN_IF_ERROR(DumpState(graph, step));
    step.dump_dir.clear();
  }
  const uint64_t before = run_count;
  const absl::Status ran = Launch(step);
  if (ran.ok()) {
    if (!step.training) return absl::OkStatus();
    if (under_way == nullptr) NoteStuckScalers();
    return CheckSkips();
  }
  if (run_count != before) {
    // What earlier steps tell of the optimizers comes first.
    Settle();
    NoteFailure();
  }
  return ran;
}

absl::Status Graph::Impl::Launch(CompiledStep& step) {
  runtime::Executable& executable = *step.executable;
  // Hidden outputs are written in the order of the steps; only one executable keeps it.
  if (under_way != &step) Settle();
  HT_RETURN_IF_ERROR(std::exchange(late_error, absl::OkStatus()));
  uint64_t* const count = step.training ? &run_count : &evaluation_count;
  HT_RETURN_IF_ERROR(executable.Start(step.in.data(), step.out.data(), count));
  if (!executable.writes_outputs_later()) return absl::OkStatus();
  under_way = &step;
  const std::shared_ptr<PendingWrite> pending = executable.WatchOutputs(step.buffers);
  for (Buffer* buffer : step.buffers) {
    if (buffer != nullptr) buffer->SetPending(pending);
  }
  return absl::OkStatus();
}

void Graph::Impl::Settle() {
  if (under_way == nullptr) return;
  const CompiledStep& step = *std::exchange(under_way, nullptr);
  const absl::Status status = step.executable->Finish();
  if (step.training && step.executable->last_step_failed()) {
    NoteFailure();
  } else if (step.training) {
    NoteStuckScalers();
  }
  if (late_error.ok()) late_error = status;
}

void Graph::Impl::DropSteps(size_t keep) {
  Settle();
  cache.resize(std::min(cache.size(), keep));
}

void Graph::Impl::NoteFailure() {
  for (OptimizerEntry& optimizer : optimizers) optimizer.last.applied = false;
}

void CompiledStep::SetOutputs(absl::Span<const Tensor> tensors) {
  const bool later = executable->writes_outputs_later();
  for (size_t i = 0; i < tensors.size(); ++i) {
    out[i] = later ? tensors[i].address() : tensors[i].raw();
    buffers[i] = tensors[i].buffer().get();
  }
}

}  // namespace halftone::nn
