#include <algorithm>
#include <numeric>

#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"

namespace halftone::nn {
namespace {

std::string Extents(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t extent : shape) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return "[" + text + "]";
}

}  // namespace

Value reshape(const Value& x, const std::vector<int64_t>& shape, Loc loc) {
  if (!x.valid()) return Op("reshape", {x}, {{"shape", shape}}, loc);
  std::vector<int64_t> exact = shape;
  const auto open = std::find(exact.begin(), exact.end(), -1);
  if (open != exact.end()) {
    *open = 1;
    // An invalid shape (a second -1, more elements than there may be) has no count.
    const absl::StatusOr<Shape> known_shape = Shape::Make(exact);
    const int64_t known = known_shape.ok() ? known_shape->num_elements() : 0;
    const int64_t count = x.shape().num_elements();
    if (known == 0 || count % known != 0) {
      return Fail(loc,
                  InvalidArgument("reshape: ", Name(x.dtype()), x.shape(), " to ", Extents(shape),
                                  "; expected at most one -1 and ", count, " elements"));
    }
    *open = count / known;
  }
  return Op("reshape", {x}, {{"shape", exact}}, loc);
}

Value flatten(const Value& x, int64_t first, int64_t last, Loc loc) {
  const std::optional<int64_t> from = internal::FindAxis("flatten", x, first, loc);
  const std::optional<int64_t> to = internal::FindAxis("flatten", x, last, loc);
  if (!from || !to) return {};
  if (*from > *to) {
    return Fail(loc, InvalidArgument("flatten: first axis ", first, " lies after last ", last,
                                     " of ", Name(x.dtype()), x.shape()));
  }
  std::vector<int64_t> shape;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t extent = x.shape()[static_cast<int>(axis)];
    if (axis > *from && axis <= *to) {
      shape.back() *= extent;
    } else {
      shape.push_back(extent);
    }
  }
  return Op("reshape", {x}, {{"shape", shape}}, loc);
}

Value unsqueeze(const Value& x, int64_t axis, Loc loc) {
  if (!x.valid()) return x;
  const absl::StatusOr<int> at = NormalizeAxis(axis, x.rank() + 1);
  if (!at.ok()) return Fail(loc, Annotate(at.status(), "unsqueeze: "));
  std::vector<int64_t> shape(x.shape().dims().begin(), x.shape().dims().end());
  shape.insert(shape.begin() + *at, 1);
  return Op("reshape", {x}, {{"shape", shape}}, loc);
}

Value squeeze(const Value& x, int64_t axis, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis("squeeze", x, axis, loc);
  if (!at) return {};
  if (x.shape()[static_cast<int>(*at)] != 1) {
    return Fail(loc, InvalidArgument("squeeze: axis ", axis, " of ", Name(x.dtype()), x.shape(),
                                     " has not extent 1"));
  }
  std::vector<int64_t> shape(x.shape().dims().begin(), x.shape().dims().end());
  shape.erase(shape.begin() + *at);
  return Op("reshape", {x}, {{"shape", shape}}, loc);
}

Value transpose(const Value& x, int64_t axis0, int64_t axis1, Loc loc) {
  const auto is_any = [](int64_t axis) { return axis == 0 || axis == -1; };
  if (x.valid() && x.rank() == 0 && is_any(axis0) && is_any(axis1)) return x;
  const std::optional<int64_t> a = internal::FindAxis("transpose", x, axis0, loc);
  const std::optional<int64_t> b = internal::FindAxis("transpose", x, axis1, loc);
  if (!a || !b) return {};
  std::vector<int64_t> perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(*a)], perm[static_cast<size_t>(*b)]);
  return Op("transpose", {x}, {{"perm", perm}}, loc);
}

Value slice(const Value& x, int64_t axis, int64_t start, int64_t limit, int64_t step, Loc loc) {
  const std::optional<int64_t> found = internal::FindAxis("slice", x, axis, loc);
  if (!found) return {};
  if (step < 1) {
    return Fail(loc, InvalidArgument("slice: step is ", step, "; expected at least 1"));
  }
  const auto at = static_cast<size_t>(*found), rank = static_cast<size_t>(x.rank());
  std::vector<int64_t> starts(rank, 0);
  std::vector<int64_t> limits(x.shape().dims().begin(), x.shape().dims().end());
  std::vector<int64_t> strides(rank, 1);
  const int64_t extent = limits[at];
  const auto clamp = [extent](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + extent : i, 0, extent);
  };
  starts[at] = clamp(start);
  limits[at] = std::max(clamp(start), clamp(limit));
  strides[at] = step;
  return Op("slice", {x}, {{"starts", starts}, {"limits", limits}, {"strides", strides}}, loc);
}

Value concat(const std::vector<Value>& values, int64_t axis, Loc loc) {
  if (values.empty()) {
    return Fail(loc, InvalidArgument("concat: no values; expected at least one"));
  }
  return internal::Promoted("concat", values,
                            {{"axis", internal::Axis("concat", values[0], axis, loc)}}, loc);
}

Value stack(const std::vector<Value>& values, int64_t axis, Loc loc) {
  if (values.empty()) {
    return Fail(loc, InvalidArgument("stack: no values; expected at least one"));
  }
  std::vector<Value> widened;
  for (const Value& value : values) {
    if (value.valid() && values[0].valid() && value.shape() != values[0].shape()) {
      return Fail(loc, InvalidArgument("stack: ", Name(value.dtype()), value.shape(),
                                       "; expected the shape of the first, ", values[0].shape()));
    }
    widened.push_back(unsqueeze(value, axis, loc));
  }
  return concat(widened, axis, loc);
}

