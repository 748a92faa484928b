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

Value cumsum(const Value& x, int64_t axis, Loc loc) {
  return Op("cumsum", {x}, {{"axis", internal::Axis("cumsum", x, axis, loc)}}, loc);
}

Value prod(const Value& x, std::optional<int64_t> axis, bool keepdim, Loc loc) {
  if (axis) {
    return Op("prod", {x}, {{"axis", internal::Axis("prod", x, *axis, loc)}, {"keepdim", keepdim}},
              loc);
  }
  if (!x.valid()) return {};
  const Value all = Op("prod", {reshape(x, {-1}, loc)}, {{"axis", int64_t{0}}}, loc);
  return keepdim ? reshape(all, std::vector<int64_t>(static_cast<size_t>(x.rank()), 1), loc) : all;
}

Value argmax(const Value& x, int64_t axis, bool keepdim, Loc loc) {
  return Op("argmax", {x}, {{"axis", internal::Axis("argmax", x, axis, loc)}, {"keepdim", keepdim}},
            loc);
}

}  // namespace halftone::nn
