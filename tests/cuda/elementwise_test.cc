// Elementwise kernels where the case tables do not reach: sizes around a tile, special values,
// unaligned arrays, results over operands, whole numbers and f64.
#include "halftone/kernels/cuda/ops/elementwise.h"

#include <gtest/gtest.h>

#include <limits>

#include "halftone/kernels/cuda/device/map_plan.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/direct_run.h"
#include "halftone/tests/support/special_values.h"

namespace halftone::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kStorage[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr int64_t kTile = 2048;  // elements of a block

std::vector<double> Special() {
  return {0.0,   -0.0,   1.0,  -1.0,  kInf,   -kInf,   kNan,    0.5,      -0.5,  1e-40,
          1e-40, -1e-40, 6e-8, -6e-8, 1e-30,  2.5,     -2.5,    88.0,     89.0,  -88.0,
          -104,  -87.5,  10.0, -10.0, 3.4e38, -3.4e38, 65504.0, -65504.0, 700.0, 1.000001};
}
OpInput Listed(const std::vector<double>& values) {
  return Fixed(Shape{static_cast<int64_t>(values.size())}, values);
}
// Each value with each.
std::pair<OpInput, OpInput> SpecialPairs() {
  std::vector<double> a, b;
  for (double x : Special()) {
    for (double y : Special()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  return {Listed(a), Listed(b)};
}

TEST(CudaElementwise, SizesAroundAVectorAWarpAndATile) {
  for (int64_t n : {int64_t{1}, int64_t{4}, int64_t{7}, int64_t{31}, int64_t{33}, kTile - 1, kTile,
                    kTile + 1, kTile + 4, 2 * kTile + 13}) {
    for (DType dtype : kStorage) {
      ExpectCpuBits(Case("add", "size", {Reals({n}), Reals({n})}), dtype);
      ExpectCpuBits(Case("neg", "size", {Reals({n})}), dtype);
      ExpectCpuBits(Case("less", "size", {Reals({n}), Reals({n})}), dtype);
      ExpectCpuBits(Case("where", "size", {Bools({n}), Reals({n}), Reals({n})}), dtype);
    }
  }
}

// Inner extents that take accesses of 8, 4 and 1 elements.
TEST(CudaElementwise, BroadcastsAnyOperand) {
  for (int64_t inner : {1, 3, 4, 8, 12, 33, 40}) {
    const Shape whole{3, 5, inner};
    for (const Shape& part : {Shape{}, Shape{inner}, Shape{5, 1}, Shape{3, 1, inner},
                              Shape{1, 5, inner}, Shape{3, 1, 1}}) {
      for (DType dtype : kStorage) {
        ExpectCpuBits(Case("sub", "right", {Reals(whole), Reals(part)}), dtype);
        ExpectCpuBits(Case("sub", "left", {Reals(part), Reals(whole)}), dtype);
        ExpectCpuBits(Case("where", "condition", {Bools(part), Reals(whole), Reals(part)}), dtype);
        ExpectCpuBits(Case("where", "both", {Bools(whole), Reals(part), Reals({})}), dtype);
      }
    }
    ExpectCpuBits(Case("mul", "outer", {Reals({7, 1}), Reals({inner})}), DType::kF32);
  }
}

TEST(CudaElementwise, UnalignedArrays) {
  for (DType dtype : kStorage) {
    for (int64_t n : {int64_t{33}, kTile + 8}) {
      const Placement unaligned{.offset = SizeOf(dtype)};
      ExpectCpuBits(Case("add", "unaligned", {Reals({n}), Reals({n})}), dtype, unaligned);
      ExpectCpuBits(Case("abs", "unaligned", {Reals({n})}), dtype, unaligned);
      ExpectCpuBits(Case("where", "unaligned", {Bools({n}), Reals({n}), Reals({})}), dtype,
                    unaligned);
    }
  }
}

TEST(CudaElementwise, ResultsOverOperands) {
  for (DType dtype : kStorage) {
    for (int64_t n : {int64_t{33}, kTile + 9}) {
      const Shape whole{2, n};
      for (int over : {0, 1}) {
        ExpectCpuBits(Case("sub", "in_place", {Reals(whole), Reals(whole)}), dtype,
                      {.in_place = over});
        ExpectCpuBits(Case("where", "in_place", {Bools({n}), Reals(whole), Reals(whole)}), dtype,
                      {.in_place = over + 1});
      }
      ExpectCpuBits(Case("mul", "in_place", {Reals(whole), Reals({n})}), dtype, {.in_place = 0});
      ExpectCpuBits(Case("mul", "in_place", {Reals({2, 1}), Reals(whole)}), dtype, {.in_place = 1});
    }
  }
}

TEST(CudaElementwise, SpecialValuesGiveTheCpusBits) {
  const auto [a, b] = SpecialPairs();
  for (DType dtype : kStorage) {
    for (const char* op : {"relu", "sqrt", "neg", "abs", "floor", "reciprocal", "isfinite"}) {
      ExpectCpuBits(Case(op, "special", {Listed(Special())}), dtype);
    }
    for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum", "equal", "not_equal",
                           "less", "less_equal", "greater", "greater_equal", "relu_grad"}) {
      ExpectCpuBits(Case(op, "special", {a, b}), dtype);
    }
  }
}

TEST(CudaElementwise, FunctionsOfSpecialValues) {
  const auto [a, b] = SpecialPairs();
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (const char* op : {"sigmoid", "tanh", "silu", "exp", "log", "erf", "cos", "sin"}) {
      ExpectReference(Case(op, "special", {Listed(Special())}), dtype);
    }
    for (const char* form : {"none", "tanh"}) {
      const ir::Attributes attrs = {{"approximate", std::string(form)}};
      ExpectReference(Case("gelu", "special", {Listed(Special())}, attrs), dtype);
      // Its limits; the reference has NaN at infinity.
      ExpectReference(Case("gelu_grad", "special",
                           {Listed({-30, -5, -0.0, 0, 3, 30, kNan}), Reals({7})}, attrs),
                      dtype);
    }
    ExpectReference(Case("pow", "special", {a, b}), dtype);
  }
}

