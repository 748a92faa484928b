#include "halftone/graph/nn/trace.h"

#include <atomic>
#include <string_view>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn::internal {
namespace {

thread_local Trace* current_trace = nullptr;
std::atomic<uint64_t> traces_made = 0;

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
}

Trace::~Trace() { current_trace = outer_; }

Trace* Trace::Current() { return current_trace; }

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
                               " belongs to no module of this graph; expected add_module or "
                               "add_parameter before the first call")));
    return {};
  }
  return builder_.Var(storage->Describe(*name));
}

Value Trace::Read(const std::shared_ptr<runtime::VariableStorage>& storage, Loc loc) {
  const auto written = values_.find(storage.get());
  return Wrap(written != values_.end() ? written->second : Variable(storage, loc));
}

void Trace::Write(const std::shared_ptr<runtime::VariableStorage>& storage, const Value& value,
                  Loc loc) {
  const ir::Expr before = Variable(storage, loc);
  const ir::Expr after = Unwrap(value, loc);
  if (!before.valid() || !after.valid()) return;
  if (before.dtype() != after.dtype() || before.shape() != after.shape()) {
    Fail(loc, InvalidArgument("update of \"", *store_->NameOf(storage.get()), "\": got ",
                              after.type().ToString(), ", expected ", before.type().ToString()));
    return;
  }
  if (values_.insert_or_assign(storage.get(), after).second) {
    written_.emplace_back(*store_->NameOf(storage.get()), storage.get());
  }
}

void Trace::EmitCommits() {
  for (const auto& [name, storage] : written_) builder_.Commit(name, values_.at(storage));
}

int64_t Trace::NextRandomSeed() {
  const std::string& scope = builder_.scope();
  // What is random in evaluations draws other numbers than the step of the same count.
  const std::string key =
      Concat(seed_, training_ ? "/" : "/eval/", scope, "#", random_ordinals_[scope]++);
  // Attributes are signed; one bit less of seed costs nothing.
  return static_cast<int64_t>(HashName(key.data(), key.size()) >> 1);
}

Value Trace::Constant(const Tensor& value) {
  if (value.num_elements() <= ir::kMaxInlineElements) {
    return Wrap(builder_.Constant(value.Clone()));
  }
  const uint64_t hash = HashName(static_cast<const char*>(value.raw()), value.num_bytes());
  std::vector<ir::Value>& same_hash = large_constants_[hash];
  for (const ir::Value& known : same_hash) {
    if (BitEqual(known.node->attrs().Get<Tensor>("value"), value)) {
      return Wrap(builder_.Wrap(known));
    }
  }
  const ir::Expr made = builder_.Constant(value.Clone());
  if (made.valid()) same_hash.push_back(made.value());
  return Wrap(made);
}

void Trace::EnterModule(const Module& module, Loc loc) {
  Frame frame = frames_.back();
  frame.call_site = loc;
  if (module.amp_request() != 0) frame.amp_request = module.amp_request();
  const auto path = info_->module_paths.find(&module);
  if (path != info_->module_paths.end()) {
    frame.scope = path->second;
  } else {
    Fail(loc, FailedPrecondition(module.description(),
                                 " is not part of this graph; expected add_module, or "
                                 "register_module in a module that was added"));
  }
  frames_.push_back(std::move(frame));
  ApplyFrame();
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
}

AmpScope::AmpScope(int8_t request) : trace_(Trace::Current()) {
  if (trace_ != nullptr) trace_->EnterAmp(request);
}

AmpScope::~AmpScope() {
  if (trace_ != nullptr) trace_->Leave();
}

ModuleScope::ModuleScope(const Module& module, Loc loc) : trace_(Trace::Current()) {
  if (trace_ != nullptr) trace_->EnterModule(module, loc);
}

ModuleScope::~ModuleScope() {
  if (trace_ != nullptr) trace_->Leave();
}

}  // namespace halftone::nn::internal
