// interpolate and Upsample, beside PyTorch's numbers (2.15).
#include <gtest/gtest.h>

#include "halftone/tests/nn/torch_row.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TorchRow>& ResizeRows() {
  static const auto* const rows = new std::vector<TorchRow>{
      {"interpolate, nearest",
       HT_CALL(interpolate(in[0], {.size = 4})),
       {F32({1, 1, 2, 2}, {-1, 1.5, -0.5, -0.25})},
       {-1, -1, 1.5, 1.5, -1, -1, 1.5, 1.5, -0.5, -0.5, -0.25, -0.25, -0.5, -0.5, -0.25, -0.25},
       {{14, 22, 46, 54}}},
      {"interpolate, nearest, smaller",
       HT_CALL(interpolate(in[0], {.size = Size2d(2, 3)})),
       {F32({1, 2, 3, 5}, {4.75, -1,   -6.75, -4.75, 0.75, -6,    4.25,  -4.5,  5.5,  3.75,
                           -7.5, -1.5, -3.5,  6.5,   5.25, -0.75, -2.75, 0.5,   -2.5, -3.75,
                           3.25, 0,    1,     -5.75, 6,    0.25,  1.25,  -7.25, -5.5, 7.25})},
       {4.75, -1, -4.75, -6, 4.25, 5.5, -0.75, -2.75, -2.5, 3.25, 0, -5.75},
       {{1, 2, 0, 3, 0, 4,  5,  0, 6,  0, 0, 0, 0, 0, 0,
         7, 8, 0, 9, 0, 10, 11, 0, 12, 0, 0, 0, 0, 0, 0}}},
      {"interpolate, nearest, scaled",
       HT_CALL(interpolate(in[0], {.scale_factor = Scale2d(1.6, 2)})),
       {F32({1, 1, 3, 2}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 1, -0.5, -0.5, 1, 1, -0.5, -0.5, -0.25, -0.25, 1.25, 1.25, -0.25, -0.25, 1.25, 1.25},
       {{14, 22, 46, 54, 0, 0}}},
      {"interpolate, bilinear",
       HT_CALL(interpolate(in[0], {.scale_factor = 2, .mode = "bilinear"})),
       {F32({1, 1, 2, 3}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1,       0.625,  -0.125, -0.4375, -0.3125, -0.25,   1.0625,  0.71875,
        0.03125, -0.25,  -0.125, -0.0625, 1.1875,  0.90625, 0.34375, 0.125,
        0.25,    0.3125, 1.25,   1,       0.5,     0.3125,  0.4375,  0.5},
       {{21.5, 29, 36.5, 63.5, 71, 78.5}}},
      {"interpolate, bilinear, sizes",
       HT_CALL(interpolate(in[0], {.size = Size2d(3, 2), .mode = "bilinear"})),
       {F32({1, 2, 2, 3}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-1.625, 2.5, -1.25, 0.3437500000000001, -0.875, -1.8125, 1.25, -2.5, 0.03125000000000009,
        -1.5625, -1.1875, -0.625},
       {{1.875, 1.625, 3, 4.874999999999999, 3.625, 5.999999999999999, 8.625, 6.125, 9.75, 11.625,
         8.125, 12.75}}},
      {"interpolate, bilinear, odd scale",
       HT_CALL(interpolate(in[0], {.scale_factor = 1.7, .mode = "bilinear"})),
       {F32({1, 1, 3, 2}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 0.4264705882352942, -0.4558823529411766, 0.5220588235294118, 0.3871107266435986,
        0.1794982698961938, -0.2132352941176472, 0.3265570934256056, 1.157006920415225,
        0.02941176470588236, 0.3358564013840831, 0.8073096885813149, 0.25, 0.3455882352941176,
        0.4926470588235294},
       {{7.169550173010379, 8.801038062283737, 22.18944636678201, 21.39878892733564,
         31.67041522491349, 28.77076124567474}}},
      {"interpolate, bilinear, aligned",
       HT_CALL(
           interpolate(in[0], {.size = Size2d(5, 3), .mode = "bilinear", .align_corners = true})),
       {F32({1, 1, 3, 2}, {1, -0.5, -0.25, 1.25, 0.25, 0.5})},
       {1, 0.25, -0.5, 0.375, 0.375, 0.375, -0.25, 0.5, 1.25, 0, 0.4375, 0.875, 0.25, 0.375, 0.5},
       {{5.25, 8.25, 22, 26, 27.75, 30.75}}},
      {"interpolate, bilinear, aligned to one",
       HT_CALL(interpolate(in[0], {.size = 1, .mode = "bilinear", .align_corners = true})),
       {F32({1, 2, 3, 2}, {-2, -0.5, 3.5, -0.25, -2.75, -1.5, 2, -1, -3, -0.75, -2.5, 0})},
       {-2, 2},
       {{1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0}}},
      {"interpolate, bilinear, aligned, scaled",
       HT_CALL(
           interpolate(in[0], {.scale_factor = 1.5, .mode = "bilinear", .align_corners = true})),
       {F32({1, 1, 2, 4}, {-0.25, -0.5, 2.25, 0.75, -1.5, 2.5, 1.25, 1})},
       {-0.25, -0.4, 0.04999999999999988, 1.7, 1.65, 0.75, -0.875, 0.25, 1.15, 1.6, 1.4, 0.875,
        -1.5, 0.8999999999999999, 2.25, 1.5, 1.15, 1},
       {{6.9, 11.4, 15, 16.2, 23.7, 30.6, 34.2, 33}}},
  };
  return *rows;
}

TEST(Interpolate, ValuesAndGradientsAreTorchs) {
  for (const TorchRow& row : ResizeRows()) ExpectAsInTorch(row);
}

// 49 (1 / 49) is below 1 in floating point; a pixel is repeated 49 times all the same.
TEST(Interpolate, NearestByAWholeFactorRepeats) {
  for (int64_t factor : {3, 41, 49, 107}) {
    FnGraph graph([factor](const Values& in) -> Values {
      const Value whole = interpolate(in[0], {.size = Size2d(1, 3 * factor)});
      return {whole, repeat_interleave(in[0], factor, 3)};
    });
    const std::vector<Tensor> out = Call(graph, {F32({1, 1, 1, 3}, {1, 2, 3})});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].ToVector(), out[1].ToVector()) << factor;
  }
}

TEST(Interpolate, LayersAndInfinities) {
  Sequential net{Upsample({.scale_factor = 2, .mode = "bilinear"})};
  FnGraph graph([&](const Values& in) -> Values { return {net(in[0])}; });
  graph.add_module("net", net);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Call1(graph, {F32({1, 1, 1, 2}, {1, inf})}),
              ElementsAre(1, inf, inf, inf, 1, inf, inf, inf));
  EXPECT_EQ(Upsample({.size = 3}).description(), "Upsample(nearest)");
}

