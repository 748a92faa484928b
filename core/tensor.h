// Tensor: a typed, shaped, dense row-major array in host memory that shares its buffer when copied.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/allocator.h"
#include "halftone/core/check.h"
#include "halftone/core/dtype.h"
#include "halftone/core/shape.h"

namespace halftone {

class Tensor {
 public:
  // An empty handle: defined() is false, nothing else may be called.
  Tensor() = default;

  // Contents are uninitialised. Errors: ResourceExhausted.
  static absl::StatusOr<Tensor> Allocate(DType dtype, const Shape& shape);
  // All elements 0 (see Buffer::AllocateZeroed). Errors: ResourceExhausted.
  static absl::StatusOr<Tensor> AllocateZeros(DType dtype, const Shape& shape);
  // The next four, Clone and To end the program when memory runs out.
  static Tensor Empty(DType dtype, const Shape& shape);
  static Tensor Zeros(DType dtype, const Shape& shape);
  static Tensor Full(DType dtype, const Shape& shape, double value);
  // Values in row-major order, each converted to `dtype` with one rounding. Requires: as many
  // values as elements.
  static Tensor Of(DType dtype, const Shape& shape, absl::Span<const double> values);
  static Tensor Of(DType dtype, const Shape& shape, std::initializer_list<double> values) {
    return Of(dtype, shape, absl::Span<const double>(values.begin(), values.size()));
  }
  // f32, or the dtype of T, from a vector of values.
  template <typename T>
  static Tensor FromVector(const Shape& shape, const std::vector<T>& values) {
    Tensor t = Empty(DTypeOf<T>::kValue, shape);
    HT_CHECK(static_cast<int64_t>(values.size()) == t.num_elements(), "values and shape disagree");
    for (int64_t i = 0; i < t.num_elements(); ++i) t.data<T>()[i] = values[i];
    return t;
  }
  static Tensor Scalar(DType dtype, double value) { return Full(dtype, Shape{}, value); }

  bool defined() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return shape_.num_elements(); }
  size_t num_bytes() const { return static_cast<size_t>(num_elements()) * SizeOf(dtype_); }

  // Waits if the tensor is an output that an accelerator has not given yet; so do all accessors of
  // elements.
  void* raw() const { return buffer_->data(); }
  // The same address without waiting.
  void* address() const { return buffer_->address(); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  template <typename T>
  T* data() const {
    HT_CHECK(DTypeOf<T>::kValue == dtype_, "Tensor::data<T>: T is not the tensor's dtype");
    return static_cast<T*>(buffer_->data());
  }

  // Element `i` in row-major order as double.
  double at(int64_t i) const { return LoadDouble(raw(), dtype_, i); }
  void set(int64_t i, double value) { StoreDouble(raw(), dtype_, i, value); }
  // The single element. Requires: one element.
  double item() const;
  std::vector<double> ToVector() const;

  Tensor Clone() const;
  // Elementwise conversion with one rounding.
  Tensor To(DType dtype) const;
  // Clone and To for values of any size. Errors: ResourceExhausted.
  absl::StatusOr<Tensor> Copy() const { return Convert(dtype_); }
  absl::StatusOr<Tensor> Convert(DType dtype) const;
  // Same buffer, other extents. Requires: equal element counts.
  Tensor Reshape(const Shape& shape) const;
  // "f32[2,3]"
  std::string TypeString() const;

 private:
  Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer)
      : dtype_(dtype), shape_(shape), buffer_(std::move(buffer)) {}
  DType dtype_ = DType::kF32;
  Shape shape_;
  std::shared_ptr<Buffer> buffer_;
};

// Same dtype, shape and bytes (so NaN equals the same NaN, and -0 differs from 0).
bool BitEqual(const Tensor& a, const Tensor& b);

}  // namespace halftone
