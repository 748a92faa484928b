// Module: a named group of parameters, buffers and submodules with a forward function.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/nn/module_amp.h"
#include "halftone/graph/nn/parameter.h"
#include "halftone/graph/nn/value.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::nn {

// Modules must outlive the graphs that they are added to; several graphs may share one.
//
// A module trains or evaluates, see train(); in an evaluation step (Graph::eval) all modules
// evaluate. Modes and wishes for precision may change between calls, not inside build(): each
// combination is traced and compiled once. No state dict or checkpoint holds them.
//
// Example:
//   class Block : public nn::Module {
//    public:
//     Block() : fc_(64, 64), norm_({64}) {
//       register_module("fc", fc_);
//       register_module("norm", norm_);
//     }
//     nn::Value forward(const nn::Value& x) override { return x + nn::relu(fc_(norm_(x))); }
//    private:
//     nn::Linear fc_;
//     nn::LayerNorm norm_;
//   };
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Override one of them: one value in and one out, or several. Modules with another signature
  // offer functions of their own, which open a ModuleScope. Default: an error of the trace.
  virtual Value forward(const Value& x);
  virtual Values forward(const Values& in);
  // forward() under this module's name: y = fc(x), out = attention({q, k, v}). Errors inside
  // modules of Halftone name the caller's line.
  Value operator()(const Value& x, Loc loc = Loc::current());
  Values operator()(const Values& in, Loc loc = Loc::current());

  // "Linear(256, 128)": for messages and listings.
  virtual std::string description() const { return "Module"; }
  // Whether it only holds modules, and makes no ops of its own.
  virtual bool is_container() const { return false; }

  // Own parameters and those of submodules, depth first, names joined with '.': "fc1.weight".
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;
  std::vector<std::pair<std::string, Parameter>> named_buffers() const;
  // Of named_parameters, each once, for an optimizer.
  std::vector<std::shared_ptr<runtime::VariableStorage>> parameters() const;
  const std::vector<std::pair<std::string, Module*>>& children() const { return children_; }
  const std::vector<std::pair<std::string, Parameter>>& own_parameters() const {
    return parameters_;
  }

  // Modes of this module and of all below it, as in PyTorch. A module that evaluates lets dropout
  // pass and has batch norm use its running statistics, which then stay as they are; gradients pass
  // through it, and its parameters train. Errors (of the trace): called inside build().
  void train(bool on = true, Loc loc = Loc::current());
  void eval(Loc loc = Loc::current()) { train(false, loc); }
  // Makes this module and all below it evaluate, whatever train() says, and keeps their parameters
  // as they are: they get no update, so no decay and no momentum either. An optimizer may hold them
  // all the same; their optimizer state waits. Gradients pass through. A tied parameter stays while
  // any of its modules is frozen. unfreeze() gives way to what train() and eval() said last.
  void freeze(Loc loc = Loc::current());
  void unfreeze(Loc loc = Loc::current());
  bool is_training() const { return training_ && !frozen_; }
  bool is_frozen() const { return frozen_; }

  // Values of all parameters and buffers by name; tied ones share a tensor. Values that no graph
  // has made yet are made here, with seed 0. Errors: those of the constructor, ResourceExhausted.
  absl::StatusOr<runtime::StateDict> state_dict() const;
  // Seen by the next run of every graph that uses the module. Optimizers go on: their state is the
  // graph's. Errors: as Graph::load_state_dict; nothing has changed then.
  absl::StatusOr<runtime::LoadReport> load_state_dict(const runtime::StateDict& state,
                                                      bool strict = true) {
    return load_state_dict(state, runtime::LoadOptions{.strict = strict});
  }
  absl::StatusOr<runtime::LoadReport> load_state_dict(const runtime::StateDict& state,
                                                      const runtime::LoadOptions& options);

  // The wish of the user for every op of this module and its submodules, where they have none of
  // their own: stay in f32; run in 16 bit even where the op is by itself not worth it. It reaches
  // submodules whichever function calls them; for ops that a function other than forward() makes
  // itself, that function opens a ModuleScope.
  void keep_fp32(Loc loc = Loc::current());
  void allow_low(Loc loc = Loc::current());
  int8_t amp_request() const {
    return static_cast<int8_t>((amp_.low ? 1 : 0) - (amp_.fp32 ? 1 : 0));
  }
  // All that a module may be told about mixed precision, in place of what it was told before:
  // set_amp({}) takes back keep_fp32() and allow_low(). Operands and results are those of calls of
  // the module; a function that opens a ModuleScope casts its own. A 16-bit operand or result of
  // the program's own making becomes f32 without mixed precision too.
  // Errors (of status()): fp32 and low together, a position below 0.
  // Example: head.set_amp({.fp32 = true}); neck.set_amp({.fp32_inputs = {1}, .fp32_outputs = true});
  void set_amp(const ModuleAmp& amp, Loc loc = Loc::current());
  const ModuleAmp& amp() const { return amp_; }

  // Whether what a call of this module computes, submodules included, is not kept for the backward
  // pass but computed once more for it, as by torch.utils.checkpoint: a step takes less memory and
  // more time, and gives the same bits, random masks included. Kept are the operands of the call
  // and what others read of its results. A module called inside such a call is part of it; of a
  // container that is not itself called (ModuleList) each module called is one. Does nothing in
  // evaluation. Errors (of the trace): called inside build().
  void recompute(bool on = true, Loc loc = Loc::current());
  bool recomputes() const { return recomputes_; }

  // The first mistake in construction, returned by the first call of a graph.
  const absl::Status& status() const { return status_; }

 protected:
  // Only for modules without registered submodules, so that they can be handed to a Sequential.
  Module(Module&& other) noexcept;
  // For modules whose submodules stay where they are when they move.
  struct ChildrenStay {};
  Module(Module&& other, ChildrenStay) noexcept;

  // While a parameter is undefined it is left out of all lists; it may be assigned later. Names
  // must be unique, non-empty and without '.' and '/'.
  void register_parameter(const std::string& name, const Parameter& parameter);
  void register_buffer(const std::string& name, const Parameter& buffer);
  // `child` must live as long as this module: a member, or owned by it. Errors (kept in status()):
  // a module that is inside itself, or kMaxDepth levels below the outermost.
  void register_module(const std::string& name, Module& child);
  // Registers all children anew, under these names.
  void RenameModules(std::vector<std::pair<std::string, Module*>> children);
  void Fail(absl::Status status);
  // The first mistake, forgotten from now on. For languages that raise a mistake at once: the call
  // that made it has changed nothing else.
  absl::Status TakeStatus() { return std::exchange(status_, absl::OkStatus()); }

 private:
  friend class ModuleContainer;
  // Levels of modules in one another, so that what walks over them may recurse.
  static constexpr int kMaxDepth = 500;
  // Whether a member may be added under this name; if not, an error is kept.
  bool CheckNewMember(const std::string& name, const char* function);
  void SetAmp(const ModuleAmp& amp, const char* what, Loc loc);
  // Puts `child` and what is in it below this module. Errors: those of register_module.
  absl::Status Deepen(const std::string& name, Module& child) const;
  // Gives modules that it owns to `owner`.
  virtual void GiveUpOwned(std::vector<std::unique_ptr<Module>>& /*owner*/) {}
  std::vector<std::pair<std::string, Parameter>> parameters_;
  std::vector<std::pair<std::string, Parameter>> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  int depth_ = 0;  // levels above it, by the longest way
  ModuleAmp amp_;
  bool training_ = true;
  bool frozen_ = false;
  bool recomputes_ = false;
  absl::Status status_;
};

}  // namespace halftone::nn
