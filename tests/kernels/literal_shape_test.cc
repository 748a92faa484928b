// The oracle itself: reductions, shape and index ops pinned by numbers one can check by hand.

#include <gtest/gtest.h>

#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

const Tensor& TwoByThree() {
  static const Tensor x = T({2, 3}, {1, 2, 3, 4, 5, 6});
  return x;
}

TEST(Literal, Sum) {
  EXPECT_THAT(Apply("sum", {TwoByThree()}, {{"axes", Ints{0}}}), Is({5, 7, 9}));
  EXPECT_THAT(Apply("sum", {TwoByThree()}, {{"axes", Ints{-1}}}), Is({6, 15}));
  EXPECT_THAT(Apply("sum", {TwoByThree()}, {{"axes", Ints{}}}), Is({}, {21}));
  EXPECT_THAT(Apply("sum", {TwoByThree()}, {{"axes", Ints{1}}, {"keepdim", true}}),
              Is({2, 1}, {6, 15}));
  EXPECT_THAT(Apply("sum", {T({0, 2}, {})}, {{"axes", Ints{0}}}), Is({0, 0}));
  EXPECT_THAT(Apply("sum", {Vec({200, 100}, DType::kU8)}, {{"axes", Ints{}}}), Is({}, {44}));
}

TEST(Literal, Mean) {
  EXPECT_THAT(Apply("mean", {TwoByThree()}, {{"axes", Ints{0}}}), Is({2.5, 3.5, 4.5}));
  EXPECT_THAT(Apply("mean", {TwoByThree()}, {{"axes", Ints{}}}), Is({}, {3.5}));
  EXPECT_THAT(Apply("mean", {T({0, 2}, {})}, {{"axes", Ints{0}}}), Is({kNaN, kNaN}));
}

// Neither the sum nor the count may pass through f16, whose largest value is 65504.
TEST(Literal, LowReductionsKeepTheirRange) {
  const Tensor ones = Tensor::Full(DType::kF16, {100000}, 1);
  EXPECT_THAT(Apply("mean", {ones}, {{"axes", Ints{}}}), Is({}, {1}));
  EXPECT_THAT(Apply("mean", {Vec({40000, 40000, 40000}, DType::kF16)}, {{"axes", Ints{}}}),
              Is({}, {40000}));
  EXPECT_THAT(Apply("sum", {ones}, {{"axes", Ints{}}}), Is({}, {INFINITY}));
  const Tensor wide = Apply("sum", {ones}, {{"axes", Ints{}}, {"out", std::string("f32")}});
  EXPECT_EQ(wide.dtype(), DType::kF32);
  EXPECT_THAT(wide, Is({}, {100000}));
}

TEST(Literal, Max) {
  const Tensor x = T({2, 3}, {1, 7, 3, 4, kNaN, 6});
  EXPECT_THAT(Apply("max", {x}, {{"axes", Ints{0}}}), Is({4, kNaN, 6}));
  EXPECT_THAT(Apply("max", {x}, {{"axes", Ints{1}}, {"keepdim", true}}), Is({2, 1}, {7, kNaN}));
  EXPECT_THAT(Apply("max", {Vec({-3, -1}, DType::kI32)}, {{"axes", Ints{}}}), Is({}, {-1}));
}

TEST(Literal, Argmax) {
  const Tensor x = T({3, 3}, {1, 7, 3, 5, 5, 2, 4, kNaN, kNaN});
  EXPECT_THAT(Apply("argmax", {x}, {{"axis", int64_t{1}}}), Is({1, 0, 1}));
  EXPECT_THAT(Apply("argmax", {x}, {{"axis", int64_t{-2}}, {"keepdim", true}}),
              Is({1, 3}, {1, 2, 2}));
  EXPECT_EQ(Apply("argmax", {x}, {{"axis", int64_t{1}}}).dtype(), DType::kI64);
}

TEST(Literal, Broadcasting) {
  EXPECT_THAT(Apply("broadcast_to", {T({2, 1}, {1, 2})}, {{"shape", Ints{2, 3}}}),
              Is({2, 3}, {1, 1, 1, 2, 2, 2}));
  EXPECT_THAT(Apply("sum_to_shape", {TwoByThree()}, {{"shape", Ints{3}}}), Is({5, 7, 9}));
  EXPECT_THAT(Apply("sum_to_shape", {TwoByThree()}, {{"shape", Ints{2, 1}}}), Is({2, 1}, {6, 15}));
  EXPECT_THAT(Apply("sum_to_shape", {TwoByThree()}, {{"shape", Ints{}}}), Is({}, {21}));
}

