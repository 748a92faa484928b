// Shapes and refusals of matmul, linear, and conv2d and conv3d with their gradients.
#include <gtest/gtest.h>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

TEST(MatmulInference, MultipliesTheLastTwoAxes) {
  EXPECT_EQ(Infer("matmul", "f32[2,3] f32[3,4]"), "f32[2,4]");
  EXPECT_EQ(Infer("matmul", "bf16[3,2] bf16[4,3]", {{"transpose_a", true}, {"transpose_b", true}}),
            "bf16[2,4]");
  EXPECT_EQ(Infer("matmul", "f32[5,1,2,3] f32[6,3,4]"), "f32[5,6,2,4]");
  EXPECT_EQ(Infer("matmul", "f16[2,3] f16[3,4]", {{"out", std::string("f32")}}), "f32[2,4]");
  EXPECT_EQ(Infer("matmul", "f32[0,3] f32[3,4]"), "f32[0,4]");
}

TEST(MatmulInference, RefusesWhatDoesNotMultiply) {
  EXPECT_EQ(Infer("matmul", "f32[8,16] f32[4,10]"),
            "matmul: inner sizes differ: f32[8,16] x f32[4,10]; expected [16, n]");
  EXPECT_EQ(Infer("matmul", "f32[8,16] f32[4,10]", {{"transpose_b", true}}),
            "matmul: inner sizes differ: f32[8,16] x f32[4,10] transposed; expected [n, "
            "16]");
  EXPECT_EQ(Infer("matmul", "f32[3] f32[3,4]"), "matmul: a is f32[3]; expected rank 2 or more");
  EXPECT_EQ(Infer("matmul", "f32[2,3] f32[3]"), "matmul: b is f32[3]; expected rank 2 or more");
  EXPECT_EQ(Infer("matmul", "f32[2,3] f16[3,4]"),
            "matmul: b is f16[3,4]; expected f32, the dtype of a");
  EXPECT_EQ(Infer("matmul", "f32[2,2,3] f32[4,3,5]"),
            "matmul: batch extents differ: f32[2,2,3] x f32[4,3,5]; expected equal extents or 1");
  EXPECT_EQ(Infer("matmul", "f64[2,3] f64[3,4]", {{"out", std::string("f32")}}),
            "matmul: out \"f32\" for f64; "
            "expected \"\", or \"f32\" where the dtype is f32, f16 or bf16");
  EXPECT_EQ(Infer("matmul", "i64[2,3] i64[3,4]"),
            "matmul: input 0 (a) is i64[2,3]; expected f64 f32 f16 bf16");
}

TEST(LinearInference, KeepsLeadingAxes) {
  EXPECT_EQ(Infer("linear", "f32[2,3,5] f32[4,5]"), "f32[2,3,4]");
  EXPECT_EQ(Infer("linear", "f32[5] f32[4,5] f32[4]"), "f32[4]");
  EXPECT_EQ(Infer("linear", "bf16[2,5] bf16[4,5] f32[4]"), "bf16[2,4]");
  EXPECT_EQ(Infer("linear", "bf16[2,5] bf16[4,5] bf16[4]"), "bf16[2,4]");
}

TEST(LinearInference, Refuses) {
  EXPECT_EQ(Infer("linear", "f32[2,5] f32[4,6]"),
            "linear: inner sizes differ: x f32[2,5], w f32[4,6]; expected w to be [out, 5]");
  EXPECT_EQ(Infer("linear", "f32[] f32[4,6]"), "linear: x is f32[]; expected rank 1 or more");
  EXPECT_EQ(Infer("linear", "f32[5] f32[5]"), "linear: w is f32[5]; expected rank 2");
  EXPECT_EQ(Infer("linear", "f32[2,5] f32[4,5] f32[5]"), "linear: b is f32[5]; expected f32[4]");
  EXPECT_EQ(Infer("linear", "f32[2,5] f32[4,5] f16[4]"), "linear: b is f16[4]; expected f32[4]");
  EXPECT_EQ(Infer("linear", "f16[2,5] f16[4,5] bf16[4]"),
            "linear: b is bf16[4]; expected f16[4] or f32[4]");
  EXPECT_EQ(Infer("linear", "f32[2,5] bf16[4,5]"),
            "linear: w is bf16[4,5]; expected f32, the dtype of x");
}

