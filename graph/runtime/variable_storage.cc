#include "halftone/graph/runtime/variable_storage.h"

#include <cstring>

#include "halftone/core/check.h"
#include "halftone/core/convert.h"
#include "halftone/core/philox.h"
#include "halftone/graph/runtime/initial_values.h"
#include "halftone/kernels/kernel.h"

namespace halftone::runtime {

namespace {

// Over the guards of all storages; several threads may make graphs of one module.
std::mutex guards_mutex;

}  // namespace

std::shared_ptr<StateGuard> VariableStorage::guard() const {
  const std::lock_guard<std::mutex> lock(guards_mutex);
  return guard_;
}

std::shared_ptr<StateGuard> VariableStorage::ShareGuard(const std::shared_ptr<StateGuard>& own) {
  const std::lock_guard<std::mutex> lock(guards_mutex);
  if (guard_ == nullptr) guard_ = own;
  return guard_;
}

absl::StatusOr<std::shared_ptr<VariableStorage>> VariableStorage::KeptIn(DType dtype) const {
  HT_RETURN_IF_ERROR(CheckNoAverage("add_optimizer"));
  auto kept = std::make_shared<VariableStorage>(dtype, shape_, kind_, trainable_, init_);
  kept->read_as_ = read_as_;
  if (!materialised()) return kept;
  HT_RETURN_IF_ERROR(FetchToHost());
  HT_ASSIGN_OR_RETURN(kept->value_, value_.Convert(dtype));
  kept->HostWrote();
  return kept;
}

ir::Variable VariableStorage::Describe(const std::string& name) const {
  return {name, ir::ValueType{dtype_, shape_}, kind_, trainable_, init_};
}

std::string VariableStorage::TypeString() const { return Concat(Name(dtype_), shape_); }

absl::Status VariableStorage::Materialise(uint64_t seed, const std::string& name) {
  if (materialised()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(
      value_, MakeInitialValue(init_, seed, HashName(name.data(), name.size()), dtype_, shape_));
  HostWrote();
  return absl::OkStatus();
}

const Tensor& VariableStorage::value() const {
  if (!host_is_newest()) FetchToHost().IgnoreError();
  return value_;
}

absl::Status VariableStorage::FetchToHost() const {
  if (host_is_newest()) return absl::OkStatus();
  for (const auto& [where, copy] : on_devices_) {
    if (where.second != dtype_ || copy.version != version_) continue;
    HT_RETURN_IF_ERROR(where.first->CheckProcess());
    HT_RETURN_IF_ERROR(
        where.first->Download(value_.raw(), copy.memory->data(), value_.num_bytes()));
    host_version_ = version_;
    return absl::OkStatus();
  }
  return Internal("no copy of a variable is the newest");
}

absl::StatusOr<DeviceCopy*> VariableStorage::OnDevice(kernels::DeviceBackend& backend) {
  return CopyOn(backend, dtype_);
}

absl::StatusOr<DeviceCopy*> VariableStorage::LowOnDevice(kernels::DeviceBackend& backend,
                                                         DType low) {
  HT_CHECK(low != dtype_, "a low copy has another dtype");
  return CopyOn(backend, low);
}

absl::StatusOr<DeviceCopy*> VariableStorage::CopyOn(kernels::DeviceBackend& backend, DType dtype) {
  DeviceCopy& copy = on_devices_[{&backend, dtype}];
  if (copy.memory == nullptr) {
    const auto bytes = static_cast<size_t>(shape_.num_elements()) * SizeOf(dtype);
    HT_ASSIGN_OR_RETURN(copy.memory, backend.Allocate(bytes));
  }
  return &copy;
}

absl::StatusOr<HostCast*> VariableStorage::LowOnHost(DType low) {
  HT_CHECK(low != dtype_, "a low copy has another dtype");
  HostCast& cast = low_on_host_[low];
  if (!cast.value.defined()) {
    HT_ASSIGN_OR_RETURN(cast.value, Tensor::Allocate(low, shape_));
  }
  return &cast;
}

absl::StatusOr<std::shared_ptr<HostPacked>> MakePacked(const kernels::Packing& packing) {
  auto packed = std::make_shared<HostPacked>();
  HT_ASSIGN_OR_RETURN(packed->bytes,
                      Tensor::Allocate(DType::kU8, {static_cast<int64_t>(packing.bytes)}));
  return packed;
}

absl::StatusOr<std::shared_ptr<HostPacked>> VariableStorage::PackedOnHost(
    const kernels::Packing& packing) {
  std::weak_ptr<HostPacked>& held = packed_on_host_[packing.format];
  if (std::shared_ptr<HostPacked> packed = held.lock()) return packed;
  HT_ASSIGN_OR_RETURN(std::shared_ptr<HostPacked> packed, MakePacked(packing));
  held = packed;
  return packed;
}

absl::Status VariableStorage::Assign(const Tensor& value) {
  if (!value.defined() || value.dtype() != dtype_ || value.shape() != shape_) {
    return InvalidArgument("got ", value.defined() ? value.TypeString() : "an undefined tensor",
                           ", expected ", TypeString());
  }
  if (!materialised()) {
    HT_RETURN_IF_ERROR(Reserve());
    value_ = std::exchange(reserved_, Tensor());
  }
  if (value.num_bytes() != 0) std::memmove(value_.raw(), value.raw(), value.num_bytes());
  HostWrote();
  return absl::OkStatus();
}

absl::Status VariableStorage::CheckNoAverage(const char* what) const {
  if (!holds_average()) return absl::OkStatus();
  return FailedPrecondition(what, " while an EmaScope lives: the average of parameter \"",
                            average_of_, "\" stands in its place");
}

absl::Status VariableStorage::Reserve() {
  if (materialised() || reserved_.defined()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(reserved_, Tensor::Allocate(dtype_, shape_));
  return absl::OkStatus();
}

void VariableStorage::StartAnew() {
  HT_CHECK(init_.kind == ir::Initializer::Kind::kConstant, "a first value that is not random");
  if (!materialised()) return;
  FillElements(init_.a, value_.raw(), dtype_, value_.num_elements());
  HostWrote();
}

}  // namespace halftone::runtime