TEST(CudaElementwise, GradientOfGeluAtInfinityIsThatOfTheCpu) {
  for (const char* form : {"none", "tanh"}) {
    const OpCase c = Case("gelu_grad", "infinity", {Listed({kInf, -kInf}), Listed({2, 2})},
                          {{"approximate", std::string(form)}});
    const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32);
    const Tensor dx = RunNative(*CaseNode(*graph), MakeCaseInputs(c, DType::kF32));
    EXPECT_EQ(dx.at(0), 2);
    EXPECT_EQ(dx.at(1), 0);
  }
}

TEST(CudaElementwise, CosOfLargeArguments) {
  std::vector<double> x = {1e5,    99999.9, 100001, 123456.789, 1e7,   3.14159274e9, 2147483647,
                           -2.5e9, 1e10,    1e15,   -1e22,      3e30,  3.4e38,       2147483648.5,
                           4.5e15, 9e15,    1e16,   -7e20,      6.4e37};
  for (int i = 0; i < 400; ++i) x.push_back(std::ldexp(1 + i / 401.0, i % 100 + 10));
  ExpectReference(Case("cos", "large", {Listed(x)}), DType::kF32);
  for (int i = 0; i < 900; ++i) x.push_back(std::ldexp(1 + i / 901.0, i + 100));
  // The double nearest to a multiple of pi/2: 6381956970095103 * 2^797 (Muller, "Elementary
  // functions", on worst cases of reduction).
  x.push_back(std::ldexp(6381956970095103.0, 797));
  ExpectReference(Case("cos", "large", {Listed(x)}), DType::kF64);
}

TEST(CudaElementwise, F64) {
  const auto [a, b] = SpecialPairs();
  for (const char* op : {"relu", "sqrt", "neg", "abs", "floor", "reciprocal", "isfinite"}) {
    ExpectReference(Case(op, "f64", {Listed(Special())}), DType::kF64);
  }
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum", "equal", "not_equal",
                         "less", "less_equal", "greater", "greater_equal", "relu_grad"}) {
    ExpectReference(Case(op, "f64", {a, b}), DType::kF64);
  }
  for (const char* op : {"add", "mul", "div"}) {
    ExpectReference(Case(op, "f64", {Reals({3, 1025}), Reals({3, 1})}), DType::kF64);
  }
  for (const char* op : {"sigmoid_grad", "tanh_grad", "silu_grad"}) {
    ExpectReference(Case(op, "f64", {Reals({33}), Reals({33})}), DType::kF64);
  }
  ExpectReference(Case("where", "f64", {Bools({5, 1}), Reals({5, 33}), Reals({33})}), DType::kF64);
}

TEST(CudaElementwise, WholeNumbersWrap) {
  const auto ends = [](DType dtype) {
    const double least = dtype == DType::kI64 ? -0x1p63 : dtype == DType::kI32 ? -0x1p31 : 0;
    const double largest = dtype == DType::kI64 ? 0x1p62 : dtype == DType::kI32 ? 0x1p31 - 1 : 255;
    std::vector<double> a, b;
    for (double x : {least, largest, 0.0, 1.0, 3.0, 100.0}) {
      for (double y : {least, largest, 0.0, 1.0, 3.0, 100.0}) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    OpInput first = Whole(dtype, Shape{36}, 0, 1), second = first;
    first.gen = {InputGen::Kind::kFixed, 0, 1, a};
    second.gen = {InputGen::Kind::kFixed, 0, 1, b};
    return std::vector<OpInput>{first, second};
  };
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    for (const char* op : {"add", "sub", "mul", "maximum", "minimum", "equal", "not_equal", "less",
                           "less_equal", "greater", "greater_equal"}) {
      ExpectCpuBits(Case(op, "ends", ends(dtype)), DType::kF32);
      ExpectCpuBits(
          Case(op, "many", {Whole(dtype, {3, 1027}, 0, 200), Whole(dtype, {1027}, 0, 200)}),
          DType::kF32);
    }
    ExpectCpuBits(Case("where", "whole",
                       {Bools({1027}), Whole(dtype, {1027}, 0, 200), Whole(dtype, {1}, 0, 200)}),
                  DType::kF32);
    if (dtype == DType::kU8) continue;
    ExpectCpuBits(Case("neg", "ends", {ends(dtype)[0]}), DType::kF32);
    ExpectCpuBits(Case("abs", "ends", {ends(dtype)[0]}), DType::kF32);
  }
}

