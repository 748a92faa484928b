#include "halftone/graph/nn/functional.h"

namespace halftone::nn {
namespace {

Value Reduce(const char* op, const Value& x, const AxisList& over, bool keepdim, Loc loc) {
  return Op(op, {x}, {{"axes", internal::Axes(op, x, over.axes, loc)}, {"keepdim", keepdim}}, loc);
}

}  // namespace

Value sum(const Value& x, const AxisList& axes, bool keepdim, Loc loc) {
  return Reduce("sum", x, axes, keepdim, loc);
}

Value mean(const Value& x, const AxisList& axes, bool keepdim, Loc loc) {
  return Reduce("mean", x, axes, keepdim, loc);
}

Value max(const Value& x, const AxisList& axes, bool keepdim, Loc loc) {
  return Reduce("max", x, axes, keepdim, loc);
}

Value argmax(const Value& x, int64_t axis, bool keepdim, Loc loc) {
  return Op("argmax", {x}, {{"axis", internal::Axis("argmax", x, axis, loc)}, {"keepdim", keepdim}},
            loc);
}

}  // namespace halftone::nn