// floor((H + 2 p - d (k - 1) - 1) / s) + 1, by hand.
TEST(Conv2dInference, FollowsTheFormula) {
  EXPECT_EQ(Infer("conv2d", "f32[2,3,8,7] f32[4,3,3,3]"), "f32[2,4,6,5]");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,8,7] f32[4,3,3,3]",
                  {{"stride", Ints{2, 3}}, {"padding", Ints{1, 0}}}),
            "f32[2,4,4,2]");
  EXPECT_EQ(Infer("conv2d", "f32[1,4,9,9] f32[6,2,3,3] f32[6]",
                  {{"dilation", Ints{2, 4}}, {"groups", int64_t{2}}}),
            "f32[1,6,5,1]");
  EXPECT_EQ(Infer("conv2d", "bf16[0,3,8,7] bf16[4,3,1,1] f32[4]"), "bf16[0,4,8,7]");
}

TEST(Conv2dInference, Refuses) {
  EXPECT_EQ(Infer("conv2d", "f32[3,8,7] f32[4,3,3,3]"), "conv2d: x is f32[3,8,7]; expected rank 4");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,8,7] f32[4,3,3]"), "conv2d: w is f32[4,3,3]; expected rank 4");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,8,7] f32[4,2,3,3]"),
            "conv2d: w is [4,2,3,3] for x [2,3,8,7] in 1 groups; expected [4,3,kh,kw]");
  EXPECT_EQ(Infer("conv2d", "f32[2,4,8,7] f32[4,4,3,3]", {{"groups", int64_t{3}}}),
            "conv2d: groups is 3 for 4 input and 4 output channels; expected a divisor of both");
  EXPECT_EQ(Infer("conv2d", "f32[2,4,8,7] f32[4,4,3,3]", {{"groups", int64_t{0}}}),
            "conv2d: groups is 0 for 4 input and 4 output channels; expected a divisor of both");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,4,4] f32[4,3,3,3]", {{"dilation", Ints{2, 1}}}),
            "conv2d: the window of 5x3 does not fit the padded input of 4x4; "
            "expected a smaller kernel or dilation");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,4,4] f32[4,3,0,3]"),
            "conv2d: w is [4,3,0,3]; expected a kernel of 1x1 or more");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,4,4] f32[4,3,3,3]", {{"stride", Ints{0, 1}}}),
            "conv2d: stride is [0,1]; expected 2 integers of at least 1 and at most 1048576");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,4,4] f32[4,3,3,3]", {{"padding", Ints{1}}}),
            "conv2d: padding is [1]; expected 2 integers of at least 0 and at most 1048576");
  EXPECT_EQ(Infer("conv2d", "f32[2,3,4,4] f32[4,3,3,3] f32[3]"),
            "conv2d: b is f32[3]; expected f32[4]");
}

TEST(Conv2dInference, ReportsAResultTooLarge) {
  EXPECT_EQ(Infer("conv2d", "f32[1048576,1,1,1] f32[1048576,1,1,1]", {{"padding", Ints{2, 2}}})
                .rfind("conv2d: y: ", 0),
            0u);
}

TEST(Conv2dGradInference, GivesTheOperandsTypes) {
  const ir::Attributes stride = {{"stride", Ints{2, 2}}, {"shape", Ints{2, 3, 8, 7}}};
  EXPECT_EQ(Infer("conv2d_grad_input", "f32[2,4,3,3] f32[4,3,3,3]", stride), "f32[2,3,8,7]");
  const ir::Attributes weight = {{"stride", Ints{2, 2}}, {"shape", Ints{4, 3, 3, 3}}};
  EXPECT_EQ(Infer("conv2d_grad_weight", "f32[2,3,8,7] f32[2,4,3,3]", weight), "f32[4,3,3,3]");
  EXPECT_EQ(Infer("conv2d_grad_weight", "f16[2,3,4,4] f16[2,4,4,4]",
                  {{"shape", Ints{4, 3, 1, 1}}, {"out", std::string("f32")}}),
            "f32[4,3,1,1]");
  EXPECT_EQ(Infer("conv2d_grad_bias", "bf16[2,4,3,3]", {{"out", std::string("f32")}}), "f32[4]");
}

