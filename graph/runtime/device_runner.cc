#include "halftone/graph/runtime/device_runner.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "halftone/core/align.h"

namespace halftone::runtime {
namespace {

constexpr size_t kAlignment = 256;
// Variables up to this size go through the ring when the host has written them; larger ones are
// loaded, not set step by step.
constexpr size_t kSmallVariable = 64;

size_t Bytes(const ir::ValueType& type) { return static_cast<size_t>(type.num_bytes()); }

// For finding faults: every step kernel by kernel.
bool MayRecord() {
  const char* setting = std::getenv("HALFTONE_CUDA_GRAPH");
  return setting == nullptr || std::strcmp(setting, "0") != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> DeviceRunner::Create(
    const StepPlan& plan, kernels::DeviceBackend& backend,
    std::vector<std::shared_ptr<VariableStorage>> variables, std::shared_ptr<Arena> arena) {
  std::unique_ptr<DeviceRunner> runner(
      new DeviceRunner(plan, backend, std::move(variables), std::move(arena)));
  HT_RETURN_IF_ERROR(runner->Prepare());
  return std::unique_ptr<Runner>(std::move(runner));
}

DeviceRunner::~DeviceRunner() {
  if (ring_ != nullptr) ring_->Close();
}

absl::Status DeviceRunner::Prepare() {
  may_record_ = MayRecord();
  HT_RETURN_IF_ERROR(PlaceVariables());
  LayOut();
  HT_RETURN_IF_ERROR(PlaceInputsAndOutputs());
  HT_RETURN_IF_ERROR(PlaceConstants());
  HT_RETURN_IF_ERROR(arena_->Reserve(static_cast<size_t>(plan_.memory.arena_bytes), &backend_));
  Bind();
  return absl::OkStatus();
}

absl::Status DeviceRunner::PlaceVariables() {
  for (const std::shared_ptr<VariableStorage>& variable : variables_) {
    HT_ASSIGN_OR_RETURN(DeviceCopy * copy, variable->OnDevice(backend_));
    masters_.push_back(copy);
    places_.variables.push_back(copy->memory->data());
  }
  for (const StepPlan::KeptCast& kept : plan_.kept) {
    VariableStorage& variable = *variables_[static_cast<size_t>(kept.variable)];
    HT_ASSIGN_OR_RETURN(DeviceCopy * copy, variable.LowOnDevice(backend_, kept.dtype));
    kept_.push_back(copy);
    places_.kept.push_back(copy->memory->data());
  }
  return absl::OkStatus();
}

void DeviceRunner::LayOut() {
  size_t at = 0;
  const auto place = [&at](size_t bytes) {
    const size_t offset = at;
    at += AlignUp(bytes, kAlignment);
    return offset;
  };
  for (const ir::ValueType& type : plan_.input_types) layout_.inputs.push_back(place(Bytes(type)));
  layout_.state = place(sizeof(kernels::DeviceRunState));
  for (const ir::ValueType& type : plan_.output_types) {
    layout_.outputs.push_back(place(Bytes(type)));
  }
  layout_.end = at;
  for (const std::shared_ptr<VariableStorage>& variable : variables_) {
    const size_t bytes = Bytes({variable->dtype(), variable->shape()});
    layout_.variables.push_back(bytes <= kSmallVariable ? place(bytes) : kNowhere);
  }
  layout_.slot_bytes = at;
}

absl::Status DeviceRunner::PlaceInputsAndOutputs() {
  HT_ASSIGN_OR_RETURN(io_, backend_.Allocate(layout_.end));
  char* const io = static_cast<char*>(io_->data());
  for (const size_t offset : layout_.inputs) places_.inputs.push_back(io + offset);
  for (const size_t offset : layout_.outputs) places_.outputs.push_back(io + offset);
  std::vector<StepRing::Output> outputs;
  for (size_t i = 0; i < layout_.outputs.size(); ++i) {
    outputs.push_back({layout_.outputs[i], Bytes(plan_.output_types[i])});
  }
  HT_ASSIGN_OR_RETURN(
      ring_, StepRing::Create(
                 backend_, layout_.slot_bytes, std::move(outputs),
                 [this](const char* slot) { return CheckStep(slot); }, plan_.communicates));
  return absl::OkStatus();
}

absl::Status DeviceRunner::PlaceConstants() {
  size_t bytes = 0;
  for (const Tensor& constant : plan_.constants) bytes += AlignUp(constant.num_bytes(), kAlignment);
  HT_ASSIGN_OR_RETURN(constant_memory_, backend_.Allocate(bytes));
  char* at = static_cast<char*>(constant_memory_->data());
  for (const Tensor& constant : plan_.constants) {
    places_.constants.push_back(at);
    if (constant.num_bytes() == 0) continue;
    HT_RETURN_IF_ERROR(backend_.Upload(at, constant.raw(), constant.num_bytes()));
    at += AlignUp(constant.num_bytes(), kAlignment);
  }
  return absl::OkStatus();
}

void DeviceRunner::Bind() {
  places_.arena = static_cast<char*>(arena_->data());
  tables_.Fill(plan_, places_);
  output_copies_ = SegmentsOf(plan_.output_copies);
  staging_copies_ = SegmentsOf(plan_.staging_copies);
  commit_copies_ = SegmentsOf(plan_.commit_copies);
  bound_generation_ = arena_->generation();
}

std::vector<kernels::DeviceCopySegment> DeviceRunner::SegmentsOf(
    const std::vector<StepPlan::Copy>& copies) const {
  std::vector<kernels::DeviceCopySegment> segments;
  for (const StepPlan::Copy& copy : copies) {
    segments.push_back({places_.AddressOf(copy.to), places_.AddressOf(copy.from),
                        static_cast<size_t>(copy.from.bytes)});
  }
  return segments;
}

absl::Status DeviceRunner::Start(const void* const* inputs, void* const* outputs,
                                 uint64_t* run_count, const Observers& observers) {
  HT_RETURN_IF_ERROR(backend_.CheckProcess());
  HT_ASSIGN_OR_RETURN(char* const slot, ring_->Begin());
  absl::Status status = PutStep(slot, inputs, (*run_count)++, observers);
  if (status.ok()) status = ring_->Commit(outputs);
  if (!status.ok()) {
    Abandon();
    return status;
  }
  for (const int i : plan_.written) {
    const auto index = static_cast<size_t>(i);
    variables_[index]->DeviceWrote(*masters_[index]);
  }
  for (size_t k = 0; k < kept_.size(); ++k) {
    const StepPlan::KeptCast& kept = plan_.kept[k];
    if (!kept.written_by_update) continue;
    kept_[k]->version = variables_[static_cast<size_t>(kept.variable)]->version();
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::PutStep(char* slot, const void* const* inputs, uint64_t run_count,
                                   const Observers& observers) {
  // Another executable of the graph may have made the arena grow.
  if (bound_generation_ != arena_->generation()) {
    HT_RETURN_IF_ERROR(arena_->Reserve(static_cast<size_t>(plan_.memory.arena_bytes), &backend_));
    HT_RETURN_IF_ERROR(backend_.Synchronize());
    step_graph_ = nullptr;
    Bind();
  }
  for (size_t i = 0; i < plan_.input_types.size(); ++i) {
    const size_t bytes = Bytes(plan_.input_types[i]);
    if (bytes > 0) std::memcpy(slot + layout_.inputs[i], inputs[i], bytes);
  }
  kernels::DeviceRunState state;
  state.run_count = run_count;
  std::memcpy(slot + layout_.state, &state, sizeof(state));
  HT_RETURN_IF_ERROR(backend_.CopyToDevice(io_->data(), slot, layout_.state + sizeof(state)));
  if (!warm_) HT_RETURN_IF_ERROR(FetchWritten());
  HT_RETURN_IF_ERROR(BringVariables(slot));
  HT_RETURN_IF_ERROR(DeriveKept(observers));
  HT_RETURN_IF_ERROR(RunStep(observers));
  return backend_.CopyToHost(slot + layout_.state, static_cast<char*>(io_->data()) + layout_.state,
                             layout_.end - layout_.state);
}

void DeviceRunner::Abandon() {
  // The next step takes the same slot, which copies may still read.
  backend_.Synchronize().IgnoreError();
  for (const int i : plan_.written) {
    const auto index = static_cast<size_t>(i);
    if (variables_[index]->host_is_newest()) masters_[index]->version = 0;
  }
  for (DeviceCopy* copy : kept_) copy->version = 0;
}

absl::Status DeviceRunner::FetchWritten() {
  for (const int i : plan_.written) {
    HT_RETURN_IF_ERROR(variables_[static_cast<size_t>(i)]->FetchToHost());
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::BringVariables(char* slot) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    VariableStorage& variable = *variables_[i];
    DeviceCopy& copy = *masters_[i];
    if (copy.version == variable.version()) continue;
    HT_RETURN_IF_ERROR(variable.FetchToHost());
    const size_t bytes = variable.value().num_bytes();
    if (bytes > 0 && layout_.variables[i] != kNowhere) {
      char* const staged = slot + layout_.variables[i];
      std::memcpy(staged, variable.host_data(), bytes);
      HT_RETURN_IF_ERROR(backend_.CopyToDevice(copy.memory->data(), staged, bytes));
    } else if (bytes > 0) {
      HT_RETURN_IF_ERROR(backend_.Upload(copy.memory->data(), variable.host_data(), bytes));
    }
    copy.version = variable.version();
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::DeriveKept(const Observers& observers) {
  for (size_t k = 0; k < kept_.size(); ++k) {
    const auto variable = static_cast<size_t>(plan_.kept[k].variable);
    const uint64_t version = variables_[variable]->version();
    if (kept_[k]->version == version) continue;
    kernels::RunState state;
    state.stream = backend_.stream();
    const void* const from = places_.variables[variable];
    void* const to = places_.kept[k];
    const StepPlan::Call& call = plan_.kept[k].call;
    const auto cast = [&] {
      call.kernel->Run({&from, &to, nullptr, &state});
      return state.error;
    };
    const auto cast_and_wait = [&]() -> absl::Status {
      HT_RETURN_IF_ERROR(cast());
      return backend_.Synchronize();
    };
    const auto copy = [this](void* host, const void* device, size_t bytes) {
      return backend_.Download(host, device, bytes);
    };
    if (!observers.any()) {
      HT_RETURN_IF_ERROR(cast());
    } else {
      HT_RETURN_IF_ERROR(backend_.Synchronize());
      HT_RETURN_IF_ERROR(RunObserved(observers, call, &to, {cast_and_wait, copy}));
    }
    kept_[k]->version = version;
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::RunStep(const Observers& observers) {
  if (!warm_ || observers.any() || !may_record_) {
    HT_RETURN_IF_ERROR(Enqueue(backend_.stream(), /*one_by_one=*/true, observers));
    warm_ = true;
    return absl::OkStatus();
  }
  if (step_graph_ == nullptr) HT_RETURN_IF_ERROR(Record());
  return backend_.Launch(*step_graph_);
}

absl::Status DeviceRunner::Record() {
  const auto record = [this](void* stream) { return Enqueue(stream, /*one_by_one=*/false, {}); };
  auto recorded = backend_.Capture(record);
  if (absl::IsResourceExhausted(recorded.status())) {
    // The driver keeps graphs in memory of the device, which may all be in the allocator's cache.
    HT_RETURN_IF_ERROR(backend_.ReleaseCached());
    recorded = backend_.Capture(record);
  }
  HT_ASSIGN_OR_RETURN(step_graph_, std::move(recorded));
  return absl::OkStatus();
}

absl::Status DeviceRunner::Enqueue(void* stream, bool one_by_one, const Observers& observers) {
  auto* const device_state =
      reinterpret_cast<kernels::DeviceRunState*>(static_cast<char*>(io_->data()) + layout_.state);
  kernels::RunState state;
  state.stream = stream;
  state.device = device_state;
  for (size_t c = 0; c < plan_.calls.size(); ++c) {
    if (!observers.any()) {
      HT_RETURN_IF_ERROR(RunCall(c, one_by_one, &state));
      continue;
    }
    HT_RETURN_IF_ERROR(backend_.Synchronize());
    const auto run = [&]() -> absl::Status {
      HT_RETURN_IF_ERROR(RunCall(c, one_by_one, &state));
      return backend_.Synchronize();
    };
    const auto copy = [this](void* to, const void* from, size_t bytes) {
      return backend_.Download(to, from, bytes);
    };
    const StepPlan::Call& call = plan_.calls[c];
    HT_RETURN_IF_ERROR(
        RunObserved(observers, call, tables_.outputs.data() + call.first_output, {run, copy}));
  }
  HT_RETURN_IF_ERROR(backend_.CopySegments(output_copies_, nullptr, stream));
  HT_RETURN_IF_ERROR(backend_.CopySegments(staging_copies_, nullptr, stream));
  return backend_.CopySegments(commit_copies_, device_state, stream);
}

absl::Status DeviceRunner::RunCall(size_t call, bool one_by_one, kernels::RunState* state) {
  const StepPlan::Call& c = plan_.calls[call];
  if (one_by_one) backend_.BeginRange(c.nodes[0]->name().c_str());
  c.kernel->Run(tables_.ArgsOf(plan_, call, state));
  if (one_by_one) backend_.EndRange();
  return state->error;
}

absl::Status DeviceRunner::CheckStep(const char* slot) const {
  kernels::DeviceRunState state;
  std::memcpy(&state, slot + layout_.state, sizeof(state));
  if (state.fault_id == 0) return absl::OkStatus();
  if (state.fault_rank < 0) return Internal("a reduction over the ranks ended without results");
  const auto call = static_cast<size_t>(state.fault_id - 1);
  const bool is_known = call < plan_.calls.size() && plan_.calls[call].can_fault;
  const kernels::Fault fault{true, state.fault_value, state.fault_bound, state.fault_position};
  if (state.fault_rank > 0) {
    // Ranks have compiled the same graph, but perhaps for another device.
    return Annotate(is_known ? FaultOf(plan_.calls[call], fault) : Internal("its step has failed"),
                    Concat("rank ", state.fault_rank - 1, ": "));
  }
  HT_CHECK(is_known, "a fault of a node that the step does not have");
  return FaultOf(plan_.calls[call], fault);
}

}  // namespace halftone::runtime