TEST(Literal, ReshapeAndTranspose) {
  EXPECT_THAT(Apply("reshape", {TwoByThree()}, {{"shape", Ints{3, 2}}}),
              Is({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(Apply("transpose", {TwoByThree()}, {{"perm", Ints{1, 0}}}),
              Is({3, 2}, {1, 4, 2, 5, 3, 6}));
  // Axis k of the result is axis perm[k]: shape [4,2,3] from [2,3,4].
  Reals64 values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Tensor y = Apply("transpose", {T({2, 3, 4}, values)}, {{"perm", Ints{2, 0, 1}}});
  EXPECT_EQ(y.shape(), Shape({4, 2, 3}));
  // y[1,1,2] = x[1,2,1] = 1*12 + 2*4 + 1
  EXPECT_EQ(y.at(1 * 6 + 1 * 3 + 2), 21);
}

TEST(Literal, Slice) {
  const ir::Attributes range = {
      {"starts", Ints{0, 1}}, {"limits", Ints{2, 3}}, {"strides", Ints{1, 1}}};
  EXPECT_THAT(Apply("slice", {TwoByThree()}, range), Is({2, 2}, {2, 3, 5, 6}));
  const ir::Attributes steps = {{"starts", Ints{1}}, {"limits", Ints{6}}, {"strides", Ints{2}}};
  EXPECT_THAT(Apply("slice", {Vec({0, 1, 2, 3, 4, 5})}, steps), Is({1, 3, 5}));
  ir::Attributes grad = steps;
  grad.Set("shape", Ints{6});
  EXPECT_THAT(Apply("slice_grad", {Vec({7, 8, 9})}, grad), Is({0, 7, 0, 8, 0, 9}));
}

TEST(Literal, Concat) {
  EXPECT_THAT(Apply("concat", {T({2, 1}, {1, 2}), T({2, 2}, {3, 4, 5, 6})}, {{"axis", int64_t{1}}}),
              Is({2, 3}, {1, 3, 4, 2, 5, 6}));
  EXPECT_THAT(
      Apply("concat", {T({1, 2}, {1, 2}), T({2, 2}, {3, 4, 5, 6})}, {{"axis", int64_t{-2}}}),
      Is({3, 2}, {1, 2, 3, 4, 5, 6}));
}

TEST(Literal, Gather) {
  const Tensor idx = Vec({2, 0, 2}, DType::kI64);
  EXPECT_THAT(Apply("gather", {Vec({10, 11, 12}), idx}), Is({12, 10, 12}));
  EXPECT_THAT(Apply("gather", {TwoByThree(), idx}, {{"axis", int64_t{1}}}),
              Is({2, 3}, {3, 1, 3, 6, 4, 6}));
  // Rows 0 and 2 collect: 2 twice.
  EXPECT_THAT(Apply("gather_grad", {Vec({1, 2, 4}), idx}, {{"dim", int64_t{4}}}), Is({2, 0, 5, 0}));
}

TEST(Literal, Embedding) {
  const Tensor table = T({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor ids = T({2, 2}, {0, 2, 2, 1}, DType::kI32);
  EXPECT_THAT(Apply("embedding", {table, ids}, {{"padding_idx", int64_t{2}}}),
              Is({2, 2, 2}, {1, 2, 5, 6, 5, 6, 3, 4}));
  const Tensor dy = T({2, 2, 2}, {1, 1, 10, 20, 100, 200, 3, 3});
  EXPECT_THAT(Apply("embedding_grad", {dy, ids}, {{"rows", int64_t{3}}}),
              Is({3, 2}, {1, 1, 3, 3, 110, 220}));
  EXPECT_THAT(
      Apply("embedding_grad", {dy, ids}, {{"rows", int64_t{3}}, {"padding_idx", int64_t{2}}}),
      Is({3, 2}, {1, 1, 3, 3, 0, 0}));
}

TEST(Literal, EmbeddingGradRows) {
  const Tensor ids = T({2, 2}, {5, 2, 5, 7}, DType::kI32);
  const Tensor dy = T({2, 2, 2}, {1, 1, 10, 20, 100, 200, 3, 3});
  const auto rows = [&](int64_t padding) {
    return TryOp("embedding_grad_rows", {dy, ids},
                 {{"rows", int64_t{9}}, {"padding_idx", padding}});
  };
  ASSERT_TRUE(rows(-1).ok());
  EXPECT_THAT((*rows(-1))[0], Is({4, 2}, {10, 20, 101, 201, 3, 3, 0, 0}));
  EXPECT_THAT((*rows(-1))[1], Is({4}, {2, 5, 7, -1}));
  EXPECT_THAT((*rows(5))[0], Is({4, 2}, {10, 20, 3, 3, 0, 0, 0, 0}));
  EXPECT_THAT((*rows(5))[1], Is({4}, {2, 7, -1, -1}));
}

// 4,096 contributions of 1 in f16: a 16-bit accumulator stops at 2048.
TEST(Literal, ScatterAddsWide) {
  const Tensor dy = Tensor::Full(DType::kF16, {4096, 1}, 1);
  const Tensor ids = Tensor::Zeros(DType::kI64, {4096});
  EXPECT_THAT(Apply("embedding_grad", {dy, ids}, {{"rows", int64_t{1}}}), Is({1, 1}, {4096}));
  EXPECT_THAT(Apply("gather_grad", {dy, ids}, {{"dim", int64_t{1}}}), Is({1, 1}, {4096}));
}

TEST(Literal, IndicesOutOfRangeAreFaults) {
  const Tensor table = T({3, 2}, {1, 2, 3, 4, 5, 6});
  for (double id : {3.0, -1.0}) {
    const Tensor ids = Vec({0, id, 7}, DType::kI64);
    const std::string expected = Concat(": index ", id, " at [1] out of range; expected 0..2");
    for (const char* op : {"embedding", "gather"}) {
      const auto result = TryOp(op, {table, ids});
      EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_EQ(Message(result.status()), Concat(op, "(%", op, ")", expected));
    }
    const Tensor dy = T({3, 2}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(Message(TryOp("embedding_grad", {dy, ids}, {{"rows", int64_t{3}}}).status()),
              "embedding_grad(%embedding_grad)" + expected);
    EXPECT_EQ(Message(TryOp("gather_grad", {dy, ids}, {{"dim", int64_t{3}}}).status()),
              "gather_grad(%gather_grad)" + expected);
  }
}

}  // namespace
}  // namespace halftone::testing
