#include "halftone/graph/nn/trace.h"

#include <algorithm>
#include <atomic>
#include <string_view>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/module_scope.h"
#include "halftone/graph/nn/op.h"

namespace halftone::nn::internal {
namespace {

thread_local Trace* current_trace = nullptr;
std::atomic<uint64_t> traces_made = 0;

absl::Status CheckIn(Trace* trace, const char* function, Loc loc) {
  if (trace == nullptr) return absl::OkStatus();
  const absl::Status error =
      FailedPrecondition(function, "() was called inside build(), which only ",
                         "describes the step; expected a call outside of it");
  trace->Fail(loc, error);
  return error;
}

}  // namespace

// Messages and dumps show "model.cc:42" wherever the tree was built.
ir::SourceLocation ToSourceLocation(const Loc& loc) {
  const std::string_view path = loc.file_name();
  const size_t slash = path.find_last_of('/');
  return {std::string(slash == std::string_view::npos ? path : path.substr(slash + 1)),
          static_cast<int>(loc.line())};
}

Trace::Trace(ir::Graph* graph, const runtime::VariableStore* store, const GraphInfo* info,
             bool training, uint64_t seed)
    : builder_(graph),
      store_(store),
      info_(info),
      training_(training),
      seed_(seed),
      number_(++traces_made),
      outer_(current_trace),
      frames_(1) {
  current_trace = this;
  frames_[0].training = training;
  for (const auto& [module, module_info] : info->modules) {
    if (!module->is_frozen()) continue;
    for (const auto& [name, parameter] : module->own_parameters()) {
      frozen_.insert(parameter.storage().get());
    }
  }
}

Trace::~Trace() { current_trace = outer_; }

Trace* Trace::Current() { return current_trace; }

Trace* Trace::Of(const GraphInfo& info) {
  Trace* trace = current_trace;
  while (trace != nullptr && trace->info_ != &info) trace = trace->outer_;
  return trace;
}

Trace* Trace::With(const Module& module) {
  Trace* trace = current_trace;
  while (trace != nullptr && !trace->info_->modules.contains(&module)) trace = trace->outer_;
  return trace;
}

Trace* Trace::With(const runtime::VariableStorage& variable) {
  Trace* trace = current_trace;
  while (trace != nullptr && trace->store_->NameOf(&variable) == nullptr) trace = trace->outer_;
  return trace;
}

ir::Expr Trace::Unwrap(const Value& value, Loc loc) {
  if (!value.valid()) {
    if (builder_.status().ok()) {
      Fail(loc, value.node_ == nullptr
                    ? FailedPrecondition("an operand was never assigned a value")
                    : FailedPrecondition("an operand belongs to another call of build()"));
    }
    return {};
  }
  return builder_.Wrap({value.node_, value.index_});
}

Value Trace::Wrap(ir::Expr expr) const {
  return expr.valid() ? Value(number_, expr.value().node, expr.value().index) : Value();
}

void Trace::At(Loc loc) { builder_.At(locate_ ? locate_() : ToSourceLocation(loc)); }

void Trace::Fail(Loc loc, absl::Status status) {
  At(loc);
  builder_.Fail(std::move(status));
}

ir::Expr Trace::Variable(const std::shared_ptr<runtime::VariableStorage>& storage, Loc loc) {
  At(loc);
  const std::string* name = storage == nullptr ? nullptr : store_->NameOf(storage.get());
  if (name == nullptr) {
    Fail(loc, FailedPrecondition(
                  storage == nullptr
                      ? "a parameter is undefined"
                      : Concat("a parameter of type ", storage->TypeString(),
                               " belongs to no module of this graph; "
                               "expected add_module or add_parameter before the first call")));
    return {};
  }
  ir::Variable variable = storage->Describe(*name);
  if (frozen_.contains(storage.get())) variable.trainable = false;
  return builder_.Var(variable);
}

Value Trace::Read(const std::shared_ptr<runtime::VariableStorage>& storage, Loc loc) {
  const auto written = values_.find(storage.get());
  if (written != values_.end()) return Wrap(written->second);
  const ir::Expr variable = Variable(storage, loc);
  return Wrap(variable.valid() ? builder_.Cast(variable, storage->read_as()) : variable);
}

void Trace::Write(const std::shared_ptr<runtime::VariableStorage>& storage, const Value& value,
                  Loc loc) {
  const ir::Expr before = Variable(storage, loc);
  const ir::Expr after = Unwrap(value, loc);
  if (!before.valid() || !after.valid()) return;
  const ir::ValueType expected{storage->read_as(), before.shape()};
  if (after.dtype() != expected.dtype || after.shape() != expected.shape) {
    Fail(loc, InvalidArgument("update of \"", *store_->NameOf(storage.get()), "\": got ",
                              after.type().ToString(), ", expected ", expected.ToString()));
    return;
  }
  if (values_.insert_or_assign(storage.get(), after).second) {
    written_.emplace_back(*store_->NameOf(storage.get()), storage.get());
  }
}

void Trace::EmitCommits() {
  for (const auto& [name, storage] : written_) {
    builder_.Commit(name, builder_.Cast(values_.at(storage), storage->dtype()));
  }
}

int64_t Trace::NextRandomSeed() {
  const std::string& scope = builder_.scope();
  // What is random in evaluations draws other numbers than the step of the same count.
  const std::string key =
      Concat(seed_, training_ ? "/" : "/eval/", scope, "#", random_ordinals_[scope]++);
  // Attributes are signed; one bit less of seed costs nothing.
  return static_cast<int64_t>(HashName(key.data(), key.size()) >> 1);
}

ir::Expr Trace::CopiedConstant(const Tensor& value) {
  absl::StatusOr<Tensor> copy = value.Copy();
  if (copy.ok()) return builder_.Constant(*std::move(copy));
  builder_.Fail(copy.status());
  return {};
}

Value Trace::Constant(const Tensor& value) {
  if (value.num_elements() <= ir::kMaxInlineElements) return Wrap(CopiedConstant(value));
  const uint64_t hash = HashName(static_cast<const char*>(value.raw()), value.num_bytes());
  std::vector<ir::Value>& same_hash = large_constants_[hash];
  for (const ir::Value& known : same_hash) {
    if (BitEqual(known.node->attrs().Get<Tensor>("value"), value)) {
      return Wrap(builder_.Wrap(known));
    }
  }
  const ir::Expr made = CopiedConstant(value);
  if (made.valid()) same_hash.push_back(made.value());
  return Wrap(made);
}

void Trace::EnterModule(const Module& module, Loc loc) {
  Frame frame = frames_.back();
  frame.call_site = loc;
  frame.module = &module;
  frame.training = training_ && module.is_training();
  const auto found = info_->modules.find(&module);
  if (found != info_->modules.end()) {
    frame.scope = found->second.path;
    frame.amp_request = AmpRequestOf(module);
    if (training_ && frame.recompute.empty() && Recomputes(module)) {
      frame.recompute = NameOfCall(frame.scope);
    }
    entered_.insert(&module);
  } else {
    Fail(loc, FailedPrecondition(module.description(),
                                 " is not part of this graph; "
                                 "expected add_module, or register_module in a module "
                                 "that was added"));
  }
  frames_.push_back(std::move(frame));
  ApplyFrame();
}

bool Trace::IsOpen(const Module& module) const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [&module](const Frame& frame) { return frame.module == &module; });
}

