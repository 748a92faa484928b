// Shapes of scaled_dot_product_attention and its gradient, and what they refuse.
#include <cmath>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr const char* kGrad = "scaled_dot_product_attention_grad";

std::string Of(const std::string& types, ir::Attributes attrs = {}) {
  if (!attrs.Has("scale")) attrs.Set("scale", 1.0);
  return Infer(kOp, types, std::move(attrs));
}

TEST(AttentionInference, Shapes) {
  EXPECT_EQ(Of("f32[2,4,5,8] f32[2,2,7,8] f32[2,2,7,3]"), "f32[2,4,5,3] f32[2,2,4,5]");
  EXPECT_EQ(Of("bf16[5,8] bf16[7,8] bf16[7,3] f32[5,7]"), "bf16[5,3] f32[2,5]");
  EXPECT_EQ(Of("f64[1,5,8] f64[1,0,8] f64[1,0,3] bool[1]"), "f64[1,5,3] f64[2,1,5]");
  EXPECT_EQ(
      Infer(kGrad, "f16[4,5,8] f16[2,7,8] f16[2,7,3] f16[4,5,3] f32[2,4,5] f16[4,5,3] bool[4,1,7]",
            {{"scale", 1.0}}),
      "f16[4,5,8] f16[2,7,8] f16[2,7,3]");
}

TEST(AttentionInference, Errors) {
  const std::string op = "scaled_dot_product_attention: ";
  EXPECT_EQ(Of("f32[8] f32[8] f32[8]"), op + "query is f32[8]; expected rank 2 or more");
  EXPECT_EQ(Of("f32[5,8] f32[1,7,8] f32[7,3]"), op + "key is f32[1,7,8]; expected rank 2");
  EXPECT_EQ(Of("f32[5,8] f16[7,8] f32[7,3]"),
            op + "key is f16[7,8]; expected f32, the dtype of query");
  EXPECT_EQ(Of("f32[2,1,5,8] f32[3,1,7,8] f32[2,1,7,3]"),
            op + "key is f32[3,1,7,8]; expected extent 2 along axis 0 of query f32[2,1,5,8]");
  EXPECT_EQ(Of("f32[4,5,8] f32[3,7,8] f32[3,7,3]"),
            op + "key is f32[3,7,8]; expected a divisor of the 4 heads of query f32[4,5,8]");
  EXPECT_EQ(Of("f32[2,0,5,8] f32[2,1,7,8] f32[2,1,7,3]"),
            op + "key is f32[2,1,7,8]; expected extent 0 along axis 1 of query f32[2,0,5,8]");
  EXPECT_EQ(Of("f32[5,8] f32[7,9] f32[7,3]"),
            op + "key is f32[7,9]; expected last extent 8, that of query f32[5,8]");
  EXPECT_EQ(Of("f32[5,8] f32[7,8] f32[6,3]"),
            op + "value is f32[6,3]; expected the heads and positions of key f32[7,8]");
  EXPECT_EQ(Of("f32[4,5,8] f32[4,7,8] f32[2,7,3]"),
            op + "value is f32[2,7,3]; expected the heads and positions of key f32[4,7,8]");
  EXPECT_EQ(Of("f16[5,8] f16[7,8] f16[7,3] f64[5,7]"),
            op + "attn_mask is f64[5,7]; expected bool or f32");
  EXPECT_EQ(Of("f32[5,8] f32[7,8] f32[7,3] bool[5,6]"),
            op + "attn_mask is bool[5,6]; expected a shape that broadcasts to [5,7], query's "
                 "positions by key's");
  EXPECT_EQ(Of("f32[5,8] f32[7,8] f32[7,3]", {{"dropout_p", 1.5}}),
            op + "dropout_p is 1.5; expected 0..1");
  EXPECT_EQ(Of("f32[5,8] f32[7,8] f32[7,3]", {{"scale", INFINITY}}),
            op + "scale is inf; expected a finite number");
  EXPECT_EQ(Infer(kGrad, "f32[5,8] f32[7,8] f32[7,3] f32[5,3] f32[5] f32[5,3]", {{"scale", 1.0}}),
            "scaled_dot_product_attention_grad: stats is f32[5]; expected f32[2,5] (two values per "
            "row of y)");
}

// Thirds of [2,5,3,4,8], as of a packed projection: [2,4,5,8] each.
ir::Attributes Packed(std::vector<int64_t> query) {
  return {{"query_view", std::move(query)},
          {"key_view", std::vector<int64_t>{2, 4, 5, 8, 480, 8, 96, 1, 32}},
          {"value_view", std::vector<int64_t>{2, 4, 5, 8, 480, 8, 96, 1, 64}},
          {"heads_last", true}};
}

TEST(AttentionInference, OperandsReadInPlace) {
  const std::string types = "f32[2,5,3,4,8] f32[2,5,3,4,8] f32[2,5,3,4,8]";
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, 8, 96, 1, 0})), "f32[2,5,4,8] f32[2,2,4,5]");
  const std::string op = "scaled_dot_product_attention: query_view ";
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, 8, 96, 1})),
            op + "has 8 numbers; expected extents, as many strides, and an offset");
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, 8, 96, 2, 0})),
            op + "has a last stride 2; expected 1");
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, -8, 96, 1, 0})),
            op + "has a stride -8; expected 0..1099511627776");
  // 480 + 3 * 8 + 4 * 96 + 7 = 895, of 960 elements.
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, 8, 96, 1, 64})), "f32[2,5,4,8] f32[2,2,4,5]");
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, 8, 96, 1, 65})),
            op + "ends at element 960; expected 0..959 of f32[2,5,3,4,8]");
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, 480, 8, 96, 1, -1})),
            op + "ends at element -1; expected 0..959 of f32[2,5,3,4,8]");
  const int64_t most = int64_t{1} << 40;
  EXPECT_EQ(Of(types, Packed({2, 4, 5, 8, most, most, most, 1, 0})),
            op + "ends at element 1099511627777; expected 0..959 of f32[2,5,3,4,8]");
  // Of no positions, wherever they are said to be.
  const int64_t far = int64_t{1} << 62;
  EXPECT_EQ(Of(types, {{"query_view", std::vector<int64_t>{2, 4, 0, 8, most, most, most, 1, far}},
                       {"key_view", std::vector<int64_t>{2, 4, 5, 8, 480, 8, 96, 1, 32}},
                       {"value_view", std::vector<int64_t>{2, 4, 5, 8, 480, 8, 96, 1, 64}}}),
            "f32[2,4,0,8] f32[2,2,4,0]");
  EXPECT_EQ(Of("f32[5,8] f32[7,8] f32[7,3]", {{"heads_last", true}}),
            "scaled_dot_product_attention: heads_last with a query of rank 2; expected at least 3");
  const std::vector<int64_t> apart = {3, 2, 1, 2, 4, 8, 100, 4, 4, 1, 0};
  EXPECT_EQ(
      Of("f32[999] f32[999] f32[999]",
         {{"query_view", apart}, {"key_view", apart}, {"value_view", apart}}),
      op + "has the stride 8 along axis 0; expected 200, so that the axes before the heads are "
           "one in memory");
}

}  // namespace
}  // namespace halftone::testing
