// Reductions at sizes that the case tables leave out: long, of no round number, of f64 and
// integers.
#include <limits>

#include "halftone/tests/cuda/check_on_device.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kSizes[] = {1, 31, 33, 257, 1025, 5000};

OpCase Reduced(const std::string& op, OpInput x, const Ints& axes) {
  return Case(op, "test", {std::move(x)}, {{"axes", axes}});
}

TEST(ReductionTest, Rows) {
  for (const char* op : {"sum", "mean", "max"}) {
    for (int64_t n : kSizes) {
      CheckOnDevice(Reduced(op, Reals({3, n}), {1}));
      CheckOnDevice(Reduced(op, Reals({33, n / 8 + 1}), {1}));
    }
  }
}

TEST(ReductionTest, Columns) {
  for (const char* op : {"sum", "mean", "max"}) {
    for (int64_t n : kSizes) {
      CheckOnDevice(Reduced(op, Reals({n, 3}), {0}));
      CheckOnDevice(Reduced(op, Reals({n, 32}), {0}));
      CheckOnDevice(Reduced(op, Reals({9, n}), {0}));
    }
  }
}

// Several chunks, of all elements and of columns.
TEST(ReductionTest, Chunks) {
  for (const char* op : {"sum", "mean", "max"}) {
    CheckOnDevice(Reduced(op, Reals({100003}, -1, 2), {0}));
    CheckOnDevice(Reduced(op, Reals({2, 40, 1000}, -1, 2), {1, 2}));
    CheckOnDevice(Reduced(op, Reals({3, 9000, 5}, -1, 2), {1}));
    CheckOnDevice(Reduced(op, Reals({20, 3, 30, 40}, -1, 2), {0, 2, 3}));
    CheckOnDevice(Reduced(op, Reals({20, 30, 40, 3}, -1, 2), {0, 2}));
  }
}

TEST(ReductionTest, AlternatingAxes) {
  for (const Ints& axes : std::vector<Ints>{{0, 2, 4, 6}, {1, 3, 5, 7}, {1, 4, 5}, {0, 3, 7}}) {
    CheckOnDevice(Reduced("sum", Reals({2, 3, 2, 4, 3, 2, 2, 5}), axes));
    CheckOnDevice(Reduced("max", Reals({2, 3, 2, 4, 3, 2, 2, 8}), axes));
  }
}

TEST(ReductionTest, DoublesAndIntegers) {
  OpCase c = Reduced("sum", Reals({7, 1025}), {1});
  c.dtypes = {DType::kF64};
  CheckOnDevice(c);
  c = Reduced("mean", Reals({1025, 6}), {0});
  c.dtypes = {DType::kF64};
  CheckOnDevice(c);
  c = Reduced("max", Reals({1025}), {0});
  c.dtypes = {DType::kF64};
  CheckOnDevice(c);
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    const double lo = dtype == DType::kU8 ? 0 : -200;
    for (const char* op : {"sum", "max"}) {
      for (const Shape& shape : {Shape{9, 257}, Shape{257, 9}, Shape{40000, 2}}) {
        c = Reduced(op, Whole(dtype, shape, lo, 255), {shape[0] > shape[1] ? 0 : 1});
        c.dtypes = {DType::kF32};
        CheckOnDevice(c);
      }
    }
  }
}

// A running f32 sum of a million values of one sign would be off in the fourth digit.
TEST(ReductionTest, LongSumsKeepTheirDigits) {
  OpCase c = Reduced("sum", Reals({1 << 20}, 0.5, 1), {0});
  c.dtypes = {DType::kF32};
  CheckOnDevice(c);
  c = Reduced("sum", Reals({1 << 18, 2}, 0.5, 1), {0});
  c.dtypes = {DType::kF32};
  CheckOnDevice(c);
}

TEST(ReductionTest, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{1, nan, 3, 2},
                                        {nan, nan, nan, nan},
                                        {-inf, -inf, -inf, -inf},
                                        {1, inf, 2, -3},
                                        {inf, -inf, 0, 0},
                                        {-0.0, -0.0, -0.0, -0.0}}) {
    for (const char* op : {"sum", "mean", "max"}) {
      CheckOnDevice(Reduced(op, Fixed({1, 4}, values), {1}));
      CheckOnDevice(Reduced(op, Fixed({4, 1}, values), {0}));
      CheckOnDevice(Reduced(op, Fixed({2, 2}, values), {0}));
    }
    CheckOnDevice(Case("argmax", "test", {Fixed({4}, values)}, {{"axis", int64_t{0}}}));
  }
  // The sign of zero, which comparison of values does not see.
  const std::vector<Tensor> zeros = {Tensor::Full(DType::kF32, Shape{2, 33}, -0.0)};
  const std::vector<Tensor> sum =
      RunCaseOnDevice(Reduced("sum", Reals({2, 33}), {1}), DType::kF32, zeros);
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_TRUE(std::signbit(sum[0].at(0)) && std::signbit(sum[0].at(1)));
}

TEST(ReductionTest, Nothing) {
  CheckOnDevice(Reduced("sum", Reals({0, 33}), {0}));
  CheckOnDevice(Reduced("mean", Reals({33, 0}), {1}));
  CheckOnDevice(Reduced("mean", Reals({0}), {}));
  CheckOnDevice(Reduced("max", Reals({0, 33}), {1}));
  const std::vector<Tensor> sum = RunCaseOnDevice(Reduced("sum", Reals({0}), {0}), DType::kF32,
                                                  {Tensor::Empty(DType::kF32, Shape{0})});
  ASSERT_EQ(sum.size(), 1u);
  EXPECT_FALSE(std::signbit(sum[0].at(0)));
}

TEST(ArgmaxTest, RowsAndColumns) {
  for (int64_t n : kSizes) {
    OpInput ties = Reals({3, n}, 0, 2);
    ties.gen.kind = InputGen::Kind::kInts;
    CheckOnDevice(Case("argmax", "ties", {ties}, {{"axis", int64_t{1}}}));
    CheckOnDevice(Case("argmax", "rows", {Distinct({3, n})}, {{"axis", int64_t{1}}}));
    CheckOnDevice(Case("argmax", "columns", {Distinct({n, 3})}, {{"axis", int64_t{0}}}));
  }
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    OpCase c = Case("argmax", "whole", {Whole(dtype, {5, 4000}, 0, 50)}, {{"axis", int64_t{1}}});
    c.dtypes = {DType::kF32};
    CheckOnDevice(c);
  }
}

}  // namespace
}  // namespace halftone::testing
