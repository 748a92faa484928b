// The oracle itself: matrix, convolution, pooling and norm ops pinned by numbers one can check by
// hand.
#include <gtest/gtest.h>

#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/special_values.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;
using ::testing::Each;

Tensor Image(int64_t height, int64_t width, const Reals64& values, DType dtype = DType::kF64) {
  return T({1, 1, height, width}, values, dtype);
}
// 1, 2, 3, ... row by row.
Tensor Counting(int64_t height, int64_t width) {
  Reals64 values;
  for (int64_t i = 0; i < height * width; ++i) values.push_back(static_cast<double>(i + 1));
  return Image(height, width, values);
}

TEST(Literal, Matmul) {
  const Tensor a = T({2, 2}, {1, 2, 3, 4}), b = T({2, 2}, {5, 6, 7, 8});
  EXPECT_THAT(Apply("matmul", {a, b}), Is({2, 2}, {19, 22, 43, 50}));
  EXPECT_THAT(Apply("matmul", {a, b}, {{"transpose_a", true}}), Is({2, 2}, {26, 30, 38, 44}));
  EXPECT_THAT(Apply("matmul", {a, b}, {{"transpose_b", true}}), Is({2, 2}, {17, 23, 39, 53}));
  EXPECT_THAT(Apply("matmul", {a, b}, {{"transpose_a", true}, {"transpose_b", true}}),
              Is({2, 2}, {23, 31, 34, 46}));
  EXPECT_THAT(Apply("matmul", {T({2, 1, 2}, {1, 2, 3, 4}), T({2, 1}, {10, 100})}),
              Is({2, 1, 1}, {210, 430}));
  EXPECT_THAT(Apply("matmul", {T({2, 0}, {}), T({0, 1}, {})}), Is({2, 1}, {0, 0}));
}

// 300 * 300 is no f16; 2048 + 1 + 1 is lost where every sum is rounded to f16.
TEST(Literal, MatmulOfF16SumsWide) {
  const Tensor x = T({1, 1}, {300}, DType::kF16);
  EXPECT_THAT(Apply("matmul", {x, x}), Is({1, 1}, {INFINITY}));
  EXPECT_THAT(Apply("matmul", {x, x}, {{"out", std::string("f32")}}), Is({1, 1}, {90000}));
  EXPECT_THAT(
      Apply("matmul", {T({1, 3}, {2048, 1, 1}, DType::kF16), T({3, 1}, {1, 1, 1}, DType::kF16)}),
      Is({1, 1}, {2050}));
}

TEST(Literal, Linear) {
  const Tensor x = T({1, 2}, {1, 2}), w = T({2, 2}, {3, 4, 5, 6});
  EXPECT_THAT(Apply("linear", {x, w}), Is({1, 2}, {11, 17}));
  EXPECT_THAT(Apply("linear", {x, w, Vec({0.5, -1})}), Is({1, 2}, {11.5, 16}));
}

TEST(Literal, Conv2d3x3) {
  EXPECT_THAT(Apply("conv2d", {Counting(3, 3), Counting(3, 3)}), Is({1, 1, 1, 1}, {285}));
  EXPECT_THAT(Apply("conv2d", {Counting(3, 3), Counting(3, 3)}, {{"padding", Ints{1, 1}}}),
              Is({1, 1, 3, 3}, {94, 154, 106, 186, 285, 186, 106, 154, 94}));
}

TEST(Literal, Conv2dStrideDilationGroupsBias) {
  EXPECT_THAT(Apply("conv2d", {Counting(1, 5), Image(1, 2, {1, 10})},
                    {{"stride", Ints{1, 2}}, {"dilation", Ints{1, 2}}}),
              Is({1, 1, 1, 2}, {1 + 30, 3 + 50}));
  const Tensor x = T({1, 2, 1, 2}, {1, 2, 3, 4});
  EXPECT_THAT(
      Apply("conv2d", {x, T({2, 1, 1, 1}, {2, 3}), Vec({10, 20})}, {{"groups", int64_t{2}}}),
      Is({1, 2, 1, 2}, {12, 14, 29, 32}));
  // Two output channels over both inputs.
  EXPECT_THAT(Apply("conv2d", {x, T({2, 2, 1, 1}, {1, 10, 100, 1000})}),
              Is({1, 2, 1, 2}, {31, 42, 3100, 4200}));
}