// Any nonzero byte is true.
TEST(CudaElementwise, BytesOfBools) {
  const std::vector<unsigned char> a_bytes = {0, 1, 2, 255, 0, 128}, b_bytes = {0, 0, 1, 7, 255, 1};
  const auto bools = [](const std::vector<unsigned char>& bytes) {
    Tensor t = Tensor::Zeros(DType::kBool, {6});
    std::copy(bytes.begin(), bytes.end(), static_cast<unsigned char*>(t.raw()));
    return t;
  };
  for (const char* op : {"logical_and", "logical_or", "equal", "not_equal", "less"}) {
    const auto graph = BuildCaseGraph(Case(op, "bytes", {Bools({6}), Bools({6})}), DType::kF32);
    const std::vector<Tensor> inputs = {bools(a_bytes), bools(b_bytes)};
    EXPECT_TRUE(SameBits(RunNative(*CaseNode(*graph), inputs), RunCpu(*CaseNode(*graph), inputs)))
        << op;
  }
  const auto graph = BuildCaseGraph(Case("logical_not", "bytes", {Bools({6})}), DType::kF32);
  EXPECT_TRUE(SameBits(RunNative(*CaseNode(*graph), {bools(a_bytes)}),
                       RunCpu(*CaseNode(*graph), {bools(a_bytes)})));
  // As a condition, where the CPU's kernel agrees with the reference.
  const auto choose =
      BuildCaseGraph(Case("where", "bytes", {Bools({6}), Reals({6}), Reals({})}), DType::kBF16);
  std::vector<Tensor> inputs =
      MakeCaseInputs(Case("where", "bytes", {Bools({6}), Reals({6}), Reals({})}), DType::kBF16);
  inputs[0] = bools(a_bytes);
  EXPECT_TRUE(SameBits(RunNative(*CaseNode(*choose), inputs), RunCpu(*CaseNode(*choose), inputs)));
}

// Sizes beyond 2^31 index by 64-bit division: here forced on a small one.
TEST(CudaElementwise, WideIndicesGiveTheSame) {
  const OpCase c = Case("add", "wide", {Reals({4, 3, 5}), Reals({4, 1, 5})});
  const auto graph = BuildCaseGraph(c, DType::kF32);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  cuda::MapParams<2> params = cuda::PlanMap<2>(*CaseNode(*graph), {0, 1});
  ASSERT_TRUE(params.index.narrow);
  ASSERT_EQ(params.index.axes, 3);
  params.index.narrow = false;
  for (cuda::Divisor& d : params.index.divisors) d = {};
  const DeviceMemory a(inputs[0].raw(), inputs[0].num_bytes()),
      b(inputs[1].raw(), inputs[1].num_bytes()), y(inputs[0].num_bytes());
  params.x[0] = a.data();
  params.x[1] = b.data();
  params.y = y.data();
  ASSERT_EQ(cuda::LaunchF32(cuda::Formula::kAdd, params, nullptr), cudaSuccess);
  Tensor got = Tensor::Zeros(DType::kF32, {4, 3, 5});
  ASSERT_EQ(y.Read(got.raw()), cudaSuccess);
  EXPECT_TRUE(SameBits(got, RunCpu(*CaseNode(*graph), inputs)));
}

TEST(CudaElementwise, DivisorsAreExact) {
  for (int64_t d : {1, 2, 3, 5, 7, 10, 255, 256, 641, 65535, 65537, 1 << 30, (1 << 30) + 1,
                    INT32_MAX - 1, INT32_MAX}) {
    const cuda::Divisor divisor = cuda::MakeDivisor(d);
    for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{1000}, INT32_MAX / d}) {
      for (int64_t n : {k * d - 1, k * d, k * d + 1, int64_t{INT32_MAX}}) {
        if (n < 0 || n > INT32_MAX) continue;
        const auto number = static_cast<uint64_t>(n);
        EXPECT_EQ(((number * divisor.factor >> 32) + number) >> divisor.shift,
                  static_cast<uint64_t>(n / d))
            << n << " / " << d;
      }
    }
  }
}

}  // namespace
}  // namespace halftone::testing
