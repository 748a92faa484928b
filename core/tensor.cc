#include "halftone/core/tensor.h"

#include "halftone/core/convert.h"

namespace halftone {

absl::StatusOr<Tensor> Tensor::Allocate(DType dtype, const Shape& shape) {
  const auto elements = static_cast<size_t>(shape.num_elements());
  auto buffer = Buffer::Allocate(elements * SizeOf(dtype));
  if (!buffer.ok()) {
    return Annotate(buffer.status(), Concat("tensor ", Name(dtype), shape, ": "));
  }
  return Tensor(dtype, shape, *std::move(buffer));
}

Tensor Tensor::Empty(DType dtype, const Shape& shape) {
  absl::StatusOr<Tensor> tensor = Allocate(dtype, shape);
  if (!tensor.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, "memory", Message(tensor.status()).c_str());
  }
  return *std::move(tensor);
}

Tensor Tensor::Zeros(DType dtype, const Shape& shape) {
  Tensor t = Empty(dtype, shape);
  std::memset(t.raw(), 0, t.num_bytes());
  return t;
}

Tensor Tensor::Full(DType dtype, const Shape& shape, double value) {
  Tensor t = Empty(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, value);
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
