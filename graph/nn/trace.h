// Trace: the state of one build() while it runs. What the functions of nn are made of.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/nn/value.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::nn {
class Module;
}

namespace halftone::nn::internal {

// With the base name of the file.
ir::SourceLocation ToSourceLocation(const Loc& loc);

struct ModuleInfo {
  std::string path;  // "encoder/fc1"; of a module with several, the first
  std::vector<const Module*> parents;
};

// What a trace knows about its graph.
struct GraphInfo {
  std::map<const Module*, ModuleInfo> modules;
  std::vector<std::string> scalers;
  std::vector<std::string> optimizers;
  std::string default_scaler;  // of every backward() that names none; may be empty
};

class Trace {
 public:
  // Traces into `graph`; becomes the thread's current trace until destroyed. Traces may nest.
  Trace(ir::Graph* graph, const runtime::VariableStore* store, const GraphInfo* info, bool training,
        uint64_t seed);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // The innermost trace of this thread; null outside build().
  static Trace* Current();
  // That of a graph, or of one that has the module or variable, if its build() is running in this
  // thread.
  static Trace* Of(const GraphInfo& info);
  static Trace* With(const Module& module);
  static Trace* With(const runtime::VariableStorage& variable);

  ir::Builder& builder() { return builder_; }
  bool training() const { return training_; }
  // Whether the innermost module trains: never in an evaluation step.
  bool module_training() const { return frames_.back().training; }
  const GraphInfo& info() const { return *info_; }

  // Poison, and an error at `loc`, for values of another trace.
  ir::Expr Unwrap(const Value& value, Loc loc);
  Value Wrap(ir::Expr expr) const;
  // Makes the following nodes carry `loc`.
  void At(Loc loc);
  // From now on nodes carry what `locate` gives, whatever At is told: for languages whose callers
  // have no std::source_location.
  void set_locate(std::function<ir::SourceLocation()> locate) { locate_ = std::move(locate); }
  void Fail(Loc loc, absl::Status status);

  // The value of a variable at this point: what the last Write gave, else the one at the start of
  // the step.
  Value Read(const std::shared_ptr<runtime::VariableStorage>& storage, Loc loc);
  // The variable's value after the step, unless a later Write replaces it.
  void Write(const std::shared_ptr<runtime::VariableStorage>& storage, const Value& value, Loc loc);
  // Commits what was written. Call once, after build().
  void EmitCommits();

  // A seed for the next random op: a function of the graph's seed, the module path and how many
  // random ops that module has made.
  int64_t NextRandomSeed();

  void EnterModule(const Module& module, Loc loc);
  // A wish of the user for the ops up to the matching Leave, see Module::keep_fp32.
  void EnterAmp(int8_t request);
  void Leave();
  // How many were entered and not left.
  size_t depth() const { return frames_.size() - 1; }
  // What to say after build() of wishes that may not have reached every op.
  std::vector<std::string> AmpNotes() const;
  // Where the innermost module was called, for ops that a module of Halftone makes.
  Loc call_site() const { return frames_.back().call_site; }

  // The node of a constant. Large ones that are equal, such as the mask of every layer, are one
  // node.
  Value Constant(const Tensor& value);

  bool has_backward() const { return has_backward_; }
  void note_backward() { has_backward_ = true; }
  // Whether something beside backward() needs the graph's scalers.
  bool reads_scale() const { return reads_scale_; }
  void note_reads_scale() { reads_scale_ = true; }
  uint64_t number() const { return number_; }

 private:
  struct Frame {
    std::string scope;
    int8_t amp_request = 0;
    std::string recompute;  // the outermost call that asks for it; empty: none
    bool training = true;
    const Module* module = nullptr;  // the innermost
    Loc call_site;
  };
  void ApplyFrame();
  bool IsOpen(const Module& module) const;
  // The wish for ops of a module that is about to be entered: its own, else that of the nearest
  // module around it, as registered, whoever calls. A module that is open passes on what holds
  // inside it now, the scopes in its forward() included.
  int8_t AmpRequestOf(const Module& module);
  // Whether a call of `module` is to be recomputed by its own wish, or that of a module around it
  // that is not open, such as a list.
  bool Recomputes(const Module& module) const;
  // "blocks/3" for the first call of a module in this trace, then "blocks/3#1", ...
  std::string NameOfCall(const std::string& path);
  // A constant node with a copy of the value; an error of the trace where memory is short.
  ir::Expr CopiedConstant(const Tensor& value);
  // The node of a variable: its value at the start of the step.
  ir::Expr Variable(const std::shared_ptr<runtime::VariableStorage>& storage, Loc loc);

  ir::Builder builder_;
  const runtime::VariableStore* store_;
  const GraphInfo* info_;
  bool training_;
  uint64_t seed_;
  uint64_t number_;
  Trace* outer_;
  bool has_backward_ = false;
  bool reads_scale_ = false;
  std::function<ir::SourceLocation()> locate_;  // empty: what At is told
  std::vector<Frame> frames_;
  std::set<const Module*> entered_;
  std::set<const Module*>
      obeyed_unopened_;  // their wish reached a submodule while they were not open
  std::set<const runtime::VariableStorage*> frozen_;
  std::map<const runtime::VariableStorage*, ir::Expr> values_;
  std::vector<std::pair<std::string, const runtime::VariableStorage*>> written_;
  std::map<std::string, int> random_ordinals_;
  std::map<std::string, int> recomputed_calls_;                 // by path
  std::map<uint64_t, std::vector<ir::Value>> large_constants_;  // by a hash of their bytes
};

// Whether a graph, or a module and the graphs that have it, may change now. Not while build()
// describes a step of it: that is an error of the trace at `loc`, "eval() was called inside ...".
bool MayChange(const GraphInfo& graph, const char* function, Loc loc);
bool MayChange(const Module& module, const char* function, Loc loc);
// The same as a status, for functions that return one.
absl::Status CheckMayChange(const GraphInfo& graph, const char* function);
absl::Status CheckMayChange(const Module& module, const char* function);
absl::Status CheckMayChange(const runtime::VariableStorage& variable, const char* function);

}  // namespace halftone::nn::internal
