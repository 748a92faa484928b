#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {

Value gather(const Value& x, const Value& indices, int64_t axis, Loc loc) {
  return Op("gather", {x, indices}, {{"axis", internal::Axis("gather", x, axis, loc)}}, loc);
}

Value embedding(const Value& indices, const Value& table, int64_t padding_idx, bool sparse,
                Loc loc) {
  return Op("embedding", {table, indices}, {{"padding_idx", padding_idx}, {"sparse", sparse}}, loc);
}

Value one_hot(const Value& x, int64_t num_classes, Loc loc) {
  if (num_classes < 1) {
    return Fail(loc,
                InvalidArgument("one_hot: num_classes is ", num_classes, "; expected at least 1"));
  }
  if (x.valid() && !ir::kIndices.Contains(x.dtype())) {
    return Fail(loc, InvalidArgument("one_hot: x is ", Name(x.dtype()), x.shape(),
                                     "; expected i64 or i32"));
  }
  const internal::At at(loc);
  const Value classes = internal::Counting(num_classes, 1, loc);
  return internal::CastTo(equal(at(unsqueeze(x, -1, loc)), at(classes)), DType::kI64, loc);
}

}  // namespace halftone::nn
