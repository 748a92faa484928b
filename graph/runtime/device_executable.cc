#include "halftone/graph/runtime/device_executable.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "halftone/core/align.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/passes/memory/keep_low_weights.h"

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

absl::StatusOr<std::unique_ptr<Executable>> DeviceExecutable::Create(
    std::unique_ptr<ir::Graph> graph, kernels::DeviceBackend& backend, uint64_t seed,
    VariableStore& store, std::shared_ptr<Arena> arena) {
  // Kernels ask their libraries for handles of the thread's device.
  (void)backend.stream();
  std::unique_ptr<DeviceExecutable> e(new DeviceExecutable(backend));
  e->graph_ = std::move(graph);
  e->may_record_ = MayRecord();
  e->arena_ = std::move(arena);
  HT_RETURN_IF_ERROR(e->SelectKernels(backend.device().kind, /*joins_updates=*/true));
  HT_RETURN_IF_ERROR(e->ResolveVariables(seed, store));
  HT_RETURN_IF_ERROR(e->PlaceVariables());
  HT_RETURN_IF_ERROR(e->PlaceKept());

  passes::MemoryPlanOptions options;
  const auto& nodes = e->graph_->nodes();
  const bool may_fault = std::any_of(nodes.begin(), nodes.end(),
                                     [](const auto& node) { return node->op().can_fault; });
  if (may_fault) {
    options.may_write_variable = [&e](const ir::Node& node) {
      return e->selected_.at(node.id())->keeps_state_on_fault();
    };
  }
  e->Plan(std::move(options));
  HT_RETURN_IF_ERROR(e->FindCopies());
  e->LayOut();
  HT_ASSIGN_OR_RETURN(e->io_, backend.Allocate(e->layout_.end));
  HT_RETURN_IF_ERROR(e->PlaceConstants());
  std::vector<StepRing::Output> outputs;
  for (size_t i = 0; i < e->output_types_.size(); ++i) {
    outputs.push_back({e->layout_.outputs[i], Bytes(e->output_types_[i])});
  }
  HT_ASSIGN_OR_RETURN(e->ring_, StepRing::Create(backend, e->layout_.slot_bytes, std::move(outputs),
                                                 [raw = e.get()](const char* slot) {
                                                   return raw->CheckStep(slot);
                                                 }));
  HT_RETURN_IF_ERROR(e->arena_->Reserve(static_cast<size_t>(e->plan_.arena_bytes), &e->backend_));
  e->Bind();
  return std::unique_ptr<Executable>(std::move(e));
}

DeviceExecutable::~DeviceExecutable() {
  if (ring_ != nullptr) ring_->Close();
}

