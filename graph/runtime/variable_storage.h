// VariableStorage: one piece of state that lives across steps. Its identity is the object; graphs
// know it by names of their own (see variable_store.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/runtime/state_guard.h"
#include "halftone/kernels/device_backend.h"

namespace halftone::kernels {
struct Packing;
}

namespace halftone::runtime {

// The value of a variable, or of its cast to a 16-bit type, in the memory of a device.
struct DeviceCopy {
  std::unique_ptr<kernels::DeviceMemory> memory;
  uint64_t version = 0;  // of the value it holds; 0: none
};

// The cast of a variable to a 16-bit type, in host memory.
struct HostCast {
  Tensor value;
  uint64_t version = 0;  // of the value it was made of; 0: none
};

// A variable, or a cast of it, in the order of a kernel, in host memory (kernels::Packing).
struct HostPacked {
  Tensor bytes;
  uint64_t version = 0;  // of the value it was made of; 0: none
};

// Of no variable yet. Errors: ResourceExhausted.
absl::StatusOr<std::shared_ptr<HostPacked>> MakePacked(const kernels::Packing& packing);

// The master value is in plain layout and is made when it is first needed. Its memory, in the host
// and on each device that runs a graph with it, then never moves, so executables may keep
// addresses.
//
// Whoever writes a copy says so (HostWrote, DeviceWrote), which makes it the newest; readers bring
// their own up to date first. Nothing is copied before somebody reads.
//
// Thread-safety: whoever reads or writes a value that graphs may use holds guard(); calls and
// functions of graphs and Parameter do.
class VariableStorage {
 public:
  VariableStorage(DType dtype, const Shape& shape, ir::VariableKind kind, bool trainable,
                  const ir::Initializer& init)
      : dtype_(dtype),
        read_as_(dtype),
        shape_(shape),
        kind_(kind),
        trainable_(trainable),
        init_(init) {}
  // The same variable kept in `dtype`, with its value if it has one, rounded to nearest; graphs
  // read it cast to the type of this one. Callers hold the guard. Errors: those of FetchToHost and
  // CheckNoAverage; ResourceExhausted.
  absl::StatusOr<std::shared_ptr<VariableStorage>> KeptIn(DType dtype) const;
  VariableStorage(const VariableStorage&) = delete;
  VariableStorage& operator=(const VariableStorage&) = delete;

  // Of the value as it is kept.
  DType dtype() const { return dtype_; }
  // Of what steps compute with: another one for a parameter that its optimizer keeps in fewer bits.
  DType read_as() const { return read_as_; }
  const Shape& shape() const { return shape_; }
  ir::VariableKind kind() const { return kind_; }
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable) { trainable_ = trainable; }
  const ir::Initializer& init() const { return init_; }
  // What a graph that knows it as `name` declares.
  ir::Variable Describe(const std::string& name) const;
  // "f32[8,16]"
  std::string TypeString() const;

  // Null before any store knows the variable.
  std::shared_ptr<StateGuard> guard() const;
  // For stores: makes `own` the guard if there is none yet, and gives the guard.
  std::shared_ptr<StateGuard> ShareGuard(const std::shared_ptr<StateGuard>& own);

  bool materialised() const { return value_.defined(); }
  // Makes the first value, from random stream (seed, hash of name). Does nothing if there is a
  // value. Errors: ResourceExhausted.
  absl::Status Materialise(uint64_t seed, const std::string& name);

  // The master in host memory, shared; fetched from the device that wrote it last. Should that fail
  // it is the last value that came, and FetchToHost says why. Requires: materialised().
  const Tensor& value() const;
  // The same memory as it is, without fetching.
  void* host_data() const { return value_.raw(); }

  // Makes the host's value the newest one's equal; waits for the device if that has it. Errors: the
  // device's.
  absl::Status FetchToHost() const;

  // Copies `value` into the master. Errors: InvalidArgument if dtype or shape differ;
  // ResourceExhausted.
  absl::Status Assign(const Tensor& value);
  // Takes the memory of the first Assign, which then cannot fail for the lack of it; there is no
  // value before. Errors: ResourceExhausted.
  absl::Status Reserve();
  // Back to the first value of a variable that begins as a constant. Nothing if there is no value.
  void StartAnew();

  // An EmaScope of a graph that knows it as `name` has put an average in the place of the value and
  // will take it back; empty: no more.
  void set_average_of(const std::string& name) { average_of_ = name; }
  bool holds_average() const { return !average_of_.empty(); }
  // For `what`, which would write a value that is lost then. Errors: FailedPrecondition, naming the
  // parameter.
  absl::Status CheckNoAverage(const char* what) const;

  // Grows with every write; from 1 once there is a value.
  uint64_t version() const { return version_; }
  bool host_is_newest() const { return host_version_ == version_; }
  void HostWrote() { host_version_ = ++version_; }

  // The value on a device, made (not filled) at the first call. The address is the storage's from
  // then on. Errors: ResourceExhausted.
  absl::StatusOr<DeviceCopy*> OnDevice(kernels::DeviceBackend& backend);
  // The same for its cast to `low`.
  absl::StatusOr<DeviceCopy*> LowOnDevice(kernels::DeviceBackend& backend, DType low);
  // The same cast on the host.
  absl::StatusOr<HostCast*> LowOnHost(DType low);
  // The value packed in the format of `packing`, the same for all who ask while one of them holds it.
  absl::StatusOr<std::shared_ptr<HostPacked>> PackedOnHost(const kernels::Packing& packing);
  void DeviceWrote(DeviceCopy& copy) { copy.version = ++version_; }

 private:
  DType dtype_, read_as_;
  Shape shape_;
  ir::VariableKind kind_;
  bool trainable_;
  absl::StatusOr<DeviceCopy*> CopyOn(kernels::DeviceBackend& backend, DType dtype);

  ir::Initializer init_;
  std::shared_ptr<StateGuard> guard_;
  mutable Tensor value_;
  Tensor reserved_;  // memory for value_
  std::string average_of_;
  uint64_t version_ = 0;
  mutable uint64_t host_version_ = 0;
  std::map<std::pair<kernels::DeviceBackend*, DType>, DeviceCopy> on_devices_;
  std::map<DType, HostCast> low_on_host_;
  std::map<std::string, std::weak_ptr<HostPacked>> packed_on_host_;  // by format
};

}  // namespace halftone::runtime
