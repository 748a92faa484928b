// Shapes and refusals of elementwise ops.
#include <gtest/gtest.h>

#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

TEST(UnaryInference, KeepsTheType) {
  EXPECT_EQ(Infer("exp", "bf16[2,0,3]"), "bf16[2,0,3]");
  EXPECT_EQ(Infer("relu", "f64[]"), "f64[]");
  EXPECT_EQ(Infer("neg", "i64[4]"), "i64[4]");
}

TEST(UnaryInference, Refuses) {
  EXPECT_EQ(Infer("exp", "i64[4]"), "exp: input 0 (x) is i64[4]; expected f64 f32 f16 bf16");
  EXPECT_EQ(Infer("relu", "bool[4]"), "relu: input 0 (x) is bool[4]; expected f64 f32 f16 bf16");
  EXPECT_EQ(Infer("neg", "u8[4]"), "neg: input 0 (x) is u8[4]; expected f64 f32 f16 bf16 i64 i32");
  EXPECT_EQ(Infer("gelu", "f32[4]", {{"approximate", std::string("sigmoid")}}),
            "gelu: approximate \"sigmoid\"; expected \"none\" or \"tanh\"");
  EXPECT_EQ(Infer("exp", "f32[4] f32[4]"), "exp: got 2 inputs; expected 1 (x)");
}

TEST(ActivationGradInference, OneType) {
  EXPECT_EQ(Infer("tanh_grad", "f16[2,3] f16[2,3]"), "f16[2,3]");
  EXPECT_EQ(Infer("tanh_grad", "f16[2,3] f32[2,3]"),
            "tanh_grad: dtypes of f16[2,3] and f32[2,3] differ; expected one dtype");
  EXPECT_EQ(Infer("relu_grad", "f32[2,3] f32[3]"),
            "relu_grad: shapes of f32[2,3] and f32[3] differ; expected one shape");
}

TEST(BinaryInference, Broadcasts) {
  EXPECT_EQ(Infer("add", "f32[2,3] f32[3]"), "f32[2,3]");
  EXPECT_EQ(Infer("mul", "f16[4,1] f16[5]"), "f16[4,5]");
  EXPECT_EQ(Infer("sub", "i32[] i32[2,1,3]"), "i32[2,1,3]");
  EXPECT_EQ(Infer("maximum", "u8[0,3] u8[1,3]"), "u8[0,3]");
}

TEST(BinaryInference, Refuses) {
  EXPECT_EQ(Infer("add", "f32[2,3] f32[2]"),
            "add: shapes [2,3] and [2] do not broadcast: 3 against 2 at axis -1; "
            "expected equal extents or 1");
  EXPECT_EQ(Infer("mul", "f32[2] f16[2]"),
            "mul: dtypes of f32[2] and f16[2] differ; expected one dtype");
  EXPECT_EQ(Infer("div", "i64[2] i64[2]"), "div: input 0 (a) is i64[2]; expected f64 f32 f16 bf16");
}

TEST(CompareInference, GivesBool) {
  EXPECT_EQ(Infer("less", "f32[2,3] f32[3]"), "bool[2,3]");
  EXPECT_EQ(Infer("equal", "bool[2] bool[2]"), "bool[2]");
  EXPECT_EQ(Infer("isfinite", "bf16[7]"), "bool[7]");
  EXPECT_EQ(Infer("logical_and", "bool[2,1] bool[3]"), "bool[2,3]");
  EXPECT_EQ(Infer("less", "f32[2] i64[2]"),
            "less: dtypes of f32[2] and i64[2] differ; expected one dtype");
  EXPECT_EQ(Infer("logical_not", "f32[2]"), "logical_not: input 0 (a) is f32[2]; expected bool");
}

TEST(WhereInference, BroadcastsAllThree) {
  EXPECT_EQ(Infer("where", "bool[2,1] f32[3] f32[]"), "f32[2,3]");
  EXPECT_EQ(Infer("where", "bool[2] i64[2] i64[2]"), "i64[2]");
  EXPECT_EQ(Infer("where", "bool[2] f32[2] f16[2]"),
            "where: dtypes of f32[2] and f16[2] differ; expected one dtype");
  EXPECT_EQ(Infer("where", "f32[2] f32[2] f32[2]"),
            "where: input 0 (condition) is f32[2]; expected bool");
  EXPECT_EQ(Infer("where", "bool[2] f32[3] f32[3]"),
            "where: shapes [2] and [3] do not broadcast: 2 against 3 at axis -1; "
            "expected equal extents or 1");
}

TEST(CastInference, TakesTheDType) {
  EXPECT_EQ(Infer("cast", "f32[2,3]", {{"to", DType::kU8}}), "u8[2,3]");
  EXPECT_EQ(Infer("cast", "f32[2,3]"), "cast: attribute to is absent; expected dtype");
}

}  // namespace
}  // namespace halftone::testing
