#include "halftone/core/shape.h"

#include <algorithm>
#include <ostream>

#include "halftone/core/check.h"

namespace halftone {
namespace {

std::string DimsToString(absl::Span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + ']';
}

// Also for dims that are too many to print in full.
std::string Abbreviated(absl::Span<const int64_t> dims) {
  constexpr size_t kShown = 16;
  if (dims.size() <= kShown) return DimsToString(dims);
  std::string text = DimsToString(dims.subspan(0, kShown));
  text.back() = ',';
  return text + "...]";
}

absl::Status Validate(absl::Span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return InvalidArgument("shape ", Abbreviated(dims), " has rank ", dims.size(),
                           "; expected at most ", kMaxRank);
  }
  // Extents of 0 are left out of the product, so that no stride overflows either.
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      return InvalidArgument("shape ", DimsToString(dims), " has extent ", dim,
                             "; expected 0 or more");
    }
    if (dim == 0) continue;
    if (dim > kMaxElements / product) {
      return InvalidArgument("shape ", DimsToString(dims), " has more than ", kMaxElements,
                             " elements");
    }
    product *= dim;
  }
  return absl::OkStatus();
}

void CheckValid(absl::Span<const int64_t> dims) {
  if (absl::Status status = Validate(dims); !status.ok()) {
    internal::CheckFailed(__FILE__, __LINE__, "valid shape", Message(status).c_str());
  }
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) : dims_(dims) { CheckValid(dims_); }

Shape::Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {
  CheckValid(dims_);
}

absl::StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims) {
  HT_RETURN_IF_ERROR(Validate(dims));
  Shape shape;
  shape.dims_.assign(dims.begin(), dims.end());
  return shape;
}

int64_t Shape::num_elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims_) product *= dim;
  return product;
}

absl::InlinedVector<int64_t, 4> Shape::strides() const {
  absl::InlinedVector<int64_t, 4> strides(dims_.size());
  int64_t stride = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= dims_[axis];
  }
  return strides;
}

std::string Shape::ToString() const { return DimsToString(dims_); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  absl::InlinedVector<int64_t, 4> dims(rank);
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank());
    const int axis_b = axis - (rank - b.rank());
    const int64_t dim_a = axis_a < 0 ? 1 : a[axis_a];
    const int64_t dim_b = axis_b < 0 ? 1 : b[axis_b];
    if (dim_a != dim_b && dim_a != 1 && dim_b != 1) {
      return InvalidArgument("shapes ", a, " and ", b, " do not broadcast: ", dim_a, " against ",
                             dim_b, " at axis ", axis - rank, "; expected equal extents or 1");
    }
    dims[axis] = dim_a == 1 ? dim_b : dim_a;
  }
  return Shape::Make(dims);
}

bool BroadcastsTo(const Shape& from, const Shape& to) {
  const int offset = to.rank() - from.rank();
  if (offset < 0) return false;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1 && from[axis] != to[axis + offset]) return false;
  }
  return true;
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  if (rank == 0) {
    return InvalidArgument("axis ", axis, " out of range for rank 0; a scalar has no axes");
  }
  return InvalidArgument("axis ", axis, " out of range for rank ", rank, "; expected ", -rank, "..",
                         rank - 1);
}

}  // namespace halftone
