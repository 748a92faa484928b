// Shape: the extents of a tensor, outermost first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "halftone/core/status.h"

namespace halftone {

inline constexpr int kMaxRank = 8;
// No tensor may have more elements; sizes in bytes then fit int64 for every dtype.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

// Invariant: 0 <= rank <= kMaxRank, every extent >= 0, product of the nonzero extents <=
// kMaxElements (so that no stride overflows either). A scalar has rank 0 and one element.
class Shape {
 public:
  Shape() = default;
  // Requires the invariant (checked); use Make for extents from outside.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);
  static absl::StatusOr<Shape> Make(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int axis) const { return dims_[axis]; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  // Product of all extents (1 for a scalar, 0 if any extent is 0).
  int64_t num_elements() const;
  // Row-major strides in elements.
  absl::InlinedVector<int64_t, 4> strides() const;
  // "[8,16]", "[]".
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  absl::InlinedVector<int64_t, 4> dims_;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// NumPy's broadcasting rule: right-aligned, extents equal or 1. Error text names both shapes.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);
// Whether `from` broadcasts to exactly `to`.
bool BroadcastsTo(const Shape& from, const Shape& to);
// Maps axis in [-rank, rank) to [0, rank); error says "axis 5 out of range for rank 2; expected
// -2..1".
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

}  // namespace halftone