TEST(Conv2dGradInference, Refuses) {
  const ir::Attributes shape = {{"shape", Ints{2, 3, 8, 7}}};
  EXPECT_EQ(Infer("conv2d_grad_input", "f32[2,4,3,3] f32[4,3,3,3]", shape),
            "conv2d_grad_input: dy is f32[2,4,3,3]; expected f32[2,4,6,5] (type of conv2d's y)");
  EXPECT_EQ(Infer("conv2d_grad_input", "f32[2,4,3,3] f32[4,3,3,3]", {{"shape", Ints{2, 3}}}),
            "conv2d_grad_input: shape is [2,3]; expected 4 extents");
  EXPECT_EQ(Infer("conv2d_grad_weight", "f32[2,3,8,7] f32[2,4,3,3]", {{"shape", Ints{4, 2, 3, 3}}}),
            "conv2d_grad_weight: w is [4,2,3,3] for x [2,3,8,7] in 1 groups; expected [4,3,kh,kw]");
  EXPECT_EQ(
      Infer("conv2d_grad_weight", "f32[2,3,8,7] f32[2,4,3,3]", {{"shape", Ints{4, 3, -3, 3}}}),
      "conv2d_grad_weight: shape is [4,3,-3,3]; expected 4 extents");
  EXPECT_EQ(Infer("conv2d_grad_bias", "f32[4]"), "conv2d_grad_bias: dy is f32[4]; expected rank 4");
}

TEST(Conv3dInference, Shapes) {
  EXPECT_EQ(Infer("conv3d", "f32[2,3,5,8,7] f32[4,3,1,3,2]"), "f32[2,4,5,6,6]");
  EXPECT_EQ(Infer("conv3d", "bf16[1,4,9,9,9] bf16[6,2,3,3,3] f32[6]",
                  {{"stride", Ints{1, 2, 3}},
                   {"padding", Ints{1, 0, 2}},
                   {"dilation", Ints{1, 2, 1}},
                   {"groups", int64_t{2}}}),
            "bf16[1,6,9,3,4]");
  const ir::Attributes shape = {{"shape", Ints{2, 3, 5, 8, 7}}};
  EXPECT_EQ(Infer("conv3d_grad_input", "f32[2,4,5,6,6] f32[4,3,1,3,2]", shape), "f32[2,3,5,8,7]");
  EXPECT_EQ(Infer("conv3d_grad_weight", "f16[2,3,5,8,7] f16[2,4,5,6,6]",
                  {{"shape", Ints{4, 3, 1, 3, 2}}, {"out", std::string("f32")}}),
            "f32[4,3,1,3,2]");
  EXPECT_EQ(Infer("conv3d_grad_bias", "bf16[2,4,3,3,3]"), "bf16[4]");
}

TEST(Conv3dInference, Refusals) {
  EXPECT_EQ(Infer("conv3d", "f32[3,5,8,7] f32[4,3,3,3,3]"),
            "conv3d: x is f32[3,5,8,7]; expected rank 5");
  EXPECT_EQ(Infer("conv3d", "f32[2,3,5,8,7] f32[4,3,3,3]"),
            "conv3d: w is f32[4,3,3,3]; expected rank 5");
  EXPECT_EQ(Infer("conv3d", "f32[2,3,5,8,7] f32[4,2,3,3,3]"),
            "conv3d: w is [4,2,3,3,3] for x [2,3,5,8,7] in 1 groups; expected [4,3,kd,kh,kw]");
  EXPECT_EQ(Infer("conv3d", "f32[2,3,5,8,7] f32[4,3,3,0,3]"),
            "conv3d: w is [4,3,3,0,3]; expected a kernel of 1x1x1 or more");
  EXPECT_EQ(Infer("conv3d", "f32[2,3,2,8,7] f32[4,3,3,3,3]", {{"padding", Ints{0, 1, 1}}}),
            "conv3d: the window of 3x3x3 does not fit the padded input of 2x10x9; "
            "expected a smaller kernel or dilation");
  EXPECT_EQ(Infer("conv3d", "f32[2,3,5,8,7] f32[4,3,3,3,3]", {{"stride", Ints{1, 1}}}),
            "conv3d: stride is [1,1]; expected 3 integers of at least 1 and at most 1048576");
  EXPECT_EQ(
      Infer("conv3d_grad_input", "f32[2,4,5,6,6] f32[4,3,1,3,2]", {{"shape", Ints{2, 3, 8, 7}}}),
      "conv3d_grad_input: shape is [2,3,8,7]; expected 5 extents");
  EXPECT_EQ(Infer("conv3d_grad_bias", "f32[2,4,3,3]"),
            "conv3d_grad_bias: dy is f32[2,4,3,3]; expected rank 5");
}

}  // namespace
}  // namespace halftone::testing
