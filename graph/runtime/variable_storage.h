// VariableStorage: one piece of state that lives across steps. Its identity is the object; graphs
// know it by names of their own (see variable_store.h).
#pragma once

#include <cstdint>
#include <string>

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::runtime {

// The master value is in plain layout and is made when it is first needed. Its memory then never
// moves, so executables may keep the address.
//
// Invariant: whoever writes the memory calls BumpVersion afterwards; derived copies compare
// versions. Thread-safety: none; one thread runs graphs and reads or writes state at a time.
class VariableStorage {
 public:
  VariableStorage(DType dtype, const Shape& shape, ir::VariableKind kind, bool trainable,
                  const ir::Initializer& init)
      : dtype_(dtype), shape_(shape), kind_(kind), trainable_(trainable), init_(init) {}
  VariableStorage(const VariableStorage&) = delete;
  VariableStorage& operator=(const VariableStorage&) = delete;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  ir::VariableKind kind() const { return kind_; }
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable) { trainable_ = trainable; }
  const ir::Initializer& init() const { return init_; }
  // What a graph that knows it as `name` declares.
  ir::Variable Describe(const std::string& name) const;
  // "f32[8,16]"
  std::string TypeString() const;

  bool materialised() const { return value_.defined(); }
  // Makes the first value, from random stream (seed, hash of name). Does nothing if there is a
  // value. Errors: ResourceExhausted.
  absl::Status Materialise(uint64_t seed, const std::string& name);

  // The master itself, shared. Requires: materialised().
  const Tensor& value() const { return value_; }
  void* data() const { return value_.raw(); }

  // Copies `value` into the master. Errors: InvalidArgument if dtype or shape differ.
  absl::Status Assign(const Tensor& value);

  // Grows with every write.
  uint64_t version() const { return version_; }
  void BumpVersion() { ++version_; }

 private:
  DType dtype_;
  Shape shape_;
  ir::VariableKind kind_;
  bool trainable_;
  ir::Initializer init_;
  Tensor value_;
  uint64_t version_ = 0;
};

// Fills `value` as `init` says, from random stream (seed, stream).
void Initialise(const ir::Initializer& init, uint64_t seed, uint64_t stream, Tensor& value);

}  // namespace halftone::runtime
