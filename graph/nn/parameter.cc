#include "halftone/graph/nn/parameter.h"

#include <atomic>

#include "halftone/core/check.h"
#include "halftone/graph/nn/module_util.h"

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
  if (slot_->storage == other.slot_->storage) return *this;
  slot_->storage = other.slot_->storage;
  internal::NoteStructureChange();
  return *this;
}

void Parameter::set_requires_grad(bool on) {
  if (storage()->kind() != ir::VariableKind::kParameter) return;
  storage()->set_trainable(on);
  internal::NoteModeChange();
}

Tensor Parameter::value() const {
  HT_CHECK(storage()->Materialise(0, "").ok(), "Parameter::value: out of memory");
  return storage()->value().Clone();
}

absl::Status Parameter::set_value(const Tensor& value) { return storage()->Assign(value); }

}  // namespace halftone::nn
