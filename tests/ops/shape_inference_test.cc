// Shapes and refusals of reductions, shape ops and index ops.
#include <gtest/gtest.h>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

ir::Attributes Axes(Ints axes, bool keepdim = false) {
  return {{"axes", std::move(axes)}, {"keepdim", keepdim}};
}
ir::Attributes ShapeIs(Ints shape) { return {{"shape", std::move(shape)}}; }
ir::Attributes Axis(int64_t axis) { return {{"axis", axis}}; }

TEST(ReductionInference, DropsOrKeepsAxes) {
  EXPECT_EQ(Infer("sum", "f32[2,3,4]", Axes({1})), "f32[2,4]");
  EXPECT_EQ(Infer("mean", "bf16[2,3,4]", Axes({-1, 0}, true)), "bf16[1,3,1]");
  EXPECT_EQ(Infer("max", "i64[2,3]", Axes({})), "i64[]");
  EXPECT_EQ(Infer("sum", "f32[]", Axes({})), "f32[]");
  EXPECT_EQ(Infer("argmax", "f16[2,3]", Axis(-1)), "i64[2]");
  EXPECT_EQ(Infer("sum", "f16[2]", {{"axes", Ints{}}, {"out", std::string("f32")}}), "f32[]");
}

TEST(ReductionInference, Refuses) {
  EXPECT_EQ(Infer("sum", "f32[8,16]", Axes({5})),
            "sum: axis 5 out of range for f32[8,16]; expected -2..1");
  EXPECT_EQ(Infer("mean", "f32[8,16]", Axes({1, -1})),
            "mean: axis 1 of f32[8,16] is listed twice; expected each axis once");
  EXPECT_EQ(Infer("max", "f32[0,4]", Axes({0})),
            "max: no maximum over the empty axes of f32[0,4]; expected extents above 0");
  EXPECT_EQ(Infer("argmax", "f32[4,0]", Axis(1)),
            "argmax: no maximum over the empty axis 1 of f32[4,0]; expected an extent above 0");
  EXPECT_EQ(Infer("argmax", "f32[]", Axis(0)),
            "argmax: axis 0 out of range for f32[]; expected no axis");
  EXPECT_EQ(Infer("sum", "f64[2]", {{"axes", Ints{}}, {"out", std::string("f32")}}),
            "sum: out \"f32\" for f64; "
            "expected \"\", or \"f32\" where the dtype is f32, f16 or bf16");
  EXPECT_EQ(Infer("mean", "f16[2]", {{"axes", Ints{}}, {"out", std::string("bf16")}}),
            "mean: out \"bf16\" for f16; "
            "expected \"\", or \"f32\" where the dtype is f32, f16 or bf16");
  EXPECT_EQ(Infer("mean", "i64[2]", Axes({})),
            "mean: input 0 (x) is i64[2]; expected f64 f32 f16 bf16");
}

TEST(BroadcastInference, TakesTheShape) {
  EXPECT_EQ(Infer("broadcast_to", "f32[3,1]", ShapeIs({2, 3, 4})), "f32[2,3,4]");
  EXPECT_EQ(Infer("sum_to_shape", "f32[2,3,4]", ShapeIs({3, 1})), "f32[3,1]");
  EXPECT_EQ(Infer("broadcast_to", "f32[3]", ShapeIs({3, 2})),
            "broadcast_to: f32[3] does not broadcast to [3,2]; "
            "expected extents equal or 1, aligned at the last axis");
  EXPECT_EQ(Infer("sum_to_shape", "f32[3,2]", ShapeIs({3})),
            "sum_to_shape: [3] does not broadcast to f32[3,2]; "
            "expected extents equal or 1, aligned at the last axis");
  EXPECT_EQ(Infer("broadcast_to", "f32[3]", ShapeIs({-1, 3})),
            "broadcast_to: shape [-1,3] has extent -1; expected 0 or more");
}

TEST(ReshapeInference, KeepsTheCount) {
  EXPECT_EQ(Infer("reshape", "f32[2,6]", ShapeIs({3, 4})), "f32[3,4]");
  EXPECT_EQ(Infer("reshape", "f32[2,3]", ShapeIs({4, 2})),
            "reshape: f32[2,3] has 6 elements, [4,2] has 8; expected as many");
}

TEST(TransposeInference, Permutes) {
  EXPECT_EQ(Infer("transpose", "f32[2,3,4]", {{"perm", Ints{2, 0, 1}}}), "f32[4,2,3]");
  for (const Ints& perm : {Ints{0, 0, 1}, Ints{0, 1}, Ints{0, 1, 3}, Ints{-1, 0, 1}}) {
    std::string text;
    for (int64_t axis : perm) text += (text.empty() ? "" : ",") + std::to_string(axis);
    EXPECT_EQ(Infer("transpose", "f32[2,3,4]", {{"perm", perm}}),
              "transpose: perm [" + text + "] for f32[2,3,4]; expected each axis 0..2 once");
  }
}

ir::Attributes Range(Ints starts, Ints limits, Ints strides) {
  return {{"starts", std::move(starts)},
          {"limits", std::move(limits)},
          {"strides", std::move(strides)}};
}

TEST(SliceInference, CountsSteps) {
  EXPECT_EQ(Infer("slice", "f32[9,4]", Range({1, 0}, {8, 4}, {3, 1})), "f32[3,4]");
  EXPECT_EQ(Infer("slice", "f32[9]", Range({4}, {4}, {1})), "f32[0]");
  ir::Attributes grad = Range({1, 0}, {8, 4}, {3, 1});
  grad.Set("shape", Ints{9, 4});
  EXPECT_EQ(Infer("slice_grad", "f32[3,4]", grad), "f32[9,4]");
  EXPECT_EQ(Infer("slice_grad", "f32[2,4]", grad),
            "slice_grad: dy is f32[2,4]; expected the slice's shape [3,4]");
}

