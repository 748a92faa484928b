// Shapes of lstm, gru and their gradients, and what they refuse.
#include "halftone/tests/ops/infer_op.h"

namespace halftone::testing {
namespace {

TEST(RecurrenceInference, Shapes) {
  EXPECT_EQ(Infer("lstm", "f32[7,2,12] f32[12,3] f32[2,3] f32[2,3]"),
            "f32[7,2,3] f32[2,3] f32[7,2,3] f32[7,2,12]");
  EXPECT_EQ(Infer("lstm", "bf16[7,2,12] bf16[12,2] bf16[2,2] f32[2,3] bf16[2,3]"),
            "bf16[7,2,2] f32[2,3] f32[7,2,3] bf16[7,2,12]");
  EXPECT_EQ(
      Infer("lstm_grad", "f16[7,2,12] f16[12,2] f32[2,3] f32[7,2,3] f16[7,2,2] f32[2,3] f16[2,3]"),
      "f16[7,2,12] f16[2,2] f32[2,3] f16[7,2,2]");
  EXPECT_EQ(Infer("gru", "f16[7,2,9] f16[9,3] f16[2,3] f32[9]"),
            "f16[7,2,3] f16[7,2,9] f16[7,2,3]");
  EXPECT_EQ(Infer("gru", "f64[1,0,3] f64[3,1] f64[0,1]"), "f64[1,0,1] f64[1,0,3] f64[1,0,1]");
  EXPECT_EQ(Infer("gru_grad", "f32[7,2,9] f32[9,3] f32[2,3] f32[7,2,3] f32[7,2,3] f32[7,2,3]"),
            "f32[7,2,9] f32[2,3] f32[7,2,9]");
}

TEST(RecurrenceInference, Errors) {
  EXPECT_EQ(Infer("lstm", "f32[2,12] f32[12,3] f32[2,3] f32[2,3]"),
            "lstm: x is f32[2,12]; expected rank 3");
  EXPECT_EQ(Infer("lstm", "f32[0,2,12] f32[12,3] f32[2,3] f32[2,3]"),
            "lstm: x is f32[0,2,12]; expected at least one step");
  EXPECT_EQ(Infer("lstm", "f32[7,2,10] f32[10,3] f32[2,3] f32[2,3]"),
            "lstm: x is f32[7,2,10]; expected last extent 4 H, with H at least 1");
  EXPECT_EQ(Infer("lstm", "f32[7,2,12] f32[8,3] f32[2,3] f32[2,3]"),
            "lstm: w is f32[8,3]; expected 12 rows, as x f32[7,2,12] has columns");
  EXPECT_EQ(Infer("lstm", "f32[7,2,12] f16[12,3] f32[2,3] f32[2,3]"),
            "lstm: w is f16[12,3]; expected f32, the dtype of x");
  EXPECT_EQ(Infer("lstm", "f32[7,2,12] f32[12,2] f32[2,2] f32[2,3]"),
            "lstm: w is f32[12,2]; expected [12,3], or a projection w_hr");
  EXPECT_EQ(Infer("lstm", "f32[7,2,12] f32[12,3] f32[1,3] f32[2,3]"),
            "lstm: h0 is f32[1,3]; expected f32[2,3] (batch of x, columns of w)");
  EXPECT_EQ(Infer("lstm", "bf16[7,2,12] bf16[12,3] bf16[2,3] bf16[2,3]"),
            "lstm: input 3 (c0) is bf16[2,3]; expected f64 f32");
  EXPECT_EQ(Infer("lstm", "f32[7,2,12] f32[12,2] f32[2,2] f32[2,3] f32[3,2]"),
            "lstm: w_hr is f32[3,2]; expected f32[2,3] (from the cells to the columns of w)");
  EXPECT_EQ(Infer("lstm_grad", "f32[7,2,12] f32[12,3] f32[2,3] f32[7,2,3] f32[6,2,3] f32[2,3]"),
            "lstm_grad: dh is f32[6,2,3]; expected f32[7,2,3] (steps and batch of gates, columns "
            "of w)");
  EXPECT_EQ(Infer("gru", "f32[7,2,10] f32[10,3] f32[2,3]"),
            "gru: x is f32[7,2,10]; expected last extent 3 H, with H at least 1");
  EXPECT_EQ(Infer("gru", "f32[7,2,9] f32[9,2] f32[2,2]"), "gru: w is f32[9,2]; expected [9,3]");
  EXPECT_EQ(Infer("gru", "f32[7,2,9] f32[9,3] f32[2,3] f32[3]"),
            "gru: b is f32[3]; expected f32[9] (a number for each gate)");
  EXPECT_EQ(Infer("gru_grad", "f32[7,2,9] f32[9,3] f32[2,3] f32[7,2,3] f32[7,2,9] f32[7,2,3]"),
            "gru_grad: s is f32[7,2,9]; expected f32[7,2,3] (steps and batch of gates, columns of "
            "w)");
}

}  // namespace
}  // namespace halftone::testing
