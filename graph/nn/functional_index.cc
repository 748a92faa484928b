#include "halftone/graph/nn/functional.h"

namespace halftone::nn {

Value gather(const Value& x, const Value& indices, int64_t axis, Loc loc) {
  return Op("gather", {x, indices}, {{"axis", internal::Axis("gather", x, axis, loc)}}, loc);
}

Value embedding(const Value& indices, const Value& table, int64_t padding_idx, Loc loc) {
  return Op("embedding", {table, indices}, {{"padding_idx", padding_idx}}, loc);
}

}  // namespace halftone::nn
