// What functions and modules take besides values: sizes, lists of axes, and the option structs that
// functions.def and modules.def describe (Conv2dOptions, LinearOptions, ...). Members stand in the
// order of the rows, which designated initialisers follow: {.stride = 2, .padding = 1}.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/doc.h"
#include "halftone/graph/ops/support/elementwise_numbers.h"

namespace halftone::nn {

// Height and width; one number stands for both.
struct Size2d {
  Size2d(int64_t both) : h(both), w(both) {}  // NOLINT: converts by design
  Size2d(int64_t height, int64_t width) : h(height), w(width) {}
  std::vector<int64_t> ints() const { return {h, w}; }
  int64_t h;
  int64_t w;
};

// Depth, height and width; one number stands for all.
struct Size3d {
  Size3d(int64_t all) : d(all), h(all), w(all) {}  // NOLINT: converts by design
  Size3d(int64_t depth, int64_t height, int64_t width) : d(depth), h(height), w(width) {}
  std::vector<int64_t> ints() const { return {d, h, w}; }
  int64_t d;
  int64_t h;
  int64_t w;
};

// Factors of height and width; one number stands for both.
struct Scale2d {
  Scale2d(double both) : h(both), w(both) {}  // NOLINT: converts by design
  Scale2d(double height, double width) : h(height), w(width) {}
  double h;
  double w;
};

// The axes of a reduction: sum(x), sum(x, 0), sum(x, {0, -1}).
struct AxisList {
  AxisList() = default;                                                // all
  AxisList(int64_t axis) : axes{axis} {}                               // NOLINT: converts by design
  AxisList(std::initializer_list<int64_t> several) : axes(several) {}  // NOLINT
  AxisList(std::vector<int64_t> several) : axes(std::move(several)) {}  // NOLINT
  std::vector<int64_t> axes;
};

// The parts that an axis is split into: split(x, 2), split(x, {1, 3}).
struct SplitSizes {
  SplitSizes(int64_t all) : each(all) {}  // NOLINT: converts by design
  SplitSizes(std::initializer_list<int64_t> several) : sizes(several) {}   // NOLINT
  SplitSizes(std::vector<int64_t> several) : sizes(std::move(several)) {}  // NOLINT
  int64_t each = 0;  // of all but the last; unless there are `sizes`
  std::vector<int64_t> sizes;
};

// clang-format off
#define HT_OPTIONS(Name) struct Name {
#define HT_OPTION(type, name, value, doc) HT_DOC(doc) type name = value;
#define HT_END_OPTIONS(Name) };
#include "halftone/graph/nn/functions.def"

#define HT_OPTIONS(Name) struct Name {
#define HT_OPTION(type, name, value, doc) HT_DOC(doc) type name = value;
#define HT_END_OPTIONS(Name) };
#include "halftone/graph/nn/modules.def"
// clang-format on

// Of the layers of elementwise.def: LeakyReLUOptions has a double negative_slope.
#define HT_NUMBER_MEMBER(name, value) double name = value;
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...) \
  struct Layer##Options {                            \
    HT_EACH_NUMBER(HT_NUMBER_MEMBER, Numbers)        \
  };
#include "halftone/graph/ops/support/elementwise.def"
#undef HT_NUMBER_MEMBER

}  // namespace halftone::nn
