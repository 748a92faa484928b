// Elementwise functions where a formula taken literally would lose its digits, and at infinity.
// Right values: formulas in long double in which nothing cancels. gelu, silu, mish and softplus
// have tests of their own (activation_tail_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "halftone/tests/kernels/each_kernel.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

using Real = long double;

constexpr Real kScale = 1.0507009873554804934L, kAlpha = 1.6732632423543772848L;

struct Function {
  const char* op;
  ir::Attributes attrs;
  Real (*value)(Real x);
  Real (*slope)(Real x);  // of op + "_grad"; null: the gradient is a formula of other ops
};

const std::vector<Function>& OfAnyNumber() {
  static const auto* const functions = new std::vector<Function>{
      {"logsigmoid",
       {},
       [](Real x) { return std::min(x, Real{0}) - std::log1p(std::exp(-std::abs(x))); },
       [](Real x) { return 1 / (1 + std::exp(x)); }},
      {"selu",
       {},
       [](Real x) { return kScale * (x > 0 ? x : kAlpha * std::expm1(x)); },
       [](Real x) { return kScale * (x > 0 ? 1 : kAlpha * std::exp(x)); }},
      {"elu",
       {{"alpha", 2.0}},
       [](Real x) { return x > 0 ? x : 2 * std::expm1(x); },
       [](Real x) { return x > 0 ? 1 : 2 * std::exp(x); }},
      {"softsign",
       {},
       [](Real x) { return x / (1 + std::abs(x)); },
       [](Real x) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); }},
      {"hardsigmoid",
       {},
       [](Real x) { return std::clamp<Real>(x + 3, 0, 6) / 6; },
       [](Real x) { return x <= -3 || x >= 3 ? Real{0} : Real{1} / 6; }},
      {"hardswish",
       {},
       [](Real x) { return x * std::clamp<Real>(x + 3, 0, 6) / 6; },
       [](Real x) { return x <= -3  ? Real{0}
                           : x >= 3 ? Real{1}
                                    : (2 * x + 3) / 6; }},
      {"expm1", {}, [](Real x) { return std::expm1(x); }, nullptr},
  };
  return *functions;
}

OpCase CaseOf(const Function& f, bool gradient, const std::vector<double>& x) {
  const Shape shape{static_cast<int64_t>(x.size())};
  std::vector<OpInput> inputs = {Fixed(shape, x)};
  if (gradient) inputs.push_back(Fixed(shape, std::vector<double>(x.size(), 1)));
  return Case(std::string(f.op) + (gradient ? "_grad" : ""), "digits", inputs, f.attrs);
}

void ExpectDigits(const Function& f, bool gradient, const std::vector<double>& x) {
  ForEachKernel(CaseOf(f, gradient, x), DType::kF32,
                [&](const std::vector<Tensor>& out, const std::string& what) {
                  double worst = 0, at = 0;
                  for (size_t i = 0; i < x.size(); ++i) {
                    const Real want = gradient ? f.slope(x[i]) : f.value(x[i]);
                    const Real error = std::abs(out[0].data<float>()[i] - want);
                    if (error == 0) continue;
                    // Where the result is subnormal two units of those.
                    const auto relative = static_cast<double>(
                        std::abs(want) < FLT_MIN ? error / (2 * FLT_TRUE_MIN) * 1e-5
                                                 : error / std::abs(want));
                    if (!(relative <= worst)) worst = relative, at = x[i];
                  }
                  EXPECT_LT(worst, 1e-5) << what << " at " << at;
                });
}

// From far below where e^x underflows to below where it overflows; around 0, and around the ends of
// pieces and zeros of slopes.
std::vector<double> Sweep() {
  std::vector<double> x;
  for (int i = -120 * 64; i <= 88 * 64; ++i) x.push_back(i / 64.0);
  for (double d = 1e-44; d < 1; d *= 1.7) {
    for (double at : {0.0, -1.5, -3.0, 3.0}) {
      x.push_back(at + d);
      x.push_back(at - d);
    }
  }
  for (double& v : x) v = static_cast<float>(v);
  return x;
}

TEST(ElementwiseDigits, ValuesKeepFive) {
  for (const Function& f : OfAnyNumber()) ExpectDigits(f, false, Sweep());
}

TEST(ElementwiseDigits, GradientsKeepFive) {
  for (const Function& f : OfAnyNumber()) {
    if (f.slope != nullptr) ExpectDigits(f, true, Sweep());
  }
}

// From the smallest numbers, and from -1, up to the largest.
TEST(ElementwiseDigits, Log1pKeepsFive) {
  std::vector<double> x;
  for (double d = 1e-44; d < 3e38; d *= 1.07) x.push_back(d);
  for (double d = 1e-44; d < 1; d *= 1.07) x.push_back(-d);
  for (double d = 1e-7; d < 1; d *= 1.07) x.push_back(d - 1);
  for (double& v : x) v = static_cast<float>(v);
  ExpectDigits({"log1p", {}, [](Real v) { return std::log1p(v); }, nullptr}, false, x);
}

TEST(ElementwiseDigits, RsqrtKeepsFive) {
  std::vector<double> x;
  for (double d = 1e-37; d < 3e38; d *= 1.07) x.push_back(static_cast<float>(d));
  ExpectDigits({"rsqrt", {}, [](Real v) { return 1 / std::sqrt(v); }, nullptr}, false, x);
}