TEST(Literal, Conv2dGradients) {
  const Tensor dy = Image(2, 2, {1, 10, 100, 1000});
  EXPECT_THAT(
      Apply("conv2d_grad_input", {dy, Image(2, 2, {1, 2, 3, 4})}, {{"shape", Ints{1, 1, 3, 3}}}),
      Is({1, 1, 3, 3}, {1, 12, 20, 103, 1234, 2040, 300, 3400, 4000}));
  EXPECT_THAT(Apply("conv2d_grad_weight", {Counting(3, 3), dy}, {{"shape", Ints{1, 1, 2, 2}}}),
              Is({1, 1, 2, 2}, {5421, 6532, 8754, 9865}));
  EXPECT_THAT(Apply("conv2d_grad_bias", {dy}), Is({1111}));
}

ir::Attributes Window(int64_t kernel, int64_t stride, int64_t padding = 0, bool ceil = false) {
  return {{"kernel", Ints{kernel, kernel}},
          {"stride", Ints{stride, stride}},
          {"padding", Ints{padding, padding}},
          {"ceil_mode", ceil}};
}
ir::Attributes With(ir::Attributes attrs, const char* name, ir::AttrValue value) {
  attrs.Set(name, std::move(value));
  return attrs;
}

TEST(Literal, MaxPool) {
  const auto out = RunOp("max_pool2d", {Counting(4, 4)}, Window(2, 2));
  EXPECT_THAT(out[0], Is({1, 1, 2, 2}, {6, 8, 14, 16}));
  EXPECT_THAT(out[1], Is({1, 1, 2, 2}, {3, 3, 3, 3}));
  // Padding never wins over negative values, and offsets count from the padded corner.
  const auto padded = RunOp("max_pool2d", {Image(2, 2, {-1, -2, -3, -4})}, Window(3, 2, 1));
  EXPECT_THAT(padded[0], Is({1, 1, 1, 1}, {-1}));
  EXPECT_THAT(padded[1], Is({1, 1, 1, 1}, {4}));
}

TEST(Literal, MaxPoolTakesNaNAndTheFirstOfEquals) {
  const auto nan = RunOp("max_pool2d", {Image(2, 2, {1, kNaN, 3, kNaN})}, Window(2, 2));
  EXPECT_THAT(nan[0], Is({1, 1, 1, 1}, {kNaN}));
  EXPECT_THAT(nan[1], Is({1, 1, 1, 1}, {1}));
  const auto tie = RunOp("max_pool2d", {Image(2, 2, {4, 5, 5, 5})}, Window(2, 2));
  EXPECT_THAT(tie[1], Is({1, 1, 1, 1}, {1}));
}

TEST(Literal, MaxPoolGradAddsWhereWindowsOverlap) {
  const ir::Attributes attrs = {
      {"kernel", Ints{1, 2}}, {"stride", Ints{1, 1}}, {"shape", Ints{1, 1, 1, 3}}};
  EXPECT_THAT(
      Apply("max_pool2d_grad", {Image(1, 2, {1, 10}), Image(1, 2, {1, 0}, DType::kU8)}, attrs),
      Is({1, 1, 1, 3}, {0, 11, 0}));
}

TEST(Literal, AvgPool) {
  EXPECT_THAT(Apply("avg_pool2d", {Counting(4, 4)}, Window(2, 2)),
              Is({1, 1, 2, 2}, {3.5, 5.5, 11.5, 13.5}));
  const Tensor x = Counting(2, 2);
  EXPECT_THAT(Apply("avg_pool2d", {x}, Window(2, 2, 1)), Is({1, 1, 2, 2}, {0.25, 0.5, 0.75, 1}));
  EXPECT_THAT(Apply("avg_pool2d", {x}, With(Window(2, 2, 1), "count_include_pad", false)),
              Is({1, 1, 2, 2}, {1, 2, 3, 4}));
  // What reaches beyond the input under ceil_mode does not count.
  EXPECT_THAT(Apply("avg_pool2d", {Counting(3, 3)}, Window(2, 2, 0, true)),
              Is({1, 1, 2, 2}, {3, 4.5, 7.5, 9}));
}

TEST(Literal, AvgPoolGrad) {
  EXPECT_THAT(
      Apply("avg_pool2d_grad", {Image(1, 1, {4})}, With(Window(2, 2), "shape", Ints{1, 1, 3, 2})),
      Is({1, 1, 3, 2}, {1, 1, 1, 1, 0, 0}));
}