absl::Status DeviceExecutable::PlaceVariables() {
  for (const std::shared_ptr<VariableStorage>& variable : variables_) {
    HT_ASSIGN_OR_RETURN(DeviceCopy * copy, variable->OnDevice(backend_));
    masters_.push_back(copy);
  }
  for (const VariableStorage* written : written_) {
    const auto at =
        std::find_if(variables_.begin(), variables_.end(),
                     [written](const auto& variable) { return variable.get() == written; });
    written_indices_.push_back(static_cast<size_t>(at - variables_.begin()));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutable::PlaceKept() {
  for (const std::unique_ptr<ir::Node>& node : graph_->nodes()) {
    if (!passes::IsKeptCast(*node)) continue;
    const std::string& name = node->input(0).node->attrs().GetString("name");
    Kept kept;
    kept.variable = static_cast<size_t>(graph_->VariableIndex(name));
    kept.dtype = node->output_type().dtype;
    kept.kernel = std::move(selected_.at(node->id()));
    HT_ASSIGN_OR_RETURN(kept.copy, variables_[kept.variable]->LowOnDevice(backend_, kept.dtype));
    kept_.push_back(std::move(kept));
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutable::FindCopies() {
  for (const Call& call : calls_) {
    std::vector<int> copies;
    size_t output = call.first_output;
    for (const ir::Node* node : call.nodes) {
      const std::optional<DType> low =
          node->attrs().Has("low") ? ops::LowCopyOf(*node) : std::nullopt;
      int copy = -1;
      if (low.has_value()) {
        HT_ASSIGN_OR_RETURN(copy, FindKept(*node, output_slots_[output], *low));
        kept_[static_cast<size_t>(copy)].written_by_update = true;
      }
      copies.push_back(copy);
      output += static_cast<size_t>(node->num_outputs());
    }
    call_copies_.push_back(std::move(copies));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> DeviceExecutable::FindKept(const ir::Node& update, const passes::Slot& param,
                                               DType low) const {
  for (size_t k = 0; k < kept_.size(); ++k) {
    if (param.space == Space::kVariable && kept_[k].variable == static_cast<size_t>(param.index) &&
        kept_[k].dtype == low) {
      return static_cast<int>(k);
    }
  }
  return Internal(update.Label(), ": writes a copy in ", Name(low),
                  ", but its parameter not in place, or no such cast of it is kept");
}

void DeviceExecutable::LayOut() {
  size_t at = 0;
  const auto place = [&at](size_t bytes) {
    const size_t offset = at;
    at += AlignUp(bytes, kAlignment);
    return offset;
  };
  for (const ir::ValueType& type : input_types_) layout_.inputs.push_back(place(Bytes(type)));
  layout_.state = place(sizeof(kernels::DeviceRunState));
  for (const ir::ValueType& type : output_types_) layout_.outputs.push_back(place(Bytes(type)));
  layout_.end = at;
  for (const std::shared_ptr<VariableStorage>& variable : variables_) {
    const size_t bytes = Bytes({variable->dtype(), variable->shape()});
    layout_.variables.push_back(bytes <= kSmallVariable ? place(bytes) : kNowhere);
  }
  layout_.slot_bytes = at;
}

absl::Status DeviceExecutable::PlaceConstants() {
  size_t bytes = 0;
  for (const Tensor& constant : constants_) {
    constant_offsets_.push_back(bytes);
    bytes += AlignUp(constant.num_bytes(), kAlignment);
  }
  HT_ASSIGN_OR_RETURN(constant_memory_, backend_.Allocate(bytes));
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (constants_[i].num_bytes() == 0) continue;
    HT_RETURN_IF_ERROR(
        backend_.Upload(static_cast<char*>(constant_memory_->data()) + constant_offsets_[i],
                        constants_[i].raw(), constants_[i].num_bytes()));
  }
  return absl::OkStatus();
}

void* DeviceExecutable::Address(const passes::Slot& slot) const {
  const auto index = static_cast<size_t>(slot.index);
  char* const io = static_cast<char*>(io_->data());
  switch (slot.space) {
    case Space::kArena:
      return static_cast<char*>(arena_->data()) + slot.offset;
    case Space::kInput:
      return io + layout_.inputs[index];
    case Space::kOutput:
      return io + layout_.outputs[index];
    case Space::kConstant:
      return static_cast<char*>(constant_memory_->data()) + constant_offsets_[index];
    case Space::kVariable:
      return masters_[index]->memory->data();
    case Space::kKept:
      return kept_[index].copy->memory->data();
  }
  return nullptr;
}

void DeviceExecutable::Bind() {
  input_table_.clear();
  output_table_.clear();
  for (const passes::Slot& slot : input_slots_) input_table_.push_back(Address(slot));
  for (const passes::Slot& slot : output_slots_) output_table_.push_back(Address(slot));

  workspaces_.clear();
  copy_tables_.clear();
  for (size_t c = 0; c < calls_.size(); ++c) {
    workspaces_.push_back(calls_[c].kernel->workspace_bytes() == 0
                              ? nullptr
                              : static_cast<char*>(arena_->data()) + calls_[c].workspace);
    std::vector<void*> copies;
    for (const int kept : call_copies_[c]) {
      copies.push_back(kept < 0 ? nullptr : kept_[static_cast<size_t>(kept)].copy->memory->data());
    }
    copy_tables_.push_back(std::move(copies));
  }

  output_copies_.clear();
  staging_copies_.clear();
  commit_copies_.clear();
  char* const io = static_cast<char*>(io_->data());
  char* const arena = static_cast<char*>(arena_->data());
  for (const passes::OutputCopy& copy : plan_.output_copies) {
    if (copy.from.bytes == 0) continue;
    output_copies_.push_back({io + layout_.outputs[static_cast<size_t>(copy.output)],
                              Address(copy.from), static_cast<size_t>(copy.from.bytes)});
  }
  for (const passes::CommitCopy& copy : plan_.commit_copies) {
    const auto bytes = static_cast<size_t>(copy.from.bytes);
    if (bytes == 0) continue;
    void* const variable = masters_[static_cast<size_t>(copy.variable)]->memory->data();
    if (copy.staged) {
      staging_copies_.push_back({arena + copy.staging_offset, Address(copy.from), bytes});
      commit_copies_.push_back({variable, arena + copy.staging_offset, bytes});
    } else {
      commit_copies_.push_back({variable, Address(copy.from), bytes});
    }
  }
  bound_generation_ = arena_->generation();
}

absl::Status DeviceExecutable::Start(const void* const* inputs, void* const* outputs,
                                     uint64_t* run_count) {
  HT_RETURN_IF_ERROR(backend_.CheckProcess());
  HT_ASSIGN_OR_RETURN(char* const slot, ring_->Begin());
  absl::Status status = PutStep(slot, inputs, (*run_count)++);
  if (status.ok()) status = ring_->Commit(outputs);
  if (!status.ok()) {
    Abandon();
    return status;
  }
  for (const size_t i : written_indices_) variables_[i]->DeviceWrote(*masters_[i]);
  for (Kept& kept : kept_) {
    if (kept.written_by_update) kept.copy->version = variables_[kept.variable]->version();
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutable::PutStep(char* slot, const void* const* inputs, uint64_t run_count) {
  // Another executable of the graph may have made the arena grow.
  if (bound_generation_ != arena_->generation()) {
    HT_RETURN_IF_ERROR(arena_->Reserve(static_cast<size_t>(plan_.arena_bytes), &backend_));
    HT_RETURN_IF_ERROR(backend_.Synchronize());
    step_graph_ = nullptr;
    Bind();
  }
  for (size_t i = 0; i < input_types_.size(); ++i) {
    const size_t bytes = Bytes(input_types_[i]);
    if (bytes > 0) std::memcpy(slot + layout_.inputs[i], inputs[i], bytes);
  }
  kernels::DeviceRunState state;
  state.run_count = run_count;
  std::memcpy(slot + layout_.state, &state, sizeof(state));
  HT_RETURN_IF_ERROR(backend_.CopyToDevice(io_->data(), slot, layout_.state + sizeof(state)));
  if (!warm_) HT_RETURN_IF_ERROR(FetchWritten());
  HT_RETURN_IF_ERROR(BringVariables(slot));
  HT_RETURN_IF_ERROR(DeriveKept());
  HT_RETURN_IF_ERROR(RunStep());
  return backend_.CopyToHost(slot + layout_.state, static_cast<char*>(io_->data()) + layout_.state,
                             layout_.end - layout_.state);
}

void DeviceExecutable::Abandon() {
  // The next step takes the same slot, which copies may still read.
  backend_.Synchronize().IgnoreError();
  for (const size_t i : written_indices_) {
    if (variables_[i]->host_is_newest()) masters_[i]->version = 0;
  }
  for (Kept& kept : kept_) kept.copy->version = 0;
}

absl::Status DeviceExecutable::FetchWritten() {
  for (const size_t i : written_indices_) HT_RETURN_IF_ERROR(variables_[i]->FetchToHost());
  return absl::OkStatus();
}

absl::Status DeviceExecutable::BringVariables(char* slot) {
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

absl::Status DeviceExecutable::DeriveKept() {
  for (Kept& kept : kept_) {
    const uint64_t version = variables_[kept.variable]->version();
    if (kept.copy->version == version) continue;
    kernels::RunState state;
    state.stream = backend_.stream();
    const void* const from = masters_[kept.variable]->memory->data();
    void* const to = kept.copy->memory->data();
    kept.kernel->Run({&from, &to, nullptr, &state});
    HT_RETURN_IF_ERROR(state.error);
    kept.copy->version = version;
  }
  return absl::OkStatus();
}

absl::Status DeviceExecutable::RunStep() {
  if (!warm_ || profile_ != nullptr || !may_record_) {
    HT_RETURN_IF_ERROR(Enqueue(backend_.stream(), /*one_by_one=*/true));
    warm_ = true;
    return absl::OkStatus();
  }
  if (step_graph_ == nullptr) HT_RETURN_IF_ERROR(Record());
  return backend_.Launch(*step_graph_);
}

absl::Status DeviceExecutable::Record() {
  const auto record = [this](void* stream) { return Enqueue(stream, /*one_by_one=*/false); };
  auto recorded = backend_.Capture(record);
  if (absl::IsResourceExhausted(recorded.status())) {
    // The driver keeps graphs in memory of the device, which may all be in the allocator's cache.
    HT_RETURN_IF_ERROR(backend_.ReleaseCached());
    recorded = backend_.Capture(record);
  }
  HT_ASSIGN_OR_RETURN(step_graph_, std::move(recorded));
  return absl::OkStatus();
}

absl::Status DeviceExecutable::Enqueue(void* stream, bool one_by_one) {
  auto* const device_state =
      reinterpret_cast<kernels::DeviceRunState*>(static_cast<char*>(io_->data()) + layout_.state);
  kernels::RunState state;
  state.stream = stream;
  state.device = device_state;
  for (size_t c = 0; c < calls_.size(); ++c) {
    const Call& call = calls_[c];
    kernels::KernelArgs args{input_table_.data() + call.first_input,
                             output_table_.data() + call.first_output, workspaces_[c], &state};
    args.fault_id = static_cast<int64_t>(c) + 1;
    args.copies = copy_tables_[c].data();
    const bool is_timed = one_by_one && profile_ != nullptr;
    if (is_timed) HT_RETURN_IF_ERROR(backend_.Synchronize());
    const auto start = std::chrono::steady_clock::now();
    if (one_by_one) backend_.BeginRange(call.nodes[0]->name().c_str());
    call.kernel->Run(args);
    if (one_by_one) backend_.EndRange();
    HT_RETURN_IF_ERROR(state.error);
    if (is_timed) {
      HT_RETURN_IF_ERROR(backend_.Synchronize());
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      profile_(*call.nodes[0], *call.kernel, taken.count());
    }
  }
  HT_RETURN_IF_ERROR(backend_.CopySegments(output_copies_, nullptr, stream));
  HT_RETURN_IF_ERROR(backend_.CopySegments(staging_copies_, nullptr, stream));
  return backend_.CopySegments(commit_copies_, device_state, stream);
}

absl::Status DeviceExecutable::CheckStep(const char* slot) const {
  kernels::DeviceRunState state;
  std::memcpy(&state, slot + layout_.state, sizeof(state));
  if (state.fault_id == 0) return absl::OkStatus();
  const auto call = static_cast<size_t>(state.fault_id - 1);
  HT_CHECK(call < calls_.size(), "a fault of a node that the step does not have");
  return FaultOf(*calls_[call].nodes[0],
                 {true, state.fault_value, state.fault_bound, state.fault_position});
}

}  // namespace halftone::runtime
