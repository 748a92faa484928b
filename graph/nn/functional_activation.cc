#include <algorithm>
#include <limits>

#include "halftone/graph/nn/functional.h"

namespace halftone::nn {

Value gelu(const Value& x, const std::string& approximate, Loc loc) {
  return Op("gelu", {x}, {{"approximate", approximate}}, loc);
}

Value clamp(const Value& x, std::optional<double> min, std::optional<double> max, Loc loc) {
  if (!min && !max) {
    return Fail(loc, InvalidArgument("clamp: neither min nor max; expected at least one"));
  }
  if (!IsFloat(x.dtype())) {
    Value y = x;
    if (min) y = maximum({y, loc}, {*min, loc});
    return max ? minimum({y, loc}, {*max, loc}) : y;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double high = max.value_or(kInfinity), low = min.value_or(-kInfinity);
  return hardtanh(x, std::min(low, high), high, loc);
}

Value prelu(const Value& x, const Value& weight, Loc loc) {
  const int64_t channels = x.rank() > 1 ? x.dim(1) : 1, count = weight.shape().num_elements();
  if (x.valid() && weight.valid() && (weight.rank() > 1 || (count != 1 && count != channels))) {
    return Fail(loc, InvalidArgument("prelu: weight is ", Name(weight.dtype()), weight.shape(),
                                     "; expected one value, or ", channels, " for the channels of ",
                                     Name(x.dtype()), x.shape()));
  }
  std::vector<int64_t> extents(static_cast<size_t>(x.rank() > 1 ? x.rank() - 1 : 1), 1);
  extents[0] = count;
  const Value factor = count == 1 ? reshape(weight, {}, loc) : reshape(weight, extents, loc);
  const auto scaled = [&](const Value& v) { return mul({factor, loc}, {v, loc}); };
  return apply_where(less_equal({x, loc}, {0.0, loc}), x, scaled, {x, loc}, 0.0, loc);
}

Value softmax(const Value& x, int64_t axis, Loc loc) {
  return Op("softmax", {x}, {{"axis", internal::Axis("softmax", x, axis, loc)}}, loc);
}

Value log_softmax(const Value& x, int64_t axis, Loc loc) {
  return Op("log_softmax", {x}, {{"axis", internal::Axis("log_softmax", x, axis, loc)}}, loc);
}

}  // namespace halftone::nn
