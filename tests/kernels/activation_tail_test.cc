// gelu, its tanh form, silu, mish, softplus and their gradients where they are small, and at
// infinity. Right values: the formulas in long double, written so that nothing cancels.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "halftone/tests/kernels/each_kernel.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

using Real = long double;

const Real kPi = std::acos(Real{-1});

struct Activation {
  const char* op;
  const char* form;  // of gelu; else empty
  Real (*value)(Real x);
  Real (*slope)(Real x);
  double zero_of_slope;
};

Real Sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real Phi(Real x) { return std::erfc(-x / std::sqrt(Real{2})) / 2; }
Real Gate(Real x) { return 2 * std::sqrt(2 / kPi) * (x + Real{0.044715L} * x * x * x); }
Real GateSlope(Real x) { return 2 * std::sqrt(2 / kPi) * (1 + 3 * Real{0.044715L} * x * x); }

// With n = e^2x + 2 e^x, n / (n + 2).
Real TanhOfSoftplus(Real x) {
  const Real e = std::exp(x), n = e * (e + 2);
  return n / (n + 2);
}

const Activation kActivations[] = {
    {"silu", "", [](Real x) { return x * Sigmoid(x); },
     [](Real x) { return Sigmoid(x) * (1 + x * Sigmoid(-x)); }, -1.2784645427610738},
    {"gelu", "none", [](Real x) { return x * Phi(x); },
     [](Real x) { return Phi(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi); },
     -0.7517915246935645},
    {"gelu", "tanh", [](Real x) { return x * Sigmoid(Gate(x)); },
     [](Real x) { return Sigmoid(Gate(x)) * (1 + x * Sigmoid(-Gate(x)) * GateSlope(x)); },
     -0.7524614220710163},
    {"mish", "", [](Real x) { return x * TanhOfSoftplus(x); },
     [](Real x) {
       const Real t = TanhOfSoftplus(x);
       return t + x * (1 - t) * (1 + t) * Sigmoid(x);
     },
     -1.1924312145154952},
};

OpCase CaseOf(const Activation& a, bool gradient, const std::vector<double>& x) {
  const Shape shape{static_cast<int64_t>(x.size())};
  std::vector<OpInput> inputs = {Fixed(shape, x)};
  if (gradient) inputs.push_back(Fixed(shape, std::vector<double>(x.size(), 1)));
  ir::Attributes attrs;
  if (a.form[0] != '\0') attrs.Set("approximate", std::string(a.form));
  return Case(std::string(a.op) + (gradient ? "_grad" : ""), a.form, inputs, attrs);
}

// From far below where any of them underflows to far above; and close to the zero of the slope.
std::vector<double> Sweep(double zero) {
  std::vector<double> x;
  for (int i = -120 * 64; i <= 20 * 64; ++i) x.push_back(i / 64.0);
  for (int i = -15 * 512; i <= 0; ++i) x.push_back(i / 512.0 + 1e-3);
  for (double d = 1e-7; d < 0.3; d *= 1.1) {
    x.push_back(zero + d);
    x.push_back(zero - d);
  }
  for (double tiny : {1e-3, 1e-10, 1e-38, 1e-42}) {
    x.push_back(tiny);
    x.push_back(-tiny);
  }
  for (double& v : x) v = static_cast<float>(v);
  return x;
}

void ExpectDigits(const Activation& a, bool gradient) {
  const std::vector<double> x = Sweep(a.zero_of_slope);
  ForEachKernel(CaseOf(a, gradient, x), DType::kF32,
                [&](const std::vector<Tensor>& out, const std::string& what) {
                  double worst = 0, at = 0;
                  for (size_t i = 0; i < x.size(); ++i) {
                    const Real want = gradient ? a.slope(x[i]) : a.value(x[i]);
                    const Real error = std::abs(out[0].data<float>()[i] - want);
                    // Where the result is subnormal two units of those.
                    const auto relative = static_cast<double>(
                        std::abs(want) < FLT_MIN ? error / (2 * FLT_TRUE_MIN) * 1e-5
                                                 : error / std::abs(want));
                    if (!(relative <= worst)) worst = relative, at = x[i];
                  }
                  EXPECT_LT(worst, 1e-5) << what << " at " << at;
                });
}

TEST(ActivationTail, F12_ValuesKeepFiveDigitsDownToUnderflow) {
  for (const Activation& a : kActivations) ExpectDigits(a, false);
}

TEST(ActivationTail, F12_GradientsKeepFiveDigitsDownToUnderflow) {
  for (const Activation& a : kActivations) ExpectDigits(a, true);
}