int8_t Trace::AmpRequestOf(const Module& module) {
  if (module.amp_request() != 0) return module.amp_request();
  // Outwards, a ring of parents after the other; mostly each is one module.
  std::set<const Module*> seen;
  std::vector<const Module*> ring = info_->modules.at(&module).parents;
  while (!ring.empty()) {
    std::vector<const Module*> next;
    const Module* asked = nullptr;
    for (const Module* parent : ring) {
      if (!seen.insert(parent).second) continue;
      if (IsOpen(*parent)) return frames_.back().amp_request;
      // Of several wishes, f32 is the safe one.
      if (parent->amp_request() != 0 && (asked == nullptr || parent->amp_request() < 0)) {
        asked = parent;
      }
      const std::vector<const Module*>& parents = info_->modules.at(parent).parents;
      next.insert(next.end(), parents.begin(), parents.end());
    }
    if (asked != nullptr) {
      obeyed_unopened_.insert(asked);
      return asked->amp_request();
    }
    ring = std::move(next);
  }
  return frames_.back().amp_request;
}

bool Trace::Recomputes(const Module& module) const {
  if (module.recomputes()) return true;
  const std::vector<const Module*>& parents = info_->modules.at(&module).parents;
  return std::any_of(parents.begin(), parents.end(), [this](const Module* parent) {
    return !IsOpen(*parent) && Recomputes(*parent);
  });
}

