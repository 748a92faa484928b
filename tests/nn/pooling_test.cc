// Pooling over one axis, and over windows as even as they can be, beside PyTorch's (2.15, in f64).
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/nn/torch_whole_row.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TorchWholeRow>& PoolingRows() {
  static const auto* const rows = new std::vector<TorchWholeRow>{
      {"max_pool1d",
       HT_CALL(max_pool1d(in[0], 2)),
       {{2, 2, 5}},
       {0, 2, 0, 2, 0, 2, 0, 2},
       {{0, 1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 5, 6, 0, 0, 0, 7, 8, 0, 0}}},
      {"max_pool1d, dilated",
       HT_CALL(max_pool1d(in[0], 2, {.stride = 3, .padding = 1, .dilation = 2, .ceil_mode = true})),
       {{1, 2, 7}},
       {0, 2, -2, -1, 1, 2},
       {{0, 1, 2, 0, 0, 3, 0, 0, 4, 5, 0, 0, 6, 0}}},
      {"max_pool1d, large stride",
       HT_CALL(max_pool1d(in[0], 3, {.stride = 7})),
       {{1, 1, 11}},
       {2, 2},
       {{0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0}}},
      {"avg_pool1d",
       HT_CALL(avg_pool1d(in[0], 2)),
       {{2, 1, 6}},
       {-1, 0.5, -0.5, 1, 0, -1},
       {{0.5, 0.5, 1, 1, 1.5, 1.5, 2, 2, 2.5, 2.5, 3, 3}}},
      {"avg_pool1d, padded",
       HT_CALL(avg_pool1d(in[0], 4, {.stride = 3, .padding = 2, .ceil_mode = true})),
       {{1, 2, 6}},
       {-0.5, 0.5, -0.25, 0.5, 0, -0.5},
       {{0.25, 0.75, 0.5, 0.5, 1.25, 0.75, 1, 2.25, 1.25, 1.25, 2.75, 1.5}}},
      {"avg_pool1d, without padding in the divisor",
       HT_CALL(avg_pool1d(in[0], 3, {.stride = 1, .padding = 1, .count_include_pad = false})),
       {{1, 1, 5}},
       {-1, 0, 0.3333333333333333, 0.6666666666666666, 0},
       {{1.1666666666666665, 2.1666666666666665, 3, 4.833333333333333, 3.833333333333333}}},
      {"adaptive_avg_pool1d",
       HT_CALL(adaptive_avg_pool1d(in[0], 3)),
       {{1, 2, 6}},
       {-1, 0.5, -0.5, 1, 0, -1},
       {{0.5, 0.5, 1, 1, 1.5, 1.5, 2, 2, 2.5, 2.5, 3, 3}}},
      {"adaptive_avg_pool1d, uneven",
       HT_CALL(adaptive_avg_pool1d(in[0], 4)),
       {{1, 2, 10}},
       {0, 0.6666666666666666, 0, 0.6666666666666666, 0, 0.6666666666666666, 0, 0.6666666666666666},
       {{0.3333333333333333,
         0.3333333333333333,
         1,
         0.6666666666666666,
         0.6666666666666666,
         1,
         1,
         2.333333333333333,
         1.3333333333333333,
         1.3333333333333333,
         1.6666666666666667,
         1.6666666666666667,
         3.666666666666667,
         2,
         2,
         2.3333333333333335,
         2.3333333333333335,
         5,
         2.6666666666666665,
         2.6666666666666665}}},
      {"adaptive_avg_pool1d, more than there are",
       HT_CALL(adaptive_avg_pool1d(in[0], 5)),
       {{1, 1, 3}},
       {-2, -1, 0, 1, 2},
       {{2, 6, 7}}},
      {"adaptive_avg_pool2d, global",
       HT_CALL(adaptive_avg_pool2d(in[0], 1)),
       {{2, 2, 2, 3}},
       {-0.3333333333333333, 0, 0.3333333333333333, -0.16666666666666666},
       {{0.16666666666666666,
         0.16666666666666666,
         0.16666666666666666,
         0.16666666666666666,
         0.16666666666666666,
         0.16666666666666666,
         0.3333333333333333,
         0.3333333333333333,
         0.3333333333333333,
         0.3333333333333333,
         0.3333333333333333,
         0.3333333333333333,
         0.5,
         0.5,
         0.5,
         0.5,
         0.5,
         0.5,
         0.6666666666666666,
         0.6666666666666666,
         0.6666666666666666,
         0.6666666666666666,
         0.6666666666666666,
         0.6666666666666666}}},
      {"adaptive_avg_pool2d, even",
       HT_CALL(adaptive_avg_pool2d(in[0], {2, 3})),
       {{1, 2, 4, 3}},
       {-1.5, 0.5, 0, 0.5, 0, -0.5, 0, -0.5, 1.5, -0.5, 1.5, -1.5},
       {{0.5, 1, 1.5, 0.5, 1, 1.5, 2, 2.5, 3, 2, 2.5, 3,
         3.5, 4, 4.5, 3.5, 4, 4.5, 5, 5.5, 6, 5, 5.5, 6}}},
      {"adaptive_avg_pool2d, uneven rows",
       HT_CALL(adaptive_avg_pool2d(in[0], {2, 1})),
       {{1, 2, 5, 2}},
       {-0.3333333333333333, 0.16666666666666666, -0.3333333333333333, 0.16666666666666666},
       {{0.16666666666666666,
         0.16666666666666666,
         0.16666666666666666,
         0.16666666666666666,
         0.5,
         0.5,
         0.3333333333333333,
         0.3333333333333333,
         0.3333333333333333,
         0.3333333333333333,
         0.5,
         0.5,
         0.5,
         0.5,
         1.1666666666666665,
         1.1666666666666665,
         0.6666666666666666,
         0.6666666666666666,
         0.6666666666666666,
         0.6666666666666666}}},
      {"adaptive_avg_pool2d, uneven columns",
       HT_CALL(adaptive_avg_pool2d(in[0], {1, 4})),
       {{1, 1, 2, 6}},
       {0, 0.75, -0.25, -0.75},
       {{0.25, 0.75, 0.5, 0.75, 1.75, 1, 0.25, 0.75, 0.5, 0.75, 1.75, 1}}},
      {"adaptive_avg_pool2d, uneven",
       HT_CALL(adaptive_avg_pool2d(in[0], {3, 2})),
       {{1, 1, 5, 5}},
       {0, 0.6666666666666666, 0, 0.6666666666666666, 0, 0.6666666666666666},
       {{0.16666666666666666,
         0.16666666666666666,
         0.5,
         0.3333333333333333,
         0.3333333333333333,
         0.5,
         0.5,
         1.2777777777777777,
         0.7777777777777777,
         0.7777777777777777,
         0.3333333333333333,
         0.3333333333333333,
         0.7777777777777777,
         0.4444444444444444,
         0.4444444444444444,
         1.1666666666666667,
         1.1666666666666667,
         2.611111111111111,
         1.4444444444444444,
         1.4444444444444444,
         0.8333333333333334,
         0.8333333333333334,
         1.8333333333333335,
         1,
         1}}},
      {"adaptive_max_pool1d",
       HT_CALL(adaptive_max_pool1d(in[0], 2)),
       {{1, 2, 5}},
       {2, 2, 2, 2},
       {{0, 0, 3, 0, 0, 0, 0, 7, 0, 0}}},
      {"adaptive_max_pool2d, global",
       HT_CALL(adaptive_max_pool2d(in[0], 1)),
       {{1, 2, 3, 4}},
       {2, 2},
       {{0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
       /*has_slopes=*/false},
      {"adaptive_max_pool2d, even",
       HT_CALL(adaptive_max_pool2d(in[0], {2, 4})),
       {{1, 1, 4, 8}},
       {1, 2, 2, 2, 2, 2, 1, 2},
       {{0, 0, 2, 0, 0, 0, 0, 4, 0, 1, 0, 0, 3, 0, 0, 0,
         0, 5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 6, 0, 7, 0, 0}}},
      {"adaptive_max_pool2d, uneven",
       HT_CALL(adaptive_max_pool2d(in[0], {2, 3})),
       {{1, 1, 3, 7}},
       {2, 2, 2, 2, 2, 2},
       {{0, 0, 3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 9, 0, 0, 0, 0, 5, 0, 0, 0}},
       /*has_slopes=*/false},
      {"adaptive_max_pool2d, uneven rows",
       HT_CALL(adaptive_max_pool2d(in[0], {2, 3})),
       {{1, 2, 3, 3}},
       {-1, 1, 2, 0, 2, -1, 2, -1, 1, 2, 0, 2},
       {{0, 0, 3, 1, 2, 0, 4, 5, 6, 0, 0, 0, 17, 8, 9, 0, 11, 12}}},
      {"adaptive_max_pool2d, equal maxima",
       HT_CALL(adaptive_max_pool2d(in[0] * in[0], {2, 2})),
       {{1, 1, 3, 3}},
       {4, 4, 4, 4},
       {{-4, 0, 8, 0, 0, -16, 0, 12, 0}},
       /*has_slopes=*/false},
  };
  return *rows;
}

TEST(PoolingFunctions, ValuesAndGradientsArePyTorchs) {
  for (const TorchWholeRow& row : PoolingRows()) CheckTorchWholeRow(row);
}

// Of every extent and size up to 9: each window by its own sum, from PyTorch's rule for its ends.
TEST(PoolingFunctions, WindowsOfEveryExtentAndSize) {
  for (int64_t n = 1; n <= 9; ++n) {
    for (int64_t size = 1; size <= 9; ++size) {
      const std::vector<double> x = Whole({1, 1, n}, 1);
      FnGraph graph([size](const Values& in) -> Values {
        return {adaptive_avg_pool1d(in[0], size), adaptive_max_pool1d(in[0], size)};
      });
      const std::vector<Tensor> out = Call(graph, {Tensor::Of(DType::kF64, {1, 1, n}, x)});
      ASSERT_EQ(out.size(), 2u);
      ASSERT_EQ(out[0].shape(), (Shape{1, 1, size}));
      for (int64_t o = 0; o < size; ++o) {
        const int64_t begin = o * n / size, end = ((o + 1) * n + size - 1) / size;
        double sum = 0, largest = -3;
        for (int64_t i = begin; i < end; ++i) {
          sum += x[i];
          largest = std::max(largest, x[i]);
        }
        EXPECT_NEAR(out[0].at(o), sum / static_cast<double>(end - begin), 1e-14)
            << n << " " << size;
        EXPECT_EQ(out[1].at(o), largest) << n << " " << size;
      }
    }
  }
}

// What is not finite stays in its windows.
TEST(PoolingFunctions, NotFinite) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  FnGraph graph([](const Values& in) -> Values {
    return {adaptive_avg_pool1d(in[0], 2), adaptive_max_pool1d(in[0], 2)};
  });
  for (const Tensor& y : Call(graph, {F32({1, 1, 3}, {kNaN, 1, 1})})) {
    EXPECT_TRUE(std::isnan(y.at(0)));
    EXPECT_EQ(y.at(1), 1);
  }
}

TEST(PoolingFunctions, NoImages) {
  FnGraph graph([](const Values& in) -> Values {
    return {max_pool1d(in[0], 2), adaptive_avg_pool1d(in[0], 2), adaptive_max_pool1d(in[0], 3)};
  });
  const std::vector<Tensor> out = Call(graph, {F32({0, 2, 5}, {})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].TypeString(), "f32[0,2,2]");
  EXPECT_EQ(out[1].TypeString(), "f32[0,2,2]");
  EXPECT_EQ(out[2].TypeString(), "f32[0,2,3]");
}

TEST(PoolingFunctions, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {2, 3, 5}),
                                           Tensor::Zeros(DType::kF32, {2, 3, 4, 5}),
                                           Tensor::Zeros(DType::kF32, {2, 3, 0, 5})})),
                HasSubstr(message));
  };