// Mean 3, variance 3.5; with eps 0.5 the deviation is 2.
TEST(Literal, BatchNorm) {
  const auto out =
      RunOp("batch_norm", {T({4, 1}, {1, 2, 3, 6}), Vec({2}), Vec({10}), Vec({1}), Vec({2})},
            {{"eps", 0.5}, {"momentum", 0.5}});
  EXPECT_THAT(out[0], Is({4, 1}, {8, 9, 10, 13}));
  EXPECT_THAT(out[1], Is({3}));
  EXPECT_THAT(out[2], Is({0.5}));
  EXPECT_THAT(out[3], Is({2}));
  // Unbiased: 14 / 3.
  EXPECT_THAT(out[4], Is({1 + 14.0 / 3 / 2}));
}

TEST(Literal, BatchNormNormalisesEachChannel) {
  const Tensor x = T({2, 2, 1, 2}, {1, 3, 10, 30, 1, 3, 10, 30});
  const auto out =
      RunOp("batch_norm", {x, Vec({1, 1}), Vec({0, 0}), Vec({0, 0}), Vec({1, 1})}, {{"eps", 0.0}});
  EXPECT_THAT(out[0], Is({2, 2, 1, 2}, {-1, 1, -1, 1, -1, 1, -1, 1}));
  EXPECT_THAT(out[1], Is({2, 20}));
  EXPECT_THAT(out[2], Is({1, 0.1}));
}

TEST(Literal, BatchNormInference) {
  EXPECT_THAT(
      Apply("batch_norm_inference",
            {T({4, 1}, {1, 2, 3, 6}), Vec({2}), Vec({10}), Vec({1}), Vec({3})}, {{"eps", 1.0}}),
      Is({4, 1}, {10, 11, 12, 15}));
}

TEST(Literal, BatchNormGrad) {
  const auto out = RunOp("batch_norm_grad", {T({3, 1}, {2, 4, 6}), T({3, 1}, {3, 0, 0}), Vec({2}),
                                             Vec({4}), Vec({0.5})});
  EXPECT_THAT(out[0], Is({3, 1}, {1, -1, 0}));
  EXPECT_THAT(out[1], Is({-3}));
  EXPECT_THAT(out[2], Is({3}));
}

TEST(Literal, LayerNorm) {
  const auto out =
      RunOp("layer_norm", {T({2, 2}, {1, 3, -4, 4}), Vec({1, 10}), Vec({0, 5})}, {{"eps", 0.0}});
  EXPECT_THAT(out[0], Is({2, 2}, {-1, 15, -1, 15}));
  EXPECT_THAT(out[1], Is({2, 0}));
  EXPECT_THAT(out[2], Is({1, 0.25}));
}

// The square of 20000 is no f16; f32 inside keeps the row.
TEST(Literal, A12LayerNormOfLargeF16) {
  const Tensor x = T({1, 4}, {20000, -20000, 20000, -20000}, DType::kF16);
  const Tensor gamma = Tensor::Full(DType::kF32, {4}, 1);
  const auto out = RunOp("layer_norm", {x, gamma, Tensor::Zeros(DType::kF32, {4})});
  EXPECT_THAT(out[0], Is({1, 4}, {1, -1, 1, -1}));
  const auto back =
      RunOp("layer_norm_grad", {x, T({1, 4}, {1, 0, 0, 0}, DType::kF16), gamma, out[1], out[2]});
  // One rounding to f16 of 2.5e-5, a subnormal with steps of 2^-24.
  ExpectClose(back[0], T({1, 4}, {2.5e-5, 0, -2.5e-5, 0}), 0, 0x1p-25);
}

TEST(Literal, LayerNormGradSumsRows) {
  const auto out = RunOp("layer_norm_grad", {T({2, 2}, {1, 3, -4, 4}), T({2, 2}, {1, 2, 3, 4}),
                                             Vec({1, 1}), Vec({2, 0}), Vec({1, 0.25})});
  // xhat = (-1, 1) in both rows.
  EXPECT_THAT(out[1], Is({-1 - 3, 2 + 4}));
  EXPECT_THAT(out[2], Is({1 + 3, 2 + 4}));
  EXPECT_THAT(out[0], Is({2, 2}, {0, 0, 0, 0}));
}

}  // namespace
}  // namespace halftone::testing
