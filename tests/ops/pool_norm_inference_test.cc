// Shapes and refusals of pooling, norms, softmax and dropout.
#include <gtest/gtest.h>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

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

TEST(PoolInference, RoundsDown) {
  EXPECT_EQ(Infer("max_pool2d", "f32[2,3,7,6]", Window(2, 2)), "f32[2,3,3,3] u8[2,3,3,3]");
  EXPECT_EQ(Infer("avg_pool2d", "f16[2,3,7,6]", Window(3, 2, 1)), "f16[2,3,4,3]");
  EXPECT_EQ(Infer("max_pool2d", "f32[1,1,9,9]", With(Window(3, 1), "dilation", Ints{2, 4})),
            "f32[1,1,5,1] u8[1,1,5,1]");
}

// Of 4 elements, kernel 2: with stride 3 and padding 1 the windows start at -1, 2 and 5; the last
// would start in the right padding.
TEST(PoolInference, CeilModeCountsWindowsThatStartInside) {
  EXPECT_EQ(Infer("avg_pool2d", "f32[1,1,7,7]", Window(2, 2, 0, true)), "f32[1,1,4,4]");
  EXPECT_EQ(Infer("avg_pool2d", "f32[1,1,4,4]", Window(2, 3, 1, true)), "f32[1,1,2,2]");
  EXPECT_EQ(Infer("avg_pool2d", "f32[1,1,6,6]", Window(3, 2, 1, true)), "f32[1,1,4,4]");
}

TEST(PoolInference, IndexHoldsEveryOffset) {
  EXPECT_EQ(Infer("max_pool2d", "f32[1,1,16,16]", Window(16, 1)), "f32[1,1,1,1] u8[1,1,1,1]");
  EXPECT_EQ(Infer("max_pool2d", "f32[1,1,17,17]", Window(17, 1)), "f32[1,1,1,1] i32[1,1,1,1]");
}

TEST(PoolInference, Refuses) {
  EXPECT_EQ(Infer("max_pool2d", "f32[3,7,6]", Window(2, 2)),
            "max_pool2d: x is f32[3,7,6]; expected rank 4");
  EXPECT_EQ(Infer("max_pool2d", "f32[1,1,7,6]", Window(3, 2, 2)),
            "max_pool2d: padding is 2 for a window of 3; expected at most half of the window");
  EXPECT_EQ(Infer("avg_pool2d", "f32[1,1,7,6]", Window(7, 1)),
            "avg_pool2d: the window of 7x7 does not fit the padded input of 7x6; "
            "expected a smaller kernel or dilation");
  EXPECT_EQ(Infer("avg_pool2d", "f32[1,1,7,6]", {{"kernel", Ints{2, 2}}}),
            "avg_pool2d: attribute stride is absent; expected ints");
  EXPECT_EQ(Infer("avg_pool2d", "f32[1,1,7,6]", With(Window(2, 2), "kernel", Ints{2, 0})),
            "avg_pool2d: kernel is [2,0]; expected 2 integers of at least 1 and at most 1048576");
}

TEST(PoolGradInference, ChecksShapes) {
  const ir::Attributes attrs = With(Window(2, 2), "shape", Ints{1, 2, 7, 6});
  EXPECT_EQ(Infer("max_pool2d_grad", "f32[1,2,3,3] u8[1,2,3,3]", attrs), "f32[1,2,7,6]");
  EXPECT_EQ(Infer("avg_pool2d_grad", "bf16[1,2,3,3]", attrs), "bf16[1,2,7,6]");
  EXPECT_EQ(Infer("max_pool2d_grad", "f32[1,2,3,3] i32[1,2,3,3]", attrs),
            "max_pool2d_grad: index is i32[1,2,3,3]; "
            "expected u8[1,2,3,3] (type of max_pool2d's index)");
  EXPECT_EQ(
      Infer("avg_pool2d_grad", "f32[1,2,4,3]", attrs),
      "avg_pool2d_grad: dy is f32[1,2,4,3]; expected f32[1,2,3,3] (shape of the pooling's y)");
}

TEST(BatchNormInference, GivesStatistics) {
  EXPECT_EQ(Infer("batch_norm", "bf16[2,3,4,5] f32[3] f32[3] f32[3] f32[3]"),
            "bf16[2,3,4,5] f32[3] f32[3] f32[3] f32[3]");
  EXPECT_EQ(Infer("batch_norm", "f64[4,3] f64[3] f64[3] f64[3] f64[3]"),
            "f64[4,3] f64[3] f64[3] f64[3] f64[3]");
  EXPECT_EQ(Infer("batch_norm_inference", "f16[1,3] f32[3] f32[3] f32[3] f32[3]"), "f16[1,3]");
  EXPECT_EQ(Infer("batch_norm_grad", "f16[2,3] f16[2,3] f32[3] f32[3] f32[3]"),
            "f16[2,3] f32[3] f32[3]");
}

