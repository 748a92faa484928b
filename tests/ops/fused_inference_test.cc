// Bodies of fused nodes: what they are written as, and what is refused.
#include <gtest/gtest.h>

#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

std::string InferBody(const std::string& types, const std::string& body) {
  return Infer("fused", types, {{"body", body}});
}

// The text again, or what is wrong with it.
std::string Again(const std::string& text, int num_inputs = 2) {
  const auto body = ops::FusedBody::Parse(text, num_inputs);
  return body.ok() ? body->ToString() : Message(body.status());
}

TEST(FusedBody, TextAndBack) {
  for (const std::string text :
       {"add(%0, %1)", "relu(mul(add(%0, %1), %0))", "sub(cast(%0) {to=bf16}, gelu(%1))",
        "add(gelu(%0) {approximate=tanh}, %1)",
        "add(hardtanh(%0) {min_val=-0.5, max_val=2.5}, %1)"}) {
    EXPECT_EQ(Again(text), text);
  }
  EXPECT_EQ(Again("relu( add(%1,%0) )"), "relu(add(%1, %0))");
  EXPECT_EQ(Again("add(gelu(%0) {approximate=\"tanh\"}, gelu(%1) {approximate=none})"),
            "add(gelu(%0) {approximate=tanh}, gelu(%1))");
}

TEST(FusedBody, RefusesWhatIsNoBody) {
  EXPECT_EQ(Again(""), "line 1, column 1: got end of text; expected an input or an op");
  EXPECT_EQ(Again("%0", 1), "computes nothing; expected an op");
  EXPECT_EQ(Again("relu(%0)"), "does not read %1");
  EXPECT_EQ(Again("add(%0, %2)"), "line 1, column 9: got %2; expected %0 to %1");
  EXPECT_EQ(Again("add(%0, %x)"), "line 1, column 9: got %x; expected %0 to %1");
  EXPECT_EQ(Again("add(%0, %1"), "line 1, column 11: got end of text; expected ','");
  EXPECT_EQ(Again("add(%0, %1) relu"), "line 1, column 13: got 'relu'; expected the end");
  EXPECT_EQ(Again("add(%0, %1, %1)"), "line 1, column 13: got %1; expected ')'");
  EXPECT_EQ(Again("addd(%0, %1)"), "line 1, column 1: got 'addd'; expected an op");
  EXPECT_EQ(Again("matmul(%0, %1)"), "line 1, column 1: matmul is not elementwise");
  EXPECT_EQ(Again("dropout(%0)", 1), "line 1, column 1: dropout is random");
  EXPECT_EQ(Again("fused(%0)", 1), "line 1, column 1: fused has a body of its own");
  EXPECT_EQ(Again("relu(%0) {slope=1}", 1), "relu: has no attribute \"slope\"; expected none");
  EXPECT_EQ(Again("cast(%0)", 1), "cast: attribute to is absent; expected dtype");
  EXPECT_EQ(Again("cast(%0) {to=3}", 1), "cast: attribute to is int 3; expected dtype");
  EXPECT_EQ(Again("relu(%0)", 0), "has 0 inputs; expected 1 to 12");
  EXPECT_EQ(Again("relu(%0)", 13), "has 13 inputs; expected 1 to 12");
}

// Text from outside may be as deep as it likes.
TEST(FusedBody, BoundsItsSize) {
  const auto nested = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "relu(";
    return text + "%0" + std::string(static_cast<size_t>(count), ')');
  };
  EXPECT_EQ(Again(nested(32), 1), nested(32));
  EXPECT_EQ(Again(nested(33), 1), "has more than 32 ops");
  EXPECT_EQ(Again(nested(100000), 1), "has more than 32 ops");
}

TEST(FusedInference, GivesTheTypeOfItsLastOp) {
  EXPECT_EQ(InferBody("f32[4,3] f32[3]", "relu(add(%0, %1))"), "f32[4,3]");
  EXPECT_EQ(InferBody("bf16[4,3] f32[]", "mul(cast(%0) {to=f32}, %1)"), "f32[4,3]");
  EXPECT_EQ(InferBody("f16[4] f16[4]", "less(%0, neg(%1))"), "bool[4]");
}

TEST(FusedInference, Refuses) {
  EXPECT_EQ(InferBody("f32[4] f16[4]", "relu(add(%0, %1))"),
            "fused: add: dtypes of f32[4] and f16[4] differ; expected one dtype");
  EXPECT_EQ(InferBody("f32[4,3] f32[3]", "add(%0, relu(%1))"),
            "fused: relu gives f32[3]; expected the shape and layout of the result, f32[4,3]");
  EXPECT_EQ(InferBody("f32[4,3] f32[4,1]", "add(%0, %1)"),
            "fused: input 1 is f32[4,1]; expected the type of the result, f32[4,3], its last "
            "extents in memory, or one element");
  EXPECT_EQ(InferBody("f32[5,4,3] f32[4,3] f32[3]", "add(add(%0, %1), %2)"),
            "fused: input 2 has 3 elements; expected 12 as another input that repeats");
  EXPECT_EQ(InferBody("f32[4]", "relu"),
            "fused: body line 1, column 5: got end of text; expected '('");
}

}  // namespace
}  // namespace halftone::testing
