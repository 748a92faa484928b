// tile, repeat, repeat_interleave; pixel_shuffle and its inverse: reshape, broadcast_to, permute.
#include <algorithm>

#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {
namespace {

using Ints = std::vector<int64_t>;

Ints ExtentList(const Value& x) { return {x.shape().dims().begin(), x.shape().dims().end()}; }

// Of an extent; neither negative, nor of a product beyond all shapes.
bool CheckRepeats(const char* op, int64_t repeats, int64_t extent, Loc loc) {
  const int64_t most = kMaxElements / std::max<int64_t>(1, extent);
  if (repeats >= 0 && repeats <= most) return true;
  Fail(loc, InvalidArgument(op, ": ", repeats, " repeats of an extent of ", extent,
                            "; expected 0..", most));
  return false;
}

// x repeated as a whole, a number for each axis.
Value Repeated(const char* op, Value x, Ints repeats, Loc loc) {
  // An axis of [n] is [1,n], broadcast to [r,n]; as many at a time as a shape has axes for.
  constexpr int kAtOnce = (kMaxRank - 1) / 2;
  Ints extents = ExtentList(x);
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (!CheckRepeats(op, repeats[i], extents[i], loc)) return {};
  }
  const auto is_repeated = [](int64_t r) { return r != 1; };
  while (std::any_of(repeats.begin(), repeats.end(), is_repeated)) {
    Ints split, wide;
    int taken = 0;
    for (size_t i = 0; i < repeats.size(); ++i) {
      if (is_repeated(repeats[i]) && taken < kAtOnce) {
        split.insert(split.end(), {1, extents[i]});
        wide.insert(wide.end(), {repeats[i], extents[i]});
        extents[i] *= repeats[i];
        repeats[i] = 1;
        ++taken;
      } else if (split.empty()) {
        split.push_back(extents[i]);
        wide.push_back(extents[i]);
      } else {
        split.back() *= extents[i];
        wide.back() *= extents[i];
      }
    }
    x = broadcast_to(reshape(x, split, loc), wide, loc);
    if (!x.valid()) return {};
  }
  return reshape(x, extents, loc);
}

// x with axes of extent 1 in front, `rank` in all.
Value OfRank(const Value& x, size_t rank, Loc loc) {
  Ints extents = ExtentList(x);
  if (extents.size() >= rank) return x;
  extents.insert(extents.begin(), rank - extents.size(), 1);
  return reshape(x, extents, loc);
}

// A factor by which height and width change, the channels by its square.
bool CheckFactor(const char* op, const char* name, const Value& x, int64_t factor, Loc loc) {
  constexpr int64_t kMost = 1 << 16;
  if (x.rank() < 3) {
    Fail(loc, InvalidArgument(op, ": x is ", Name(x.dtype()), x.shape(),
                              "; expected [..,C,H,W], rank 3 or more"));
    return false;
  }
  if (factor >= 1 && factor <= kMost) return true;
  Fail(loc, InvalidArgument(op, ": ", name, " is ", factor, "; expected 1..", kMost));
  return false;
}

}  // namespace

Value tile(const Value& x, const std::vector<int64_t>& dims, Loc loc) {
  if (!x.valid()) return {};
  const Value wide = OfRank(x, dims.size(), loc);
  if (!wide.valid()) return {};
  Ints repeats = dims;
  repeats.insert(repeats.begin(), static_cast<size_t>(wide.rank()) - dims.size(), 1);
  return Repeated("tile", wide, std::move(repeats), loc);
}

Value repeat(const Value& x, const std::vector<int64_t>& repeats, Loc loc) {
  if (!x.valid()) return {};
  if (repeats.size() < static_cast<size_t>(x.rank())) {
    return Fail(loc, InvalidArgument("repeat: ", repeats.size(), " numbers for ", Name(x.dtype()),
                                     x.shape(), "; expected at least ", x.rank()));
  }
  const Value wide = OfRank(x, repeats.size(), loc);
  return wide.valid() ? Repeated("repeat", wide, repeats, loc) : wide;
}

Value repeat_interleave(const Value& x, int64_t repeats, std::optional<int64_t> axis, Loc loc) {
  if (!x.valid()) return {};
  if (!axis) return repeat_interleave(reshape(x, {-1}, loc), repeats, 0, loc);
  const std::optional<int64_t> at = internal::FindAxis("repeat_interleave", x, *axis, loc);
  if (!at) return {};
  Ints extents = ExtentList(x);
  const auto place = static_cast<std::ptrdiff_t>(*at);
  const int64_t extent = extents[static_cast<size_t>(place)];
  if (!CheckRepeats("repeat_interleave", repeats, extent, loc)) return {};
  // [outer, n, 1, inner]
  int64_t outer = 1, inner = 1;
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(extents.size()); ++i) {
    if (i != place) (i < place ? outer : inner) *= extents[static_cast<size_t>(i)];
  }
  const Value each = reshape(x, {outer, extent, 1, inner}, loc);
  extents[static_cast<size_t>(place)] = extent * repeats;
  return reshape(broadcast_to(each, {outer, extent, repeats, inner}, loc), extents, loc);
}

Value pixel_shuffle(const Value& x, int64_t upscale_factor, Loc loc) {
  const int64_t r = upscale_factor;
  if (!x.valid() || !CheckFactor("pixel_shuffle", "upscale_factor", x, r, loc)) return {};
  Ints extents = ExtentList(x);
  const size_t rank = extents.size();
  int64_t &c = extents[rank - 3], &h = extents[rank - 2], &w = extents[rank - 1];
  if (c % (r * r) != 0) {
    return Fail(loc, InvalidArgument("pixel_shuffle: x is ", Name(x.dtype()), x.shape(),
                                     "; expected channels (axis -3) divisible by ", r * r,
                                     ", upscale_factor squared"));
  }
  c /= r * r;
  int64_t planes = c;
  for (size_t i = 0; i + 3 < rank; ++i) planes *= extents[i];
  const Value split = reshape(x, {planes, r, r, h, w}, loc);
  h *= r;
  w *= r;
  return reshape(permute(split, {0, 3, 1, 4, 2}, loc), extents, loc);
}

Value pixel_unshuffle(const Value& x, int64_t downscale_factor, Loc loc) {
  const int64_t r = downscale_factor;
  if (!x.valid() || !CheckFactor("pixel_unshuffle", "downscale_factor", x, r, loc)) return {};
  Ints extents = ExtentList(x);
  const size_t rank = extents.size();
  int64_t &c = extents[rank - 3], &h = extents[rank - 2], &w = extents[rank - 1];
  if (h % r != 0 || w % r != 0) {
    return Fail(loc, InvalidArgument("pixel_unshuffle: x is ", Name(x.dtype()), x.shape(),
                                     "; expected height and width divisible by ", r));
  }
  if (!CheckRepeats("pixel_unshuffle", r * r, c, loc)) return {};
  h /= r;
  w /= r;
  int64_t planes = c;
  for (size_t i = 0; i + 3 < rank; ++i) planes *= extents[i];
  const Value split = reshape(x, {planes, h, r, w, r}, loc);
  c *= r * r;
  return reshape(permute(split, {0, 2, 4, 1, 3}, loc), extents, loc);
}

}  // namespace halftone::nn
