// Handles on parts of a graph, as Python has them: they know when their graph is gone, and wait for
// calls that other threads make.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "halftone/graph/nn/handles.h"
#include "halftone/python_stub/errors.h"
#include "halftone/python_stub/python_graph.h"

namespace halftone::python {

// A handle on something of a graph that may be gone, see PythonGraph::alive.
template <typename Handle>
class Weak {
 public:
  Weak(Handle handle, PythonGraph& graph) : Weak(std::move(handle), graph.alive(), &graph) {}
  Weak(Handle handle, std::weak_ptr<void> alive, PythonGraph* graph)
      : handle_(std::move(handle)),
        name_(handle_.name()),
        graph_(std::move(alive)),
        owner_(graph) {}
  // A handle on a part of this.
  template <typename Part>
  Weak<Part> With(Part part) const {
    return Weak<Part>(std::move(part), graph_, owner_);
  }
  // That of a graph's own scaler may come later than the handle.
  const std::string& name() const { return graph_.expired() ? name_ : handle_.name(); }
  Handle& get() {
    if (graph_.expired()) {
      Raise(FailedPrecondition(name_.empty() ? "grad_scaler()" : name_,
                               ": its graph no longer exists"));
    }
    return handle_;
  }
  // Raises like get().
  PythonGraph& owner() {
    get();
    return *owner_;
  }
  // Waits for a call that another thread makes, without the interpreter lock. Raises like get().
  GraphLock Lock() {
    get();
    return GraphLock(*owner_);
  }

 private:
  Handle handle_;
  std::string name_;
  std::weak_ptr<void> graph_;
  PythonGraph* owner_;  // valid while graph_ is
};

using OptimizerHandle = Weak<nn::OptimizerHandle>;
using GroupHandle = Weak<nn::GroupHandle>;
using PlateauHandle = Weak<nn::PlateauHandle>;
using ScalerHandle = Weak<nn::ScalerHandle>;

template <typename Handle, typename R>
auto Getter(R (Handle::*get)() const) {
  return [get](Weak<Handle>& handle) {
    const GraphLock lock = handle.Lock();
    return (handle.get().*get)();
  };
}

template <typename Handle, typename T>
auto Setter(absl::Status (Handle::*set)(T)) {
  return [set](Weak<Handle>& handle, T value) {
    const GraphLock lock = handle.Lock();
    Check((handle.get().*set)(value));
  };
}

}  // namespace halftone::python