TEST(SliceInference, Refuses) {
  const std::string rule = "; expected 0 <= start <= limit <= 9 and stride >= 1";
  EXPECT_EQ(Infer("slice", "f32[9]", Range({0}, {10}, {1})), "slice: axis 0: 0:10:1 of [9]" + rule);
  EXPECT_EQ(Infer("slice", "f32[9]", Range({-1}, {9}, {1})), "slice: axis 0: -1:9:1 of [9]" + rule);
  EXPECT_EQ(Infer("slice", "f32[9]", Range({5}, {4}, {1})), "slice: axis 0: 5:4:1 of [9]" + rule);
  EXPECT_EQ(Infer("slice", "f32[9]", Range({0}, {9}, {0})), "slice: axis 0: 0:9:0 of [9]" + rule);
  EXPECT_EQ(Infer("slice", "f32[9,2]", Range({0}, {9}, {1})),
            "slice: 1 starts, 1 limits and 1 strides for [9,2]; expected 2 of each");
}

TEST(ConcatInference, AddsAlongTheAxis) {
  EXPECT_EQ(Infer("concat", "f32[2,3] f32[2,4] f32[2,0]", Axis(1)), "f32[2,7]");
  EXPECT_EQ(Infer("concat", "i64[2] i64[3]", Axis(-1)), "i64[5]");
  EXPECT_EQ(Infer("concat", "", Axis(0)), "concat: no input; expected at least one");
  EXPECT_EQ(Infer("concat", "f32[2,3] f32[3,3]", Axis(1)),
            "concat: x1 is f32[3,3], x0 is f32[2,3]; expected equal extents except along axis 1");
  EXPECT_EQ(Infer("concat", "f32[2,3] f16[2,3]", Axis(1)),
            "concat: dtypes of f32[2,3] and f16[2,3] differ; expected one dtype");
  EXPECT_EQ(Infer("concat", "f32[2,3]", Axis(2)),
            "concat: axis 2 out of range for f32[2,3]; expected -2..1");
}

TEST(GatherInference, PutsIndicesInPlaceOfTheAxis) {
  EXPECT_EQ(Infer("gather", "f32[5,6,7] i64[2,3]", Axis(1)), "f32[5,2,3,7]");
  EXPECT_EQ(Infer("gather", "f32[5] i32[]"), "f32[]");
  EXPECT_EQ(
      Infer("gather_grad", "f32[5,2,3,7] i64[2,3]", {{"axis", int64_t{1}}, {"dim", int64_t{6}}}),
      "f32[5,6,7]");
  EXPECT_EQ(Infer("gather", "f32[5] f32[2]"), "gather: input 1 (idx) is f32[2]; expected i64 i32");
  EXPECT_EQ(Infer("gather", "f32[5] i64[2]", Axis(1)),
            "gather: axis 1 out of range for f32[5]; expected -1..0");
  EXPECT_EQ(Infer("gather_grad", "f32[5,4] i64[3]", {{"axis", int64_t{1}}, {"dim", int64_t{6}}}),
            "gather_grad: dy is f32[5,4], idx [3]; expected idx's extents at axis 1 of dy");
  EXPECT_EQ(Infer("gather_grad", "f32[3] i64[3]", {{"axis", int64_t{1}}, {"dim", int64_t{6}}}),
            "gather_grad: axis 1 out of range for rank 1; expected -1..0");
  EXPECT_EQ(Infer("gather_grad", "f32[3] i64[3]", {{"dim", int64_t{-6}}}),
            "gather_grad: dim -6; expected at least 0");
  EXPECT_EQ(Infer("gather_grad", "f32[3] i64[3,4]", {{"dim", int64_t{6}}}),
            "gather_grad: dy is f32[3], idx [3,4]; expected dy of at least idx's rank");
  EXPECT_EQ(Infer("gather", "f32[2,2,2,2,2] i64[1,1,1,1,1]"),
            "gather: shape [1,1,1,1,1,2,2,2,2] has rank 9; expected at most 8");
}

TEST(EmbeddingInference, RowsByIds) {
  EXPECT_EQ(Infer("embedding", "bf16[9,4] i64[2,3]"), "bf16[2,3,4]");
  EXPECT_EQ(Infer("embedding_grad", "bf16[2,3,4] i64[2,3]",
                  {{"rows", int64_t{9}}, {"out", std::string("f32")}}),
            "f32[9,4]");
  EXPECT_EQ(Infer("embedding", "f32[9] i64[2]"), "embedding: table is f32[9]; expected rank 2");
  EXPECT_EQ(Infer("embedding", "f32[9,4] f32[2]"),
            "embedding: input 1 (idx) is f32[2]; expected i64 i32");
  EXPECT_EQ(Infer("embedding_grad", "f32[2,4] i64[3]", {{"rows", int64_t{9}}}),
            "embedding_grad: dy is f32[2,4], idx [3]; expected idx's extents and one more in dy");
  EXPECT_EQ(Infer("embedding_grad", "f32[3,4] i64[3]", {{"rows", int64_t{-9}}}),
            "embedding_grad: rows -9; expected at least 0");
  EXPECT_EQ(Infer("embedding_grad_rows", "f16[2,3,4] i32[2,3]",
                  {{"rows", int64_t{9}}, {"out", std::string("f32")}}),
            "f32[6,4] i64[6]");
  EXPECT_EQ(Infer("embedding_grad_rows", "f32[2,4] i64[3]", {{"rows", int64_t{9}}}),
            "embedding_grad_rows: dy is f32[2,4], idx [3]; expected idx's extents and one more in "
            "dy");
}

}  // namespace
}  // namespace halftone::testing