std::string Trace::NameOfCall(const std::string& path) {
  const int before = recomputed_calls_[path]++;
  return before == 0 ? path : Concat(path, "#", before);
}

std::vector<std::string> Trace::AmpNotes() const {
  std::vector<std::string> notes;
  for (const auto& [module, module_info] : info_->modules) {
    if (module->amp_request() == 0 || entered_.contains(module)) continue;
    if (module->is_container()) continue;
    const auto is_read = [this](const auto& named) {
      const std::string* name = store_->NameOf(named.second.storage().get());
      return name != nullptr && builder_.graph().FindVariable(*name) != nullptr;
    };
    const auto& parameters = module->own_parameters();
    if (!obeyed_unopened_.contains(module) &&
        std::none_of(parameters.begin(), parameters.end(), is_read)) {
      continue;
    }
    notes.push_back(Concat("amp: ", module->amp_request() < 0 ? "keep_fp32()" : "allow_low()",
                           " of module \"", module_info.path,
                           "\" reaches its submodules, not ops that a function other than ",
                           "forward() makes itself; expected an nn::ModuleScope in that function"));
  }
  return notes;
}

void Trace::EnterAmp(int8_t request) {
  frames_.push_back(frames_.back());
  frames_.back().amp_request = request;
  ApplyFrame();
}

void Trace::Leave() {
  frames_.pop_back();
  ApplyFrame();
}

void Trace::ApplyFrame() {
  builder_.set_scope(frames_.back().scope);
  builder_.set_amp_request(frames_.back().amp_request);
  builder_.set_recompute(frames_.back().recompute);
}

bool MayChange(const GraphInfo& graph, const char* function, Loc loc) {
  return CheckIn(Trace::Of(graph), function, loc).ok();
}

bool MayChange(const Module& module, const char* function, Loc loc) {
  return CheckIn(Trace::With(module), function, loc).ok();
}

absl::Status CheckMayChange(const GraphInfo& graph, const char* function) {
  return CheckIn(Trace::Of(graph), function, CallSite());
}

absl::Status CheckMayChange(const Module& module, const char* function) {
  return CheckIn(Trace::With(module), function, CallSite());
}

absl::Status CheckMayChange(const runtime::VariableStorage& variable, const char* function) {
  return CheckIn(Trace::With(variable), function, CallSite());
}

AmpScope::AmpScope(int8_t request) : trace_(Trace::Current()) {
  if (trace_ != nullptr) trace_->EnterAmp(request);
}

AmpScope::~AmpScope() {
  if (trace_ != nullptr) trace_->Leave();
}

}  // namespace halftone::nn::internal

namespace halftone::nn {

ModuleScope::ModuleScope(const Module& module, Loc loc) : trace_(internal::Trace::Current()) {
  if (trace_ != nullptr) trace_->EnterModule(module, loc);
}

ModuleScope::~ModuleScope() {
  if (trace_ != nullptr) trace_->Leave();
}

}  // namespace halftone::nn