Values split(const Value& x, const SplitSizes& split_size_or_sections, int64_t axis, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis("split", x, axis, loc);
  if (!at) return Values(std::vector<Value>(1, x));
  const int64_t extent = x.shape()[static_cast<int>(*at)], each = split_size_or_sections.each;
  std::vector<int64_t> sizes = split_size_or_sections.sizes;
  if (sizes.empty()) {
    if (each < 1) {
      Fail(loc, InvalidArgument("split: size is ", each, "; expected at least 1"));
      return Values(std::vector<Value>(1));
    }
    for (int64_t left = extent; left > 0; left -= each) sizes.push_back(std::min(each, left));
    if (sizes.empty()) sizes.push_back(0);
  }
  const bool negative = *std::min_element(sizes.begin(), sizes.end()) < 0;
  if (negative || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != extent) {
    Fail(loc, InvalidArgument("split: sizes ", Extents(sizes), "; expected some that add up to ",
                              extent, ", axis ", axis, " of ", Name(x.dtype()), x.shape()));
    return Values(std::vector<Value>(1));
  }
  Values parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(slice(x, *at, start, start + size, 1, loc));
    start += size;
  }
  return parts;
}

Values chunk(const Value& x, int64_t chunks, int64_t axis, Loc loc) {
  const std::optional<int64_t> at = internal::FindAxis("chunk", x, axis, loc);
  if (!at) return Values(std::vector<Value>(1, x));
  if (chunks < 1) {
    Fail(loc, InvalidArgument("chunk: chunks is ", chunks, "; expected at least 1"));
    return Values(std::vector<Value>(1));
  }
  const int64_t extent = x.shape()[static_cast<int>(*at)];
  return split(x, std::max<int64_t>(1, extent / chunks + (extent % chunks != 0 ? 1 : 0)), axis,
               loc);
}

Value permute(const Value& x, const std::vector<int64_t>& perm, Loc loc) {
  return Op("transpose", {x}, {{"perm", internal::Axes("permute", x, perm, loc)}}, loc);
}

Value flip(const Value& x, const AxisList& axes, Loc loc) {
  return Op("flip", {x}, {{"axes", internal::Axes("flip", x, axes.axes, loc)}}, loc);
}

namespace {

// The last `front` and the first `back` elements of each axis once more, around it.
Value PadCircular(Value x, const std::vector<int64_t>& front, const std::vector<int64_t>& back,
                  Loc loc) {
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t extent = x.shape()[axis], f = front[static_cast<size_t>(axis)],
                  b = back[static_cast<size_t>(axis)];
    if (f > extent || b > extent) {
      return Fail(loc, InvalidArgument("pad: axis ", axis, " of ", Name(x.dtype()), x.shape(),
                                       " padded by ", f, " and ", b,
                                       "; expected at most its extent in mode circular"));
    }
    std::vector<Value> parts;
    if (f > 0) parts.push_back(slice(x, axis, extent - f, extent, 1, loc));
    parts.push_back(x);
    if (b > 0) parts.push_back(slice(x, axis, 0, b, 1, loc));
    if (parts.size() > 1) x = concat(parts, axis, loc);
    if (!x.valid()) return {};
  }
  return x;
}

}  // namespace

Value pad(const Value& x, const std::vector<int64_t>& pad, const std::string& mode, double value,
          Loc loc) {
  if (!x.valid()) return {};
  const auto rank = static_cast<size_t>(x.rank());
  if (pad.size() % 2 != 0 || pad.size() > 2 * rank) {
    return Fail(loc, InvalidArgument("pad: ", pad.size(), " numbers for ", Name(x.dtype()),
                                     x.shape(), "; expected two an axis, at most ", 2 * rank));
  }
  std::vector<int64_t> before(rank, 0), after(rank, 0), starts(rank, 0);
  std::vector<int64_t> limits(x.shape().dims().begin(), x.shape().dims().end());
  bool crops = false;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t axis = rank - 1 - i;
    const int64_t front = pad[2 * i], back = pad[2 * i + 1], extent = limits[axis];
    const int64_t taken_front = std::max<int64_t>(0, -std::max(front, -kMaxElements));
    const int64_t taken_back = std::max<int64_t>(0, -std::max(back, -kMaxElements));
    if (taken_front + taken_back > (mode == "constant" ? extent : 0)) {
      return Fail(loc, InvalidArgument("pad: axis ", axis, " of ", Name(x.dtype()), x.shape(),
                                       " padded by ", front, " and ", back, "; expected ",
                                       mode == "constant" ? "to take away at most its extent"
                                                          : "no negative number in this mode"));
    }
    before[axis] = std::max<int64_t>(0, front);
    after[axis] = std::max<int64_t>(0, back);
    starts[axis] = taken_front;
    limits[axis] = extent - taken_back;
    crops = crops || taken_front + taken_back > 0;
  }
  if (mode == "circular") return PadCircular(x, before, after, loc);
  if (mode != "constant" && mode != "reflect" && mode != "replicate") {
    return Fail(loc, InvalidArgument("pad: mode is \"", mode,
                                     "\"; expected constant, reflect, replicate or circular"));
  }
  const Value kept =
      crops
          ? Op("slice", {x},
               {{"starts", starts}, {"limits", limits}, {"strides", std::vector<int64_t>(rank, 1)}},
               loc)
          : x;
  return Op("pad", {kept}, {{"before", before}, {"after", after}, {"mode", mode}, {"value", value}},
            loc);
}

Value broadcast_to(const Value& x, const std::vector<int64_t>& shape, Loc loc) {
  return Op("broadcast_to", {x}, {{"shape", shape}}, loc);
}

}  // namespace halftone::nn
