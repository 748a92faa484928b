// Types and messages of the ops along one axis, and of those that move elements about.
#include <gtest/gtest.h>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

TEST(LinesInference, Flip) {
  EXPECT_EQ(Infer("flip", "bool[2,3]", {{"axes", Ints{-1}}}), "bool[2,3]");
  EXPECT_EQ(Infer("flip", "f32[2,3]", {{"axes", Ints{}}}), "f32[2,3]");
  EXPECT_EQ(Infer("flip", "f32[2,3]", {{"axes", Ints{2}}}),
            "flip: axis 2 out of range for f32[2,3]; expected -2..1");
}

std::string Pad(const std::string& type, Ints before, Ints after, const std::string& mode,
                double value = 0) {
  return Infer("pad", type,
               {{"before", std::move(before)},
                {"after", std::move(after)},
                {"mode", mode},
                {"value", value}});
}

TEST(LinesInference, Pad) {
  EXPECT_EQ(Pad("bf16[2,0]", {1, 2}, {0, 3}, "constant"), "bf16[3,5]");
  EXPECT_EQ(Pad("f32[2,3]", {1, 2}, {1, 0}, "reflect"), "f32[4,5]");
  EXPECT_EQ(Pad("f32[2,3]", {9, 0}, {0, 9}, "replicate"), "f32[11,12]");
  EXPECT_EQ(Pad("f32[0,3]", {0, 1}, {0, 1}, "reflect"), "f32[0,5]");
  EXPECT_EQ(Pad("f32[2,3]", {1}, {1, 0}, "constant"),
            "pad: before is [1]; expected 2 integers of at least 0");
  EXPECT_EQ(Pad("f32[2,3]", {1, 0}, {1, -1}, "constant"),
            "pad: after is [1,-1]; expected 2 integers of at least 0");
  EXPECT_EQ(Pad("f32[2,3]", {0, 0}, {0, 0}, "wrap"),
            "pad: mode is \"wrap\"; expected one of \"constant\", \"reflect\", \"replicate\"");
  EXPECT_EQ(Pad("f32[2,3]", {0, 0}, {0, 3}, "reflect"),
            "pad: axis 1 of f32[2,3] padded by 0 and 3; expected less than its extent, which is "
            "reflected");
  EXPECT_EQ(Pad("f32[0,3]", {1, 0}, {0, 0}, "replicate"),
            "pad: axis 0 of f32[0,3] padded by 1 and 0; expected an extent above 0, which is "
            "replicated");
  EXPECT_EQ(Pad("i64[3]", {1}, {0}, "constant", 0.5),
            "pad: value is 0.5; expected a whole number beside integers and bools");
}

TEST(LinesInference, CumsumAndProd) {
  EXPECT_EQ(Infer("cumsum", "i32[2,3]", {{"axis", int64_t{-1}}}), "i32[2,3]");
  EXPECT_EQ(Infer("cumsum", "f32[2,3]", {{"axis", int64_t{2}}}),
            "cumsum: axis 2 out of range for f32[2,3]; expected -2..1");
  EXPECT_EQ(Infer("cumsum", "bool[2]", {{"axis", int64_t{0}}}),
            "cumsum: input 0 (x) is bool[2]; expected f64 f32 f16 bf16 i64 i32 u8");
  EXPECT_EQ(Infer("prod", "f16[2,0]", {{"axis", int64_t{1}}}), "f16[2]");
  EXPECT_EQ(Infer("prod", "f16[2,3]", {{"axis", int64_t{0}}, {"keepdim", true}}), "f16[1,3]");
  EXPECT_EQ(Infer("prod", "f32[]", {{"axis", int64_t{0}}}),
            "prod: axis 0 out of range for f32[]; expected no axis");
}

TEST(LinesInference, Sort) {
  EXPECT_EQ(Infer("sort", "f32[2,3]", {{"axis", int64_t{-1}}}), "f32[2,3] i64[2,3]");
  EXPECT_EQ(Infer("sort", "u8[2,3]", {{"axis", int64_t{0}}, {"k", int64_t{1}}}),
            "u8[1,3] i64[1,3]");
  EXPECT_EQ(Infer("sort", "f32[2,3]", {{"axis", int64_t{1}}, {"k", int64_t{4}}}),
            "sort: k is 4; expected 0..3, the extent of axis 1 of f32[2,3], or -1");
}

TEST(LinesInference, TakeAlongDim) {
  EXPECT_EQ(Infer("take_along_dim", "bool[2,3] i32[2,7]", {{"axis", int64_t{1}}}), "bool[2,7]");
  EXPECT_EQ(Infer("take_along_dim", "f32[2,3] i64[3,3]", {{"axis", int64_t{1}}}),
            "take_along_dim: x is f32[2,3], idx i64[3,3]; expected equal extents except along axis "
            "1");
  EXPECT_EQ(Infer("take_along_dim_grad", "f32[2,7] i32[2,7]",
                  {{"axis", int64_t{-1}}, {"dim", int64_t{3}}}),
            "f32[2,3]");
  EXPECT_EQ(Infer("take_along_dim_grad", "f32[2,7] i32[2,6]",
                  {{"axis", int64_t{1}}, {"dim", int64_t{3}}}),
            "take_along_dim_grad: dy is f32[2,7], idx i32[2,6]; expected equal extents");
  EXPECT_EQ(Infer("take_along_dim_grad", "f32[2] i32[2]", {{"dim", int64_t{-3}}}),
            "take_along_dim_grad: dim -3; expected at least 0");
}

TEST(LinesInference, Upsample2d) {
  const ir::Attributes size = {{"size", Ints{6, 4}}};
  EXPECT_EQ(Infer("upsample2d", "f16[2,3,3,5]", size), "f16[2,3,6,4]");
  EXPECT_EQ(Infer("upsample2d", "f16[3,3,5]", size),
            "upsample2d: x is f16[3,3,5]; expected rank 4");
  EXPECT_EQ(Infer("upsample2d", "f32[2,3,0,5]", size),
            "upsample2d: images are [2,3,0,5]; expected height and width above 0");
  EXPECT_EQ(Infer("upsample2d", "f32[2,3,3,5]", {{"size", Ints{6, 0}}}),
            "upsample2d: size is [6,0]; expected 2 integers of at least 1");
  EXPECT_EQ(
      Infer("upsample2d", "f32[2,3,3,5]", {{"size", Ints{6, 4}}, {"mode", std::string("bicubic")}}),
      "upsample2d: mode is \"bicubic\"; expected one of \"nearest\", \"bilinear\"");
  EXPECT_EQ(Infer("upsample2d", "f32[2,3,3,5]",
                  {{"size", Ints{6, 4}}, {"scales", std::vector<double>{2, 0}}}),
            "upsample2d: scales; expected none, or two finite numbers above 0");
  EXPECT_EQ(
      Infer("upsample2d_grad", "f32[2,3,6,4]", {{"size", Ints{6, 4}}, {"shape", Ints{2, 3, 3, 5}}}),
      "f32[2,3,3,5]");
  EXPECT_EQ(
      Infer("upsample2d_grad", "f32[2,3,6,5]", {{"size", Ints{6, 4}}, {"shape", Ints{2, 3, 3, 5}}}),
      "upsample2d_grad: dy is f32[2,3,6,5]; expected the shape of y, [2,3,6,4]");
}

}  // namespace
}  // namespace halftone::testing
