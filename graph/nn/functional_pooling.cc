#include <array>
#include <numeric>
#include <tuple>

#include "halftone/graph/nn/functional.h"

namespace halftone::nn {
namespace {

using Ints = std::vector<int64_t>;

Ints StrideOr(Size2d stride, Size2d kernel) {
  return stride.h == 0 && stride.w == 0 ? kernel.ints() : stride.ints();
}

// pool(x) of x [N,C,L] as rows of height 1, which lie in memory as they are.
template <typename Pool>
Value OverRows(const char* op, const Value& x, const Pool& pool, Loc loc) {
  if (!x.valid()) return {};
  if (x.rank() != 3) {
    return Fail(loc,
                InvalidArgument(op, ": x is ", Name(x.dtype()), x.shape(), "; expected rank 3"));
  }
  return squeeze(pool(unsqueeze(x, 2, loc)), 2, loc);
}

// How the windows of one axis of an adaptive pooling repeat: `kinds` of them, one after another,
// each again after `stride` elements, `repeats` times in all.
struct EvenWindows {
  EvenWindows(int64_t extent, int64_t size)
      : repeats(std::gcd(extent, size)), kinds(size / repeats), stride(extent / repeats) {}
  int64_t begin(int64_t kind) const { return kind * stride / kinds; }
  int64_t end(int64_t kind) const { return ((kind + 1) * stride + kinds - 1) / kinds; }

  int64_t repeats, kinds, stride;
};

constexpr int64_t kMostKinds = 1024;  // each is a node or three of the graph

// The pooling that an adaptive one is made of.
struct Pooling {
  const char* op;        // its name, "avg_pool2d"
  const char* adaptive;  // the name for messages

  Value operator()(const Value& x, Ints kernel, Ints stride, Loc loc) const {
    return Op(op, {x}, {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}}, loc);
  }
};

// Over axis 2 (i = 0) or 3 (i = 1) the windows of `along`; over the other one, too, where all of its
// windows are of one kind and not yet pooled, which is what `other` says.
Value AlongAxis(const Pooling& pool, const Value& x, size_t i, const EvenWindows& along,
                const EvenWindows* other, Loc loc) {
  const auto axis = static_cast<int64_t>(i) + 2;
  std::vector<Value> parts;
  for (int64_t kind = 0; kind < along.kinds; ++kind) {
    const int64_t begin = along.begin(kind), length = along.end(kind) - begin;
    Ints kernel(2, other == nullptr ? 1 : other->stride), stride = kernel;
    kernel[i] = length;
    stride[i] = along.stride;
    const int64_t limit = begin + (along.repeats - 1) * along.stride + length;
    const bool whole = begin == 0 && limit == x.shape()[static_cast<int>(axis)];
    parts.push_back(pool(whole ? x : slice(x, axis, begin, limit, 1, loc), kernel, stride, loc));
  }
  if (parts.size() == 1) return parts[0];
  // One window of each kind in turn.
  const Value turns = stack(parts, axis + 1, loc);
  Ints shape(parts[0].shape().dims().begin(), parts[0].shape().dims().end());
  shape[i + 2] = along.repeats * along.kinds;
  return reshape(turns, shape, loc);
}

Value Adaptive(const Pooling& pool, const Value& x, Size2d size, Loc loc) {
  if (!x.valid()) return {};
  const std::string got = Concat(pool.adaptive, ": x is ", Name(x.dtype()), x.shape());
  if (x.rank() != 4) return Fail(loc, InvalidArgument(got, "; expected rank 4"));
  const int64_t h = x.shape()[2], w = x.shape()[3];
  if (h < 1 || w < 1) {
    return Fail(loc, InvalidArgument(got, "; expected at least one element along axes 2 and 3"));
  }
  for (const int64_t extent : {size.h, size.w}) {
    if (extent >= 1 && extent <= kMaxElements) continue;
    return Fail(loc, InvalidArgument(pool.adaptive, ": output_size is ", extent,
                                     "; expected at least 1 and at most ", kMaxElements));
  }
  const EvenWindows rows(h, size.h), columns(w, size.w);
  for (const auto& [windows, extent, n] : {std::tuple(rows, size.h, h), {columns, size.w, w}}) {
    if (windows.kinds <= kMostKinds) continue;
    return Fail(
        loc, InvalidArgument(pool.adaptive, ": output_size is ", extent, " over ", n, " elements, ",
                             windows.kinds, " kinds of windows; expected at most ", kMostKinds));
  }
  if (columns.kinds == 1) return AlongAxis(pool, x, 0, rows, &columns, loc);
  if (rows.kinds == 1) return AlongAxis(pool, x, 1, columns, &rows, loc);
  // Columns first: of equal maxima that of the first row has the gradient, as in one window.
  return AlongAxis(pool, AlongAxis(pool, x, 1, columns, nullptr, loc), 0, rows, nullptr, loc);
}

}  // namespace

