// conv2d and its gradients: each entry gives a case of conv2d with and without bias, and one of
// each gradient.
#include "halftone/graph/ops/support/window.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

struct Conv {
  const char* name;
  Shape x, w;
  Ints stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
  bool gradient = true;
};

std::vector<Conv> Convs() {
  return {
      {"one_by_one", {2, 3, 4, 5}, {4, 3, 1, 1}},
      {"3x3", {2, 3, 6, 5}, {4, 3, 3, 3}},
      {"same", {1, 2, 5, 5}, {3, 2, 3, 3}, {1, 1}, {1, 1}},
      {"whole_input", {2, 3, 4, 3}, {5, 3, 4, 3}},
      {"stride2_pad1", {2, 2, 7, 6}, {3, 2, 3, 3}, {2, 2}, {1, 1}},
      {"uneven", {1, 2, 8, 7}, {2, 2, 3, 2}, {2, 3}, {2, 1}},
      {"stride_leaves_rest", {1, 1, 8, 8}, {1, 1, 3, 3}, {3, 3}},
      {"dilated", {1, 2, 9, 8}, {3, 2, 3, 3}, {1, 1}, {2, 2}, {2, 2}},
      {"dilated_stride", {1, 2, 9, 9}, {2, 2, 2, 3}, {2, 1}, {1, 2}, {3, 2}},
      {"groups2", {2, 4, 5, 5}, {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
      {"groups2_stride2_dilated", {1, 4, 9, 8}, {4, 2, 3, 2}, {2, 2}, {1, 0}, {2, 1}, 2},
      {"depthwise", {2, 5, 6, 6}, {5, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 5},
      {"depthwise_twice", {1, 3, 5, 5}, {6, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 3},
      {"one_channel", {3, 1, 7, 7}, {2, 1, 5, 5}, {1, 1}, {2, 2}},
      {"no_images", {0, 2, 5, 5}, {3, 2, 3, 3}},
      // What vectors of channels and tiles of positions leave over.
      {"stem", {1, 3, 13, 15}, {10, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, /*gradient=*/false},
      {"5x5", {1, 3, 11, 9}, {31, 3, 5, 5}, {1, 1}, {2, 2}, {1, 1}, 1, /*gradient=*/false},
      {"odd_channels", {1, 31, 5, 7}, {33, 31, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false},
      {"wide_one_by_one", {1, 64, 5, 3}, {64, 64, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, false},
      {"blocked", {2, 32, 12, 12}, {48, 32, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, /*gradient=*/false},
  };
}

OpCase WithLayout(OpCase c, bool gradient) {
  c.channels_last = true;
  c.gradient = gradient;
  return c;
}

void AddConv(const Conv& t, std::vector<OpCase>& cases) {
  const ir::Attributes attrs = {
      {"stride", t.stride}, {"padding", t.padding}, {"dilation", t.dilation}, {"groups", t.groups}};
  const auto with_shape = [&](const Shape& shape) {
    ir::Attributes result = attrs;
    result.Set("shape", Ints(shape.dims().begin(), shape.dims().end()));
    return result;
  };
  const Shape y = ops::ConvGeometryOf(attrs, t.x, t.w).y_shape();
  const auto add = [&](const char* op, const std::string& suffix, std::vector<OpInput> inputs,
                       const ir::Attributes& a) {
    cases.push_back(WithLayout(Case(op, t.name + suffix, std::move(inputs), a), t.gradient));
  };
  add("conv2d", "", {Reals(t.x), Reals(t.w)}, attrs);
  add("conv2d", "_bias", {Reals(t.x), Reals(t.w), Reals({t.w[0]})}, attrs);
  add("conv2d", "_f32_bias", {Reals(t.x), Reals(t.w), Pinned(Reals({t.w[0]}))}, attrs);
  add("conv2d_grad_input", "", {Reals(y), Reals(t.w)}, with_shape(t.x));
  add("conv2d_grad_weight", "", {Reals(t.x), Reals(y)}, with_shape(t.w));
  ir::Attributes wide = with_shape(t.w);
  wide.Set("out", std::string("f32"));
  add("conv2d_grad_weight", "_out_f32", {Reals(t.x), Reals(y)}, wide);
}

}  // namespace

void AddCases_convolution(std::vector<OpCase>& cases) {
  for (const Conv& t : Convs()) AddConv(t, cases);
  for (const char* out : {"", "f32"}) {
    const std::string suffix = *out == 0 ? "" : "_out_f32";
    const ir::Attributes attrs = {{"out", std::string(out)}};
    cases.push_back(
        WithLayout(Case("conv2d_grad_bias", "odd" + suffix, {Reals({3, 5, 4, 7})}, attrs), true));
    cases.push_back(
        WithLayout(Case("conv2d_grad_bias", "one" + suffix, {Reals({1, 1, 1, 1})}, attrs), true));
    cases.push_back(WithLayout(
        Case("conv2d_grad_bias", "long" + suffix, {Reals({4, 3, 40, 40})}, attrs), false));
  }
}

}  // namespace halftone::testing
