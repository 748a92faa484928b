#include "halftone/graph/nn/parameter.h"

#include <atomic>
#include <utility>

#include "halftone/core/check.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/graph/runtime/variable_storage.h"

namespace halftone::nn {
namespace {

std::atomic<uint64_t> structure_version = 1;

}  // namespace

uint64_t internal::StructureVersion() { return structure_version.load(std::memory_order_relaxed); }
void internal::NoteStructureChange() { structure_version.fetch_add(1, std::memory_order_relaxed); }

Parameter::Parameter() : slot_(std::make_shared<Slot>()) {}

Parameter::Parameter(const Shape& shape, const ir::Initializer& init, DType dtype) : Parameter() {
  slot_->storage = std::make_shared<runtime::VariableStorage>(
      dtype, shape, ir::VariableKind::kParameter, /*trainable=*/true, init);
}

Parameter Parameter::Buffer(const Shape& shape, const ir::Initializer& init, DType dtype) {
  Parameter buffer;
  buffer.slot_->storage = std::make_shared<runtime::VariableStorage>(
      dtype, shape, ir::VariableKind::kBuffer, /*trainable=*/false, init);
  return buffer;
}

Parameter& Parameter::operator=(const Parameter& other) {
  if (this != &other) Assign(other.slot_->storage);
  return *this;
}

void Parameter::Assign(const std::shared_ptr<runtime::VariableStorage>& storage) {
  if (slot_->storage == storage) return;
  slot_->storage = storage;
  internal::NoteStructureChange();
}

DType Parameter::dtype() const { return storage()->dtype(); }
const Shape& Parameter::shape() const { return storage()->shape(); }
bool Parameter::requires_grad() const { return storage()->trainable(); }

void Parameter::set_requires_grad(bool on) {
  if (storage()->kind() != ir::VariableKind::kParameter) return;
  if (!internal::CheckMayChange(*storage(), "set_requires_grad").ok()) return;
  storage()->set_trainable(on);
  internal::NoteModeChange();
}

absl::StatusOr<Tensor> Parameter::get_value() const {
  const runtime::StateLock lock(storage()->guard());
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(storage()->Materialise(0, ""));
  HT_RETURN_IF_ERROR(storage()->FetchToHost());
  return storage()->value().Copy();
}

Tensor Parameter::value() const {
  absl::StatusOr<Tensor> value = get_value();
  if (!value.ok()) {
    halftone::internal::CheckFailed(__FILE__, __LINE__, "value", Message(value.status()).c_str());
  }
  return *std::move(value);
}

absl::Status Parameter::set_value(const Tensor& value) {
  HT_RETURN_IF_ERROR(internal::CheckMayChange(*storage(), "set_value"));
  const runtime::StateLock lock(storage()->guard());
  HT_RETURN_IF_ERROR(lock.status());
  HT_RETURN_IF_ERROR(storage()->CheckNoAverage("set_value"));
  return storage()->Assign(value);
}

}  // namespace halftone::nn
