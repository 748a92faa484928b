#include "halftone/graph/nn/value.h"

#include "halftone/graph/nn/functional_elementwise.h"
#include "halftone/graph/nn/op.h"
#include "halftone/graph/nn/parameter.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {

Value::Value(const Parameter& parameter, Loc loc) {
  if (internal::Trace* trace = internal::Trace::Current()) {
    *this = trace->Read(parameter.storage(), loc);
  }
}

bool Value::valid() const {
  const internal::Trace* trace = internal::Trace::Current();
  return node_ != nullptr && trace != nullptr && trace->number() == trace_;
}

const Shape& Value::shape() const {
  static const Shape* const poison = new Shape(std::vector<int64_t>(kMaxRank, 1));
  return valid() ? node_->output_type(index_).shape : *poison;
}

int64_t Value::dim(int64_t axis, Loc loc) const {
  if (!valid()) return 1;
  const absl::StatusOr<int> index = NormalizeAxis(axis, rank());
  if (!index.ok()) {
    nn::Fail(loc, Annotate(index.status(), "dim: "));
    return 1;
  }
  return shape()[*index];
}

DType Value::dtype() const { return valid() ? node_->output_type(index_).dtype : DType::kF32; }

Value Values::operator[](Index i) const {
  if (i.index < 0 || i.index >= static_cast<int64_t>(size())) {
    return nn::Fail(i.loc,
                    OutOfRange("values[", i.index, "]: there are ", size(), " values; expected ",
                               empty() ? "none" : Concat("0..", size() - 1)));
  }
  return values_[static_cast<size_t>(i.index)];
}

Located::Located(const Parameter& parameter, Loc loc) : value_(parameter, loc), loc_(loc) {}

OptionalValue::OptionalValue(const Parameter& parameter, Loc loc) {
  if (parameter.defined()) value_.emplace(parameter, loc);
}

Value operator+(Located a, Located b) { return add(a, b); }
Value operator-(Located a, Located b) { return sub(a, b); }
Value operator*(Located a, Located b) { return mul(a, b); }
Value operator/(Located a, Located b) { return div(a, b); }
Value operator-(Located a) { return neg(a.value(), a.loc()); }
Value operator<(Located a, Located b) { return less(a, b); }
Value operator<=(Located a, Located b) { return less_equal(a, b); }
Value operator>(Located a, Located b) { return greater(a, b); }
Value operator>=(Located a, Located b) { return greater_equal(a, b); }

}  // namespace halftone::nn