struct Limits {
  const char* op;
  ir::Attributes attrs;
  std::vector<double> x, y;
};

TEST(ElementwiseDigits, LimitsAreRightAndNaNStays) {
  const double selu_end = static_cast<double>(-kScale * kAlpha);
  const std::vector<double> ends = {-kInf, kInf, kNaN};
  const std::vector<Limits> all = {
      {"relu6", {}, ends, {0, 6, kNaN}},
      {"hardtanh", {{"min_val", -2.0}, {"max_val", 3.0}}, ends, {-2, 3, kNaN}},
      {"leaky_relu", {{"negative_slope", 0.5}}, ends, {-kInf, kInf, kNaN}},
      {"elu", {{"alpha", 2.0}}, ends, {-2, kInf, kNaN}},
      {"selu", {}, ends, {selu_end, kInf, kNaN}},
      {"softsign", {}, ends, {-1, 1, kNaN}},
      {"logsigmoid", {}, ends, {-kInf, 0, kNaN}},
      {"hardsigmoid", {}, ends, {0, 1, kNaN}},
      {"hardswish", {}, ends, {0, kInf, kNaN}},
      {"expm1", {}, ends, {-1, kInf, kNaN}},
      {"log1p", {}, {-kInf, kInf, kNaN, -1, -2}, {kNaN, kInf, kNaN, -kInf, kNaN}},
      {"rsqrt", {}, {-1, kInf, kNaN, 0}, {kNaN, 0, kNaN, kInf}},
      {"square", {}, ends, {kInf, kInf, kNaN}},
      {"sign", {}, {-kInf, kInf, kNaN, 0}, {-1, 1, kNaN, 0}},
      {"ceil", {}, ends, ends},
      {"round", {}, ends, ends},
  };
  for (const Limits& l : all) {
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      ForEachKernel(CaseOf({l.op, l.attrs, nullptr, nullptr}, false, l.x), dtype,
                    [&](const std::vector<Tensor>& out, const std::string& what) {
                      for (size_t i = 0; i < l.x.size(); ++i) {
                        const double got = out[0].at(static_cast<int64_t>(i)), want = l.y[i];
                        const bool close =
                            std::isnan(want)
                                ? std::isnan(got)
                                : got == want || std::abs(got - want) < 4e-3 * std::abs(want);
                        EXPECT_TRUE(close) << what << " of " << l.x[i] << ": " << got;
                      }
                    });
    }
  }
}

TEST(ElementwiseDigits, SlopesAtInfinity) {
  const std::vector<Limits> all = {
      {"relu6_grad", {}, {0, 6, 3}, {0, 0, 1}},
      {"hardtanh_grad", {{"min_val", -2.0}, {"max_val", 3.0}}, {-kInf, kInf, -2, 3}, {0, 0, 0, 0}},
      {"leaky_relu_grad", {{"negative_slope", 0.5}}, {-kInf, kInf, 0}, {0.5, 1, 0.5}},
      {"elu_grad", {{"alpha", 2.0}}, {-kInf, kInf, 0}, {0, 1, 2}},
      {"softsign_grad", {}, {-kInf, kInf, 0, 1}, {0, 0, 1, 0.25}},
      {"logsigmoid_grad", {}, {-kInf, kInf, 0}, {1, 0, 0.5}},
      {"hardsigmoid_grad", {}, {-kInf, kInf, -3, 3}, {0, 0, 0, 0}},
      {"hardswish_grad", {}, {-kInf, kInf, -3, 3, -1.5}, {0, 1, 0, 1, 0}},
  };
  for (const Limits& l : all) {
    const Shape shape{static_cast<int64_t>(l.x.size())};
    const OpCase c =
        Case(l.op, "limits", {Fixed(shape, l.x), Fixed(shape, std::vector<double>(l.x.size(), 1))},
             l.attrs);
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      ForEachKernel(c, dtype, [&](const std::vector<Tensor>& out, const std::string& what) {
        EXPECT_EQ(out[0].ToVector(), l.y) << what;
      });
    }
  }
}

// Two are equally near: the even one. Above 2^23 every f32 is whole; 0.49999997 + 0.5 rounds to 1.
TEST(ElementwiseDigits, RoundsHalfToEven) {
  const std::vector<double> x = {-2.5, -1.5, -0.5,       -0.0,      0.5,        1.5,  2.5,
                                 3.5,  2.25, 0x1p23 + 1, 4194303.5, 0.49999997, -0.25};
  const std::vector<double> y = {-2, -2, -0.0, -0.0, 0, 2, 2, 4, 2, 0x1p23 + 1, 4194304, 0, -0.0};
  ForEachKernel(Case("round", "ties", {Fixed({13}, x)}), DType::kF32,
                [&](const std::vector<Tensor>& out, const std::string& what) {
                  EXPECT_EQ(out[0].ToVector(), y) << what;
                  for (size_t i = 0; i < y.size(); ++i) {
                    EXPECT_EQ(std::signbit(out[0].at(static_cast<int64_t>(i))), std::signbit(y[i]))
                        << what << " of " << x[i];
                  }
                });
}

}  // namespace
}  // namespace halftone::testing
