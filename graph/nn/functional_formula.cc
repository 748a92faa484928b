#include "halftone/graph/nn/functional_formula.h"

#include <numeric>
#include <vector>

#include "halftone/graph/nn/functional.h"

namespace halftone::nn::internal {

Value Wide(const Value& x, Loc loc) { return CastTo(x, Promote(x.dtype(), DType::kF32), loc); }

bool CheckFloats(const char* op, const Value& x, Loc loc) {
  if (!x.valid() || IsFloat(x.dtype())) return true;
  Fail(loc, InvalidArgument(op, ": x is ", Name(x.dtype()), x.shape(),
                            "; expected a floating-point value"));
  return false;
}

Value Counting(int64_t count, int rank, Loc loc) {
  std::vector<int64_t> numbers(static_cast<size_t>(count)), extents(static_cast<size_t>(rank), 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  extents[0] = count;
  return constant(Tensor::FromVector<int64_t>(Shape(extents), numbers), loc);
}

bool CheckReduction(const char* op, const std::string& reduction, Loc loc, const char* extra) {
  for (const char* known : {"mean", "sum", "none"}) {
    if (reduction == known) return true;
  }
  if (extra != nullptr && reduction == extra) return true;
  Fail(loc, InvalidArgument(op, ": reduction \"", reduction, "\"; expected \"mean\", \"sum\"",
                            extra == nullptr ? "" : Concat(", \"", extra, "\""), " or \"none\""));
  return false;
}

bool CheckAlike(const char* op, const char* what, const Value& other, const Value& x, Loc loc) {
  if (!other.valid() || !x.valid() || other.shape() == x.shape()) return true;
  Fail(loc, InvalidArgument(op, ": ", what, " is ", Name(other.dtype()), other.shape(),
                            "; expected the shape of x, ", x.shape()));
  return false;
}

Value Reduced(const Value& each, const std::string& reduction, Loc loc) {
  if (reduction == "none") return each;
  return reduction == "sum" ? sum(each, {}, false, loc) : mean(each, {}, false, loc);
}

}  // namespace halftone::nn::internal