// The formulas in 50 decimal digits.
TEST(ActivationTail, F12_AtMinusFive) {
  const double gelu = -1.433257859e-6, tanh_form = -2.291796197e-7, tanh_slope = -1.546361988e-6;
  const auto near = [](double want, double relative) {
    return [=](const std::vector<Tensor>& out, const std::string& what) {
      EXPECT_NEAR(out[0].at(0) / want, 1, relative) << what;
    };
  };
  ForEachKernel(CaseOf(kActivations[1], false, {-5}), DType::kF32, near(gelu, 1e-5));
  ForEachKernel(CaseOf(kActivations[2], false, {-5}), DType::kF32, near(tanh_form, 1e-5));
  ForEachKernel(CaseOf(kActivations[2], true, {-5}), DType::kF32, near(tanh_slope, 1e-5));
}

TEST(ActivationTail, F12_LimitsAtInfinity) {
  const double nan = std::nan("");
  for (const Activation& a : kActivations) {
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      // -1e20 is -inf in f16.
      ForEachKernel(CaseOf(a, false, {-kInf, -1e20, kInf, nan, -0.0}), dtype,
                    [&](const std::vector<Tensor>& out, const std::string& what) {
                      for (int i : {0, 1, 4}) {
                        EXPECT_TRUE(out[0].at(i) == 0 && std::signbit(out[0].at(i)))
                            << what << ": " << out[0].at(i);
                      }
                      EXPECT_EQ(out[0].at(2), kInf) << what;
                      EXPECT_TRUE(std::isnan(out[0].at(3))) << what;
                    });
      ForEachKernel(CaseOf(a, true, {-kInf, -1e20, kInf, 1e20, nan}), dtype,
                    [&](const std::vector<Tensor>& out, const std::string& what) {
                      EXPECT_EQ(out[0].at(0), 0) << what;
                      EXPECT_EQ(out[0].at(1), 0) << what;
                      EXPECT_EQ(out[0].at(2), 1) << what;
                      EXPECT_EQ(out[0].at(3), 1) << what;
                      EXPECT_TRUE(std::isnan(out[0].at(4))) << what;
                    });
    }
  }
}

// The slope of softplus has no zero; 0 is as good a point to look around.
const Activation kSoftplus = {"softplus", "", [](Real x) { return std::log1p(std::exp(x)); },
                              Sigmoid, 0};

TEST(SoftplusTail, KeepsFiveDigitsDownToUnderflow) {
  ExpectDigits(kSoftplus, false);
  ExpectDigits(kSoftplus, true);
}

// e^-100 = 3.72e-44 is subnormal in f32: kept, within two of its units.
TEST(SoftplusTail, FarOut) {
  ForEachKernel(CaseOf(kSoftplus, false, {-100, -20, 0, 20, 100, 1e30}), DType::kF32,
                [](const std::vector<Tensor>& out, const std::string& what) {
                  EXPECT_NEAR(out[0].at(0), 3.7200759760208e-44, 2 * FLT_TRUE_MIN) << what;
                  EXPECT_NEAR(out[0].at(1), 2.0611536203144e-9, 2e-14) << what;
                  EXPECT_NEAR(out[0].at(2), 0.69314718055995, 2e-7) << what;
                  EXPECT_EQ(out[0].at(3), 20) << what;
                  EXPECT_EQ(out[0].at(4), 100) << what;
                  EXPECT_EQ(out[0].at(5), static_cast<double>(1e30f)) << what;
                });
  // 20 + e^-20, of which PyTorch leaves the second term away.
  ForEachKernel(CaseOf(kSoftplus, false, {20}), DType::kF64,
                [](const std::vector<Tensor>& out, const std::string& what) {
                  EXPECT_NEAR(out[0].at(0) - 20, 2.06115362e-9, 1e-14) << what;
                });
}

TEST(SoftplusTail, LimitsAtInfinity) {
  const double nan = std::nan("");
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    ForEachKernel(CaseOf(kSoftplus, false, {-kInf, kInf, nan}), dtype,
                  [](const std::vector<Tensor>& out, const std::string& what) {
                    EXPECT_EQ(out[0].at(0), 0) << what;
                    EXPECT_EQ(out[0].at(1), kInf) << what;
                    EXPECT_TRUE(std::isnan(out[0].at(2))) << what;
                  });
    ForEachKernel(CaseOf(kSoftplus, true, {-kInf, 0, kInf, nan}), dtype,
                  [](const std::vector<Tensor>& out, const std::string& what) {
                    EXPECT_EQ(out[0].at(0), 0) << what;
                    EXPECT_EQ(out[0].at(1), 0.5) << what;
                    EXPECT_EQ(out[0].at(2), 1) << what;
                    EXPECT_TRUE(std::isnan(out[0].at(3))) << what;
                  });
  }
}

}  // namespace
}  // namespace halftone::testing
