#include "halftone/graph/nn/functional.h"

namespace halftone::nn {

Value gelu(const Value& x, const std::string& approximate, Loc loc) {
  return Op("gelu", {x}, {{"approximate", approximate}}, loc);
}

Value softmax(const Value& x, int64_t axis, Loc loc) {
  return Op("softmax", {x}, {{"axis", internal::Axis("softmax", x, axis, loc)}}, loc);
}

Value log_softmax(const Value& x, int64_t axis, Loc loc) {
  return Op("log_softmax", {x}, {{"axis", internal::Axis("log_softmax", x, axis, loc)}}, loc);
}

}  // namespace halftone::nn
