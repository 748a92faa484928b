// Module: a named group of parameters, buffers and submodules with a forward function.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/nn/parameter.h"
#include "halftone/graph/nn/value.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::nn {

// Modules must outlive the graphs that they are added to; several graphs may share one. A module
// holds no train or eval mode: that is the graph's.
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

  // One value in, one value out. Modules with another signature offer functions of their own, which
  // open an internal::ModuleScope. Default: an error of the trace.
  virtual Value forward(const Value& x);
  // forward(x) under this module's name. Errors inside modules of Halftone name the caller's line.
  Value operator()(const Value& x, Loc loc = Loc::current());

  // "Linear(256, 128)": for messages and listings.
  virtual std::string description() const { return "Module"; }

  // Own parameters and those of submodules, depth first, names joined with '.': "fc1.weight".
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;
  std::vector<std::pair<std::string, Parameter>> named_buffers() const;
  // Of named_parameters, each once, for an optimizer.
  std::vector<std::shared_ptr<runtime::VariableStorage>> parameters() const;
  const std::vector<std::pair<std::string, Module*>>& children() const { return children_; }

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
  // their own: stay in f32; run in 16 bit even where the op is by itself not worth it.
  void keep_fp32() { amp_request_ = -1; }
  void allow_low() { amp_request_ = 1; }
  int8_t amp_request() const { return amp_request_; }

  // The first mistake in construction, returned by the first call of a graph.
  const absl::Status& status() const { return status_; }

 protected:
  // Only for modules without registered members, so that they can be handed to a Sequential.
  Module(Module&& other) noexcept;

  // While a parameter is undefined it is left out of all lists; it may be assigned later. Names
  // must be unique, non-empty and without '.' and '/'.
  void register_parameter(const std::string& name, const Parameter& parameter);
  void register_buffer(const std::string& name, const Parameter& buffer);
  // `child` must live as long as this module: a member, or owned by it.
  void register_module(const std::string& name, Module& child);
  void Fail(absl::Status status);

 private:
  void CheckName(const std::string& name);
  std::vector<std::pair<std::string, Parameter>> parameters_;
  std::vector<std::pair<std::string, Parameter>> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  int8_t amp_request_ = 0;
  absl::Status status_;
};

}  // namespace halftone::nn
