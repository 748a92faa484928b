// Parameter: a handle on a tensor that a module owns and a step may change.
#pragma once

#include <memory>

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::runtime {
class VariableStorage;
}

namespace halftone::nn {

// Copies refer to the same tensor. Assigning ties: after `decoder.weight = encoder.weight` both
// modules use one tensor, which has both names in every graph. That may be done at any time; graphs
// that have compiled compile anew. The optimizer state of the tensor that stays goes on.
class Parameter {
 public:
  // Undefined: the module has no such parameter (a layer without bias).
  Parameter();
  // A trainable parameter. The value is made when a graph that owns the module first runs or is
  // asked for its state.
  Parameter(const Shape& shape, const ir::Initializer& init, DType dtype = DType::kF32);
  // State that no optimizer touches: running statistics, counters.
  static Parameter Buffer(const Shape& shape, const ir::Initializer& init,
                          DType dtype = DType::kF32);

  Parameter(const Parameter&) = default;
  Parameter& operator=(const Parameter& other);

  bool defined() const { return slot_->storage != nullptr; }
  // The rest requires defined().
  DType dtype() const;
  const Shape& shape() const;
  // False for buffers and for parameters that no optimizer shall change, whatever their modules say
  // (see Module::freeze).
  bool requires_grad() const;
  void set_requires_grad(bool on);

  // A copy of the value. If no graph has made it yet it is made here, with seed 0; call
  // Graph::initialize() first to have the graph's seed rule it.
  // Errors: ResourceExhausted; the device's that wrote it last.
  absl::StatusOr<Tensor> get_value() const;
  // The same; ends the program where get_value() gives an error.
  Tensor value() const;
  // Seen by the next run of every graph that uses the parameter.
  // Errors: InvalidArgument "got f32[3], expected f32[2]".
  absl::Status set_value(const Tensor& value);

  const std::shared_ptr<runtime::VariableStorage>& storage() const { return slot_->storage; }
  // For graphs: as if a parameter with this storage were assigned. Requires: defined().
  void Assign(const std::shared_ptr<runtime::VariableStorage>& storage);
  // What optimizers take: optim::SGD({fc.weight, fc.bias}).
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::shared_ptr<runtime::VariableStorage>() const { return slot_->storage; }

 private:
  // The member of a module and the module's list of parameters are copies of one handle; the slot
  // between them and the tensor lets an assignment reach both.
  struct Slot {
    std::shared_ptr<runtime::VariableStorage> storage;
  };
  std::shared_ptr<Slot> slot_;
};

}  // namespace halftone::nn
