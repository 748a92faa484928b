// max_pool2d, avg_pool2d and their gradients.
#include "halftone/graph/ops/support/window.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

struct Pool {
  const char* name;
  Shape x;
  Ints kernel, stride;
  Ints padding = {0, 0}, dilation = {1, 1};
  bool ceil_mode = false;
};

std::vector<Pool> Pools() {
  return {
      {"2x2", {2, 3, 6, 4}, {2, 2}, {2, 2}},
      {"one", {1, 2, 3, 3}, {1, 1}, {1, 1}},
      {"global", {2, 3, 5, 4}, {5, 4}, {1, 1}},
      {"overlap", {1, 2, 7, 6}, {3, 3}, {1, 1}},
      {"3x3_stride2_pad1", {2, 2, 8, 7}, {3, 3}, {2, 2}, {1, 1}},
      {"uneven", {1, 2, 9, 8}, {3, 2}, {2, 3}, {1, 0}},
      {"rest_left_out", {1, 2, 7, 7}, {2, 2}, {2, 2}},
      {"ceil", {1, 2, 7, 7}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true},
      {"ceil_pad1", {2, 1, 6, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
      // The last window would start in the right padding: left out.
      {"ceil_window_dropped", {1, 1, 4, 4}, {2, 2}, {3, 3}, {1, 1}, {1, 1}, true},
      {"no_images", {0, 2, 4, 4}, {2, 2}, {2, 2}},
      {"channels", {2, 33, 8, 8}, {3, 3}, {2, 2}, {1, 1}},
      {"blocks", {2, 48, 7, 6}, {3, 3}, {2, 2}, {1, 1}},
  };
}

ir::Attributes PoolAttrsOf(const Pool& t) {
  return {{"kernel", t.kernel},
          {"stride", t.stride},
          {"padding", t.padding},
          {"ceil_mode", t.ceil_mode}};
}

ir::Attributes With(ir::Attributes attrs, const char* name, ir::AttrValue value) {
  attrs.Set(name, std::move(value));
  return attrs;
}

OpCase Laid(OpCase c) {
  c.channels_last = true;
  return c;
}

// One offset for each window, in turn over those that lie in the input.
std::vector<double> OffsetsInside(const ops::PoolGeometry& g) {
  const auto inside = [](const ops::WindowAxis& axis, int64_t o, int64_t k) {
    return axis.Position(o, k) >= 0 && axis.Position(o, k) < axis.input;
  };
  std::vector<double> offsets;
  for (int64_t y = 0; y < g.y_shape().num_elements(); ++y) {
    std::vector<int64_t> choices;
    for (int64_t k = 0; k < g.h.kernel * g.w.kernel; ++k) {
      if (inside(g.h, y / g.w.output % g.h.output, k / g.w.kernel) &&
          inside(g.w, y % g.w.output, k % g.w.kernel)) {
        choices.push_back(k);
      }
    }
    offsets.push_back(static_cast<double>(choices[y % choices.size()]));
  }
  return offsets;
}

void AddMaxPool(const Pool& t, std::vector<OpCase>& cases) {
  const ir::Attributes attrs = With(PoolAttrsOf(t), "dilation", t.dilation);
  cases.push_back(Laid(Case("max_pool2d", t.name, {Distinct(t.x)}, attrs)));
  const ops::PoolGeometry g = ops::PoolGeometryOf(attrs, t.x);
  OpInput index = Whole(DType::kU8, g.y_shape(), 0, 0);
  index.gen.kind = InputGen::Kind::kFixed;
  index.gen.values = OffsetsInside(g);
  cases.push_back(Laid(Case("max_pool2d_grad", t.name, {Reals(g.y_shape()), index},
                            With(attrs, "shape", Ints(t.x.dims().begin(), t.x.dims().end())))));
}

void AddAvgPool(const Pool& t, std::vector<OpCase>& cases) {
  for (bool include : {true, false}) {
    const ir::Attributes attrs = With(PoolAttrsOf(t), "count_include_pad", include);
    const std::string name = Concat(t.name, include ? "" : "_exclude_pad");
    cases.push_back(Laid(Case("avg_pool2d", name, {Reals(t.x)}, attrs)));
    const Shape y = ops::PoolGeometryOf(attrs, t.x).y_shape();
    cases.push_back(Laid(Case("avg_pool2d_grad", name, {Reals(y)},
                              With(attrs, "shape", Ints(t.x.dims().begin(), t.x.dims().end())))));
  }
}

}  // namespace

void AddCases_pooling(std::vector<OpCase>& cases) {
  for (const Pool& t : Pools()) {
    AddMaxPool(t, cases);
    AddAvgPool(t, cases);
  }
  AddMaxPool({"dilated", {1, 2, 9, 8}, {3, 2}, {1, 2}, {2, 1}, {2, 2}}, cases);
  // More offsets than u8 holds.
  const ir::Attributes wide = {{"kernel", Ints{17, 16}}, {"stride", Ints{1, 1}}};
  cases.push_back(Laid(Case("max_pool2d", "i32_index", {Distinct({1, 2, 18, 17})}, wide)));
  cases.push_back(Laid(Case("max_pool2d_grad", "i32_index",
                            {Reals({1, 2, 2, 2}), Whole(DType::kI32, {1, 2, 2, 2}, 0, 271)},
                            With(wide, "shape", Ints{1, 2, 18, 17}))));
}

}  // namespace halftone::testing