#define HT_EXPECT(call, message) expect([](const Values& in) -> Values { return {call}; }, message)
  HT_EXPECT(max_pool1d(in[1], 2), "max_pool1d: x is f32[2,3,4,5]; expected rank 3");
  HT_EXPECT(avg_pool1d(in[1], 2), "avg_pool1d: x is f32[2,3,4,5]; expected rank 3");
  HT_EXPECT(max_pool1d(in[0], 6), "max_pool2d: the window of 1x6 does not fit");
  HT_EXPECT(avg_pool1d(in[0], 0), "avg_pool2d: ");
  HT_EXPECT(adaptive_avg_pool1d(in[1], 2),
            "adaptive_avg_pool1d: x is f32[2,3,4,5]; expected rank 3");
  HT_EXPECT(adaptive_avg_pool2d(in[0], 2), "adaptive_avg_pool2d: x is f32[2,3,5]; expected rank 4");
  HT_EXPECT(
      adaptive_avg_pool2d(in[2], 2),
      "adaptive_avg_pool2d: x is f32[2,3,0,5]; expected at least one element along axes 2 and 3");
  HT_EXPECT(adaptive_max_pool2d(in[1], {2, 0}),
            "adaptive_max_pool2d: output_size is 0; expected at least 1 and at most ");
  HT_EXPECT(adaptive_max_pool2d(in[1], {2, std::numeric_limits<int64_t>::max()}),
            "adaptive_max_pool2d: output_size is 9223372036854775807; expected at least 1");
  HT_EXPECT(adaptive_avg_pool2d(in[1], {2001, 1}),
            "adaptive_avg_pool2d: output_size is 2001 over 4 elements, 2001 kinds of windows; "
            "expected at most 1024");