TEST(Interpolate, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(
        Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {1, 1, 2, 3}), F32({2}, {0, 0})})),
        HasSubstr(message));
  };
#define HT_EXPECT(message, ...) \
  expect([](const Values& in) -> Values { return {__VA_ARGS__}; }, message)
  HT_EXPECT("interpolate: x is f32[2]; expected [N,C,H,W]", interpolate(in[1], {.size = 2}));
  HT_EXPECT("interpolate: none of size and scale_factor; expected one", interpolate(in[0]));
  HT_EXPECT("interpolate: both of size and scale_factor; expected one",
            interpolate(in[0], {.size = 2, .scale_factor = 2}));
  HT_EXPECT("upsample2d: size is [0,0]; expected 2 integers of at least 1",
            interpolate(in[0], {.size = 0}));
  HT_EXPECT(
      "interpolate: scale_factor is 0.3, 0.5 for f32[1,1,2,3]; expected a result of 1.. pixels",
      interpolate(in[0], {.scale_factor = Scale2d(0.3, 0.5)}));
  HT_EXPECT("interpolate: scale_factor is 1e+300", interpolate(in[0], {.scale_factor = 1e300}));
  HT_EXPECT("interpolate: scale_factor is nan", interpolate(in[0], {.scale_factor = std::nan("")}));
  HT_EXPECT("upsample2d: mode is \"area\"; expected one of \"nearest\", \"bilinear\"",
            interpolate(in[0], {.size = 2, .mode = "area"}));
#undef HT_EXPECT
}

}  // namespace
}  // namespace halftone::nn
