// conv2d, conv3d and their gradients: each entry gives a case of the convolution with and without
// bias, and one of each gradient.
#include "halftone/graph/ops/support/window.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

struct Conv {
  const char* name;
  Shape x, w;
  Ints stride = {}, padding = {}, dilation = {};  // of every axis; none: 1, 0 and 1
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
      {"first_of_blocks",
       {2, 3, 9, 8},
       {32, 3, 3, 3},
       {2, 2},
       {1, 1},
       {1, 1},
       1,
       /*gradient=*/false},
      {"last_of_blocks",
       {2, 32, 5, 6},
       {20, 32, 3, 3},
       {1, 1},
       {1, 1},
       {1, 1},
       1,
       /*gradient=*/false},
      {"image_of_blocks",
       {2, 32, 5, 6},
       {3, 32, 3, 3},
       {1, 1},
       {1, 1},
       {1, 1},
       1,
       /*gradient=*/false},
      {"into_blocks", {1, 20, 5, 6}, {16, 20, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, /*gradient=*/false},
      {"one_element", {1, 1, 1, 1}, {1, 1, 1, 1}},
      {"stride_over_input", {1, 2, 3, 4}, {2, 2, 2, 1}, {7, 9}, {1, 0}},
      {"column_in_padding", {1, 2, 4, 3}, {2, 2, 2, 2}, {1, 5}, {1, 1}},
      {"columns_in_padding", {1, 2, 4, 1}, {3, 2, 2, 3}, {1, 1}, {1, 1}},
      {"strided_columns_in_padding", {2, 2, 4, 2}, {3, 2, 2, 5}, {1, 2}, {1, 2}},
      {"row_in_padding", {1, 2, 3, 4}, {2, 2, 2, 2}, {5, 1}, {1, 1}},
      {"no_images_3d", {0, 2, 3, 5, 4}, {3, 2, 2, 3, 2}},
      {"one_element_3d", {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},
      {"3x3x3", {1, 2, 4, 5, 3}, {3, 2, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
      {"one_by_one_3d", {2, 3, 2, 3, 2}, {4, 3, 1, 1, 1}},
      {"uneven_3d", {2, 2, 6, 5, 7}, {2, 2, 3, 1, 2}, {2, 3, 1}, {2, 0, 1}, {1, 1, 2}},
      {"stride_over_input_3d", {1, 1, 2, 4, 3}, {2, 1, 1, 2, 2}, {8, 1, 5}, {0, 1, 1}},
      {"groups2_3d", {1, 4, 3, 4, 3}, {6, 2, 2, 2, 2}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}, 2},
      {"depthwise_3d", {1, 3, 3, 4, 4}, {3, 1, 2, 3, 3}, {}, {0, 1, 1}, {}, 3},
      {"blocked_3d", {1, 16, 6, 8, 8}, {32, 16, 3, 3, 3}, {}, {1, 1, 1}, {}, 1, /*gradient=*/false},
      {"odd_channels_3d", {2, 5, 5, 6, 7}, {17, 5, 3, 2, 3}, {}, {1, 0, 1}, {}, 1, false},
  };
}

OpCase WithLayout(OpCase c, bool gradient) {
  c.channels_last = c.inputs[0].type.shape.rank() == 4;
  c.gradient = gradient;
  return c;
}

void AddConv(const Conv& t, std::vector<OpCase>& cases) {
  const int dims = t.x.rank() - 2;
  const auto of_axes = [&](const Ints& values, int64_t otherwise) {
    return values.empty() ? Ints(dims, otherwise) : values;
  };
  const ir::Attributes attrs = {{"stride", of_axes(t.stride, 1)},
                                {"padding", of_axes(t.padding, 0)},
                                {"dilation", of_axes(t.dilation, 1)},
                                {"groups", t.groups}};
  const auto with_shape = [&](const Shape& shape) {
    ir::Attributes result = attrs;
    result.Set("shape", Ints(shape.dims().begin(), shape.dims().end()));
    return result;
  };
  const Shape y = ops::ConvGeometryOf(attrs, t.x, t.w).y_shape();
  const auto add = [&](const char* product, const std::string& suffix, std::vector<OpInput> inputs,
                       const ir::Attributes& a) {
    cases.push_back(WithLayout(
        Case(ops::ConvOp(dims, product), t.name + suffix, std::move(inputs), a), t.gradient));
  };
  add("", "", {Reals(t.x), Reals(t.w)}, attrs);
  add("", "_bias", {Reals(t.x), Reals(t.w), Reals({t.w[0]})}, attrs);
  add("", "_f32_bias", {Reals(t.x), Reals(t.w), Pinned(Reals({t.w[0]}))}, attrs);
  add("_grad_input", "", {Reals(y), Reals(t.w)}, with_shape(t.x));
  add("_grad_weight", "", {Reals(t.x), Reals(y)}, with_shape(t.w));
  ir::Attributes wide = with_shape(t.w);
  wide.Set("out", std::string("f32"));
  add("_grad_weight", "_out_f32", {Reals(t.x), Reals(y)}, wide);
}

}  // namespace

void AddCases_convolution(std::vector<OpCase>& cases) {
  for (const Conv& t : Convs()) AddConv(t, cases);
  for (const char* out : {"", "f32"}) {
    const std::string suffix = *out == 0 ? "" : "_out_f32";
    const ir::Attributes attrs = {{"out", std::string(out)}};
    const auto add = [&](const char* op, const char* name, Shape dy, bool gradient) {
      cases.push_back(WithLayout(Case(op, name + suffix, {Reals(std::move(dy))}, attrs), gradient));
    };
    add("conv2d_grad_bias", "odd", {3, 5, 4, 7}, true);
    add("conv2d_grad_bias", "one", {1, 1, 1, 1}, true);
    add("conv2d_grad_bias", "long", {4, 3, 40, 40}, false);
    add("conv3d_grad_bias", "odd", {3, 5, 2, 4, 3}, true);
    add("conv3d_grad_bias", "one", {1, 1, 1, 1, 1}, true);
    add("conv3d_grad_bias", "no_images", {0, 3, 2, 2, 2}, true);
    add("conv3d_grad_bias", "long", {4, 3, 10, 12, 13}, false);
  }
}

}  // namespace halftone::testing