#undef HT_EXPECT
}

TEST(PoolingLayers, ArePyTorchs) {
  MaxPool1d max_pool(2, {.stride = 1});
  AvgPool1d avg_pool(3);
  AdaptiveAvgPool1d adaptive_avg(2);
  AdaptiveMaxPool1d adaptive_max(1);
  FnGraph rows([&](const Values& in) -> Values {
    return {max_pool(in[0]), avg_pool(in[0]), adaptive_avg(in[0]), adaptive_max(in[0])};
  });
  rows.add_module("max", max_pool);
  rows.add_module("avg", avg_pool);
  rows.add_module("adaptive_avg", adaptive_avg);
  rows.add_module("adaptive_max", adaptive_max);
  const std::vector<Tensor> of_rows = Call(rows, {F32({1, 1, 4}, {1, 5, 3, 3})});
  ASSERT_EQ(of_rows.size(), 4u);
  EXPECT_THAT(of_rows[0].ToVector(), ElementsAre(5, 5, 3));
  EXPECT_THAT(of_rows[1].ToVector(), ElementsAre(3));
  EXPECT_THAT(of_rows[2].ToVector(), ElementsAre(3, 3));
  EXPECT_THAT(of_rows[3].ToVector(), ElementsAre(5));

  Sequential images(AdaptiveAvgPool2d({1, 2}), AdaptiveMaxPool2d(1));
  FnGraph graph([&](const Values& in) -> Values { return {images(in[0])}; });
  graph.add_module("images", images);
  EXPECT_THAT(Call1(graph, {F32({1, 1, 2, 2}, {1, 5, 3, 1})}), ElementsAre(3));
  EXPECT_EQ(AdaptiveAvgPool2d({1, 2}).description(), "AdaptiveAvgPool2d(1, 2)");
  EXPECT_EQ(max_pool.description(), "MaxPool1d(2)");
}

}  // namespace
}  // namespace halftone::nn
