// cos and sin of any f32, and the gradients made of them.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "halftone/core/philox.h"
#include "halftone/tests/kernels/each_kernel.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

OpCase CaseOf(const char* op, const std::vector<double>& x) {
  return Case(op, "angles", {Fixed(Shape{static_cast<int64_t>(x.size())}, x)});
}

// Computed with 50 decimal digits; the arguments are exact in f32.
TEST(Angle, F49_CosOfLargeArguments) {
  ForEachKernel(CaseOf("cos", {1e8, 1e9, 1e10, kInf, -kInf, std::nan("")}), DType::kF32,
                [](const std::vector<Tensor>& out, const std::string& what) {
                  EXPECT_NEAR(out[0].at(0), -0.363385089, 1e-7) << what;
                  EXPECT_NEAR(out[0].at(1), 0.837887181, 1e-7) << what;
                  EXPECT_NEAR(out[0].at(2), 0.873119623, 1e-7) << what;
                  for (int i : {3, 4, 5}) EXPECT_TRUE(std::isnan(out[0].at(i))) << what;
                });
}

// Of every size; odd counts, so that a vector has a tail. The C library reduces any f64.
TEST(Angle, F49_AgreesWithF64Everywhere) {
  std::vector<double> x = {0, -0.0, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-42, 38999, 39001, 2.6e7, 1e5};
  PhiloxStream random(7);
  for (int exponent = -40; exponent < 128; ++exponent) {
    for (int i = 0; i < 40; ++i) {
      x.push_back(std::ldexp(1 + static_cast<double>(random.Uniform()), exponent) *
                  (i % 2 == 0 ? 1 : -1));
    }
  }
  // Next to zeros of both.
  for (int i = 1; i < 3000; ++i) x.push_back(i * 1.5707963267948966);
  for (double& v : x) v = static_cast<float>(v);
  x.push_back(1);
  for (const char* op : {"cos", "sin"}) {
    const bool sine = op[0] == 's';
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const std::vector<Tensor> rounded = MakeCaseInputs(CaseOf(op, x), dtype);
      ForEachKernel(
          CaseOf(op, x), dtype, [&](const std::vector<Tensor>& out, const std::string& what) {
            double worst = 0, at = 0;
            for (size_t i = 0; i < x.size(); ++i) {
              const double v = rounded[0].at(static_cast<int64_t>(i));
              const double want = sine ? std::sin(v) : std::cos(v);
              const double error = std::abs(out[0].at(static_cast<int64_t>(i)) - want);
              if (!(error <= worst)) worst = error, at = v;
            }
            EXPECT_LT(worst, dtype == DType::kF32 ? 2e-7 : 2.1e-3) << what << " at " << at;
          });
    }
  }
}

TEST(Angle, SinKeepsSmallArguments) {
  ForEachKernel(CaseOf("sin", {1e-30, -1e-30, 1e-3, -0.0}), DType::kF32,
                [](const std::vector<Tensor>& out, const std::string& what) {
                  EXPECT_FLOAT_EQ(out[0].data<float>()[0], 1e-30f) << what;
                  EXPECT_FLOAT_EQ(out[0].data<float>()[1], -1e-30f) << what;
                  EXPECT_FLOAT_EQ(out[0].data<float>()[2], 9.9999983e-4f) << what;
                  EXPECT_TRUE(std::signbit(out[0].at(3))) << what;
                });
}

}  // namespace
}  // namespace halftone::testing
