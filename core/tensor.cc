#include "halftone/core/tensor.h"

#include "halftone/core/convert.h"

namespace halftone {

namespace {

size_t BytesOf(DType dtype, const Shape& shape) {
  return static_cast<size_t>(shape.num_elements()) * SizeOf(dtype);
}

absl::Status NoMemory(const absl::Status& status, DType dtype, const Shape& shape) {
  return Annotate(status, Concat("tensor ", Name(dtype), shape, ": "));
}

Tensor OrDie(absl::StatusOr<Tensor> tensor) {
  if (!tensor.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, "memory", Message(tensor.status()).c_str());
  }
  return *std::move(tensor);
}

}  // namespace

absl::StatusOr<Tensor> Tensor::Allocate(DType dtype, const Shape& shape) {
  auto buffer = Buffer::Allocate(BytesOf(dtype, shape));
  if (!buffer.ok()) return NoMemory(buffer.status(), dtype, shape);
  return Tensor(dtype, shape, *std::move(buffer));
}

absl::StatusOr<Tensor> Tensor::AllocateZeros(DType dtype, const Shape& shape) {
  auto buffer = Buffer::AllocateZeroed(BytesOf(dtype, shape));
  if (!buffer.ok()) return NoMemory(buffer.status(), dtype, shape);
  return Tensor(dtype, shape, *std::move(buffer));
}

Tensor Tensor::Empty(DType dtype, const Shape& shape) { return OrDie(Allocate(dtype, shape)); }

Tensor Tensor::Zeros(DType dtype, const Shape& shape) { return OrDie(AllocateZeros(dtype, shape)); }

Tensor Tensor::Full(DType dtype, const Shape& shape, double value) {
  Tensor t = Empty(dtype, shape);
  FillElements(value, t.raw(), dtype, t.num_elements());
  return t;
}

Tensor Tensor::Of(DType dtype, const Shape& shape, absl::Span<const double> values) {
  Tensor t = Empty(dtype, shape);
  HT_CHECK(static_cast<int64_t>(values.size()) == t.num_elements(),
           "Tensor::Of: values and shape disagree");
  ConvertElements(values.data(), DType::kF64, t.raw(), dtype, t.num_elements());
  return t;
}

double Tensor::item() const {
  HT_CHECK(num_elements() == 1, "Tensor::item: not one element");
  return at(0);
}

std::vector<double> Tensor::ToVector() const {
  std::vector<double> values(static_cast<size_t>(num_elements()));
  ConvertElements(raw(), dtype_, values.data(), DType::kF64, num_elements());
  return values;
}

Tensor Tensor::Clone() const { return To(dtype_); }

Tensor Tensor::To(DType dtype) const {
  Tensor t = Empty(dtype, shape_);
  ConvertElements(raw(), dtype_, t.raw(), dtype, num_elements());
  return t;
}

absl::StatusOr<Tensor> Tensor::Convert(DType dtype) const {
  HT_ASSIGN_OR_RETURN(Tensor t, Allocate(dtype, shape_));
  ConvertElements(raw(), dtype_, t.raw(), dtype, num_elements());
  return t;
}

Tensor Tensor::Reshape(const Shape& shape) const {
  HT_CHECK(shape.num_elements() == num_elements(), "Tensor::Reshape: element counts differ");
  return Tensor(dtype_, shape, buffer_);
}

std::string Tensor::TypeString() const { return Name(dtype_) + shape_.ToString(); }

bool BitEqual(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), a.num_bytes()) == 0;
}

}  // namespace halftone
