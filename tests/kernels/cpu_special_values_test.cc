// Elementwise kernels on zeros of both signs, infinities, NaN, subnormals and the ends of the
// range: as the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/kernels/simd_levels.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Special() {
  return {0.0,    -0.0,    1.0,     -1.0,     kInf,    -kInf, kNan,     0.5,
          -0.5,   1e-40,   -1e-40,  6e-8,     -6e-8,   1e-30, 2.5,      -2.5,
          88.0,   89.0,    -88.0,   -104.0,   -87.5,   10.0,  -10.0,    30.0,
          3.4e38, -3.4e38, 65504.0, -65504.0, 1.2e-38, 700.0, 0.999999, 1.000001};
}

// Values that fill vectors and a tail.
std::vector<double> Repeated(std::vector<double> values) {
  const std::vector<double> once = values;
  for (int i = 0; i < 2; ++i) values.insert(values.end(), once.begin(), once.end());
  values.push_back(kNan);
  values.push_back(-kInf);
  values.push_back(0.25);
  return values;
}

OpInput Listed(const std::vector<double>& values) {
  return Fixed(Shape{static_cast<int64_t>(values.size())}, values);
}

TEST(CpuSpecialValues, Unary) {
  const std::vector<double> x = Repeated(Special());
  for (const char* op : {"relu", "sigmoid", "tanh", "silu", "exp", "log", "sqrt", "neg", "abs",
                         "floor", "erf", "reciprocal", "isfinite"}) {
    CheckCandidates(Case(op, "special", {Listed(x)}));
  }
  for (const char* form : {"none", "tanh"}) {
    CheckCandidates(Case("gelu", "special", {Listed(x)}, {{"approximate", std::string(form)}}));
  }
}

// Each value with each.
void Pairs(std::vector<double>* a, std::vector<double>* b) {
  for (double x : Special()) {
    for (double y : Special()) {
      a->push_back(x);
      b->push_back(y);
    }
  }
  a->push_back(kNan);
  b->push_back(1);
}

TEST(CpuSpecialValues, Binary) {
  std::vector<double> a, b;
  Pairs(&a, &b);
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum", "pow", "equal",
                         "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    CheckCandidates(Case(op, "special", {Listed(a), Listed(b)}));
  }
}

TEST(CpuSpecialValues, Gradients) {
  std::vector<double> a, b;
  Pairs(&a, &b);
  CheckCandidates(Case("relu_grad", "special", {Listed(a), Listed(b)}));
  // Only what the function itself can give.
  for (double& y : a) y = std::isnan(y) ? y : std::clamp(y, -1.0, 1.0);
  CheckCandidates(Case("tanh_grad", "special", {Listed(a), Listed(b)}));
  for (double& y : a) y = std::isnan(y) ? y : std::abs(y);
  CheckCandidates(Case("sigmoid_grad", "special", {Listed(a), Listed(b)}));
}

TEST(CpuSpecialValues, WhereTakesOneSideOnly) {
  const std::vector<double> x = Repeated(Special());
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<double> reversed(x.rbegin(), x.rend());
  CheckCandidates(Case("where", "special", {Bools({n}), Listed(x), Listed(reversed)}));
}

TEST(CpuSpecialValues, ReductionsPassNanOn) {
  for (int64_t at : {0, 17, 99}) {
    std::vector<double> x(300, 0.5);
    for (int64_t row = 0; row < 2; ++row) x[row * 100 + at] = kNan;
    x[250] = kInf;
    const OpInput input = Fixed(Shape{3, 100}, x);
    for (const char* op : {"sum", "mean", "max"}) {
      for (int64_t axis : {0, 1}) {
        CheckCandidates(Case(op, "special", {input}, {{"axes", std::vector<int64_t>{axis}}}));
      }
    }
    for (int64_t axis : {0, 1})
      CheckCandidates(Case("argmax", "special", {input}, {{"axis", axis}}));
  }
}

// Expects zeros of one sign from every kernel, the reference's included, at every level.
void ExpectZeros(const std::string& op, const Shape& shape, const ir::Attributes& attrs,
                 bool negative) {
  const OpInput zeros = Fixed(shape, std::vector<double>(shape.num_elements(), -0.0));
  const OpCase c = Case(op, "zeros", {zeros}, attrs);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32);
  const ir::Node& node = *CaseNode(*graph);
  auto& registry = kernels::KernelRegistry::Global();
  for (const auto* candidate : registry.Candidates(op, Device::Kind::kCpu)) {
    for (SimdLevel level : SimdLevelsHere()) {
      const ForcedSimdLevel forced(level);
      auto kernel = registry.CreateNamed(node, candidate->name);
      ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
      const auto y = RunKernel(**kernel, node, inputs);
      ASSERT_TRUE(y.ok()) << Message(y.status());
      for (int64_t i = 0; i < (*y)[0].num_elements(); ++i) {
        const float value = (*y)[0].data<float>()[i];
        EXPECT_TRUE(value == 0 && std::signbit(value) == negative)
            << candidate->name << ", " << Name(level) << ", " << shape << ": " << value;
      }
    }
  }
}

// IEEE 754: -0 + -0 = -0, and a sum of one element is that element. The last shape is summed in
// chunks.
TEST(CpuSpecialValues, SumsKeepTheSignOfZero) {
  for (const Shape& shape :
       {Shape{1, 3}, Shape{3, 1}, Shape{2, 40}, Shape{40, 2}, Shape{9, 700}, Shape{1, 70000}}) {
    for (int64_t axis : {0, 1}) {
      const ir::Attributes attrs = {{"axes", std::vector<int64_t>{axis}}};
      ExpectZeros("sum", shape, attrs, true);
      ExpectZeros("mean", shape, attrs, true);
    }
    ExpectZeros("sum_to_shape", shape, {{"shape", std::vector<int64_t>{shape[0], 1}}}, true);
  }
  ExpectZeros("conv2d_grad_bias", Shape{2, 3, 5, 7}, {}, true);
  // The sum over nothing is 0.
  ExpectZeros("sum", Shape{2, 0}, {{"axes", std::vector<int64_t>{1}}}, false);
}

TEST(CpuSpecialValues, MaxPoolKeepsTheFirstNan) {
  for (int channels : {1, 3, 20}) {
    std::vector<double> x(channels * 16, -kInf);
    for (int c = 0; c < channels; ++c) {
      x[c * 16 + 1] = kNan;
      x[c * 16 + 4] = 7;
      x[c * 16 + 7] = 5;
      x[c * 16 + 13] = 3;
      x[c * 16 + 12] = 3;
    }
    OpCase c =
        Case("max_pool2d", "special", {Fixed(Shape{1, channels, 4, 4}, x)},
             {{"kernel", std::vector<int64_t>{2, 2}}, {"stride", std::vector<int64_t>{2, 2}}});
    c.channels_last = true;
    CheckCandidates(c);
  }
}

}  // namespace
}  // namespace halftone::testing
