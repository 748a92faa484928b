// The checks of kernels see what they are there to see: planted kernels that are wrong.

#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/tests/support/literals.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

// A kernel over f32[4] from a function of its input and output.
class Planted : public kernels::Kernel {
 public:
  using Body = void (*)(float* x, float* y);
  explicit Planted(Body body) : body_(body) {}
  void Run(const kernels::KernelArgs& args) override {
    body_(static_cast<float*>(const_cast<void*>(args.inputs[0])),
          static_cast<float*>(args.outputs[0]));
  }

 private:
  Body body_;
};

std::string ErrorOf(Planted::Body body) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Expr y = -b.Input("x", {DType::kF32, Shape{4}});
  Planted kernel(body);
  return Message(RunKernel(kernel, *y.value().node, {Vec({1, 2, 3, 4}, DType::kF32)}).status());
}

TEST(RunKernelCheck, PassesARightKernel) {
  EXPECT_EQ(ErrorOf([](float* x, float* y) {
              for (int i = 0; i < 4; ++i) y[i] = -x[i];
            }),
            "");
}

TEST(RunKernelCheck, SeesAWriteBesideTheOutput) {
  EXPECT_EQ(ErrorOf([](float* x, float* y) {
              for (int i = 0; i < 5; ++i) y[i] = -x[i % 4];
            }),
            " writes beside output 0 of neg(%neg)");
  EXPECT_EQ(ErrorOf([](float* x, float* y) {
              for (int i = -1; i < 4; ++i) y[i] = -x[(i + 4) % 4];
            }),
            " writes beside output 0 of neg(%neg)");
}

TEST(RunKernelCheck, SeesAnElementLeftOut) {
  EXPECT_EQ(ErrorOf([](float* x, float* y) {
              for (int i = 0; i < 3; ++i) y[i] = -x[i];
            }),
            " leaves elements of output 0 of neg(%neg) unwritten, or reads what it did not write");
}

TEST(RunKernelCheck, SeesAnInputChanged) {
  EXPECT_EQ(ErrorOf([](float* x, float* y) {
              for (int i = 0; i < 4; ++i) y[i] = -x[i];
              x[2] = 0;
            }),
            " changes input 0 of neg(%neg)");
}

TEST(ToleranceCheck, ExactOpsHaveNone) {
  const Tensor want = Vec({1, 3}, DType::kF32);
  EXPECT_TRUE(AgreesWithReference("add", want, want));
  EXPECT_FALSE(AgreesWithReference("add", Vec({1, 3 + 0x1p-22}, DType::kF32), want));
}

TEST(ToleranceCheck, FunctionsMayMissByUnits) {
  const Tensor want = Vec({1, 1}, DType::kF32);
  EXPECT_TRUE(AgreesWithReference("tanh", Vec({1, 1 + 0x1p-22}, DType::kF32), want));
  EXPECT_FALSE(AgreesWithReference("tanh", Vec({1, 1 + 0x1p-18}, DType::kF32), want));
}

// A 16-bit result may be a neighbour, not two away.
TEST(ToleranceCheck, LowTypesMayBeNeighbours) {
  const Tensor want = Vec({1, 1}, DType::kBF16);
  EXPECT_TRUE(AgreesWithReference("tanh", Vec({1, 1 + 0x1p-7}, DType::kBF16), want));
  EXPECT_FALSE(AgreesWithReference("tanh", Vec({1, 1 + 0x1p-6}, DType::kBF16), want));
  const Tensor half = Vec({1, 1}, DType::kF16);
  EXPECT_TRUE(AgreesWithReference("sum", Vec({1, 1 + 0x1p-10}, DType::kF16), half));
  EXPECT_FALSE(AgreesWithReference("sum", Vec({1, 1 + 0x1p-9}, DType::kF16), half));
}

TEST(ToleranceCheck, InfinityAndNaNMustMatch) {
  const double nan = std::nan("");
  const Tensor want = Vec({INFINITY, nan}, DType::kF32);
  EXPECT_TRUE(AgreesWithReference("exp", want, want));
  EXPECT_FALSE(AgreesWithReference("exp", Vec({3e38, nan}, DType::kF32), want));
  EXPECT_FALSE(AgreesWithReference("exp", Vec({INFINITY, 0}, DType::kF32), want));
  EXPECT_FALSE(AgreesWithReference("exp", Vec({-INFINITY, nan}, DType::kF32), want));
}

TEST(ToleranceCheck, DTypesMustMatch) {
  EXPECT_FALSE(AgreesWithReference("exp", Vec({1}, DType::kF32), Vec({1}, DType::kF16)));
}

}  // namespace
}  // namespace halftone::testing