TEST(BatchNormInference, Refuses) {
  EXPECT_EQ(Infer("batch_norm", "f32[1,3] f32[3] f32[3] f32[3] f32[3]"),
            "batch_norm: x is f32[1,3]; expected more than one value per channel in training");
  EXPECT_EQ(Infer("batch_norm", "f32[3] f32[3] f32[3] f32[3] f32[3]"),
            "batch_norm: x is f32[3]; expected rank 2..4");
  EXPECT_EQ(Infer("batch_norm", "f32[2,3] f32[2] f32[3] f32[3] f32[3]"),
            "batch_norm: gamma is f32[2]; expected f32[3] (channels of x f32[2,3])");
  EXPECT_EQ(Infer("batch_norm_inference", "f64[2,3] f64[3] f64[3] f64[3] f32[3]"),
            "batch_norm_inference: var is f32[3]; expected f64[3] (channels of x f64[2,3])");
  EXPECT_EQ(Infer("batch_norm_grad", "f32[2,3] f32[3,2] f32[3] f32[3] f32[3]"),
            "batch_norm_grad: dy is f32[3,2]; expected f32[2,3] (type of x)");
  EXPECT_EQ(Infer("batch_norm", "f32[2,3] f32[3] f32[3] f32[3] f32[3]", {{"eps", -1.0}}),
            "batch_norm: eps is -1; expected 0 or more");
  EXPECT_EQ(Infer("batch_norm", "f32[2,3] f32[3] f32[3] f32[3] f32[3]", {{"momentum", 1.5}}),
            "batch_norm: momentum is 1.5; expected 0..1");
}

TEST(LayerNormInference, SplitsRowsFromNormalisedAxes) {
  EXPECT_EQ(Infer("layer_norm", "f16[2,3,4] f32[4] f32[4]"), "f16[2,3,4] f32[2,3] f32[2,3]");
  EXPECT_EQ(Infer("layer_norm", "f32[2,3,4] f32[3,4] f32[3,4]", {{"axes_count", int64_t{2}}}),
            "f32[2,3,4] f32[2] f32[2]");
  EXPECT_EQ(Infer("layer_norm_grad", "f16[2,4] f16[2,4] f32[4] f32[2] f32[2]"),
            "f16[2,4] f32[4] f32[4]");
}

TEST(LayerNormInference, Refuses) {
  EXPECT_EQ(Infer("layer_norm", "f32[2,3] f32[3] f32[3]", {{"axes_count", int64_t{3}}}),
            "layer_norm: axes_count is 3 for x f32[2,3]; expected 1..2");
  EXPECT_EQ(Infer("layer_norm", "f32[2,3] f32[2] f32[3]"),
            "layer_norm: gamma is f32[2]; expected f32[3] (normalised extents of x f32[2,3])");
  EXPECT_EQ(Infer("layer_norm", "f32[] f32[3] f32[3]"),
            "layer_norm: x is f32[]; expected rank 1 or more");
  EXPECT_EQ(Infer("layer_norm_grad", "f32[2,3] f32[2,3] f32[3] f32[3] f32[2]"),
            "layer_norm_grad: mean is f32[3]; expected f32[2] (rows of x)");
}

TEST(SoftmaxInference, ChecksTheAxis) {
  EXPECT_EQ(Infer("softmax", "f32[8,16]", {{"axis", int64_t{0}}}), "f32[8,16]");
  EXPECT_EQ(Infer("softmax", "f32[8,16]", {{"axis", int64_t{5}}}),
            "softmax: axis 5 out of range for f32[8,16]; expected -2..1");
  EXPECT_EQ(Infer("log_softmax", "f32[]"),
            "log_softmax: axis -1 out of range for f32[]; expected rank 1 or more");
  EXPECT_EQ(Infer("softmax_grad", "f32[2,3] f16[2,3]"),
            "softmax_grad: dy is f16[2,3]; expected f32[2,3] (type of y)");
}

TEST(DropoutInference, ChecksTheProbability) {
  EXPECT_EQ(Infer("dropout", "f32[2,3]", {{"p", 0.5}, {"seed", int64_t{1}}}), "f32[2,3]");
  EXPECT_EQ(Infer("dropout", "f32[2,3]", {{"p", 1.5}, {"seed", int64_t{1}}}),
            "dropout: p is 1.5; expected 0..1");
  EXPECT_EQ(Infer("dropout", "f32[2,3]", {{"p", std::nan("")}, {"seed", int64_t{1}}}),
            "dropout: p is nan; expected 0..1");
  EXPECT_EQ(Infer("dropout", "f32[2,3]", {{"p", 0.5}}),
            "dropout: attribute seed is absent; expected int");
}

}  // namespace
}  // namespace halftone::testing