Value max_pool1d(const Value& x, int64_t kernel, const MaxPool1dOptions& options, Loc loc) {
  const auto pool = [&](const Value& rows) {
    return max_pool2d(rows, {1, kernel},
                      {.stride = {1, options.stride == 0 ? kernel : options.stride},
                       .padding = {0, options.padding},
                       .dilation = {1, options.dilation},
                       .ceil_mode = options.ceil_mode},
                      loc);
  };
  return OverRows("max_pool1d", x, pool, loc);
}

Value avg_pool1d(const Value& x, int64_t kernel, const AvgPool1dOptions& options, Loc loc) {
  const auto pool = [&](const Value& rows) {
    return avg_pool2d(rows, {1, kernel},
                      {.stride = {1, options.stride == 0 ? kernel : options.stride},
                       .padding = {0, options.padding},
                       .ceil_mode = options.ceil_mode,
                       .count_include_pad = options.count_include_pad},
                      loc);
  };
  return OverRows("avg_pool1d", x, pool, loc);
}

Value max_pool2d(const Value& x, Size2d kernel, const MaxPool2dOptions& options, Loc loc) {
  return Op("max_pool2d", {x},
            {{"kernel", kernel.ints()},
             {"stride", StrideOr(options.stride, kernel)},
             {"padding", options.padding.ints()},
             {"dilation", options.dilation.ints()},
             {"ceil_mode", options.ceil_mode}},
            loc);
}

Value avg_pool2d(const Value& x, Size2d kernel, const AvgPool2dOptions& options, Loc loc) {
  return Op("avg_pool2d", {x},
            {{"kernel", kernel.ints()},
             {"stride", StrideOr(options.stride, kernel)},
             {"padding", options.padding.ints()},
             {"ceil_mode", options.ceil_mode},
             {"count_include_pad", options.count_include_pad}},
            loc);
}

Value adaptive_avg_pool1d(const Value& x, int64_t output_size, Loc loc) {
  constexpr char kName[] = "adaptive_avg_pool1d";
  const auto pool = [&](const Value& rows) {
    return Adaptive({"avg_pool2d", kName}, rows, {1, output_size}, loc);
  };
  return OverRows(kName, x, pool, loc);
}

Value adaptive_avg_pool2d(const Value& x, Size2d output_size, Loc loc) {
  return Adaptive({"avg_pool2d", "adaptive_avg_pool2d"}, x, output_size, loc);
}

Value adaptive_max_pool1d(const Value& x, int64_t output_size, Loc loc) {
  constexpr char kName[] = "adaptive_max_pool1d";
  const auto pool = [&](const Value& rows) {
    return Adaptive({"max_pool2d", kName}, rows, {1, output_size}, loc);
  };
  return OverRows(kName, x, pool, loc);
}

Value adaptive_max_pool2d(const Value& x, Size2d output_size, Loc loc) {
  return Adaptive({"max_pool2d", "adaptive_max_pool2d"}, x, output_size, loc);
}

}  // namespace halftone::nn
