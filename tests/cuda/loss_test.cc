// Losses at sizes that the case tables leave out, and targets out of range.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "halftone/tests/cuda/check_on_device.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

const char* const kReductions[] = {"none", "sum", "mean"};

ir::Attributes Attrs(const char* reduction, double smoothing = 0, int64_t ignored = -100) {
  return {{"axis", int64_t{1}},
          {"label_smoothing", smoothing},
          {"ignore_index", ignored},
          {"reduction", std::string(reduction)}};
}

OpCase Forward(const Shape& x, const Shape& target, const ir::Attributes& attrs) {
  return Case("cross_entropy", "test",
              {Reals(x, -3, 3), Whole(DType::kI64, target, 0, static_cast<double>(x[1] - 1))},
              attrs);
}

OpCase Gradient(const Shape& x, const Shape& target, const ir::Attributes& attrs) {
  const double half = (std::log(static_cast<double>(x[1])) + 1.2) / 2;  // of the log-sum-exp
  std::vector<int64_t> stats = {2};
  stats.insert(stats.end(), target.dims().begin(), target.dims().end());
  const Shape loss = attrs.GetString("reduction") == "none" ? target : Shape{};
  return Case("cross_entropy_grad", "test",
              {Reals(x, -3, 3), Whole(DType::kI64, target, 0, static_cast<double>(x[1] - 1)),
               Pinned(Reals(Shape(stats), half - 0.25, half + 0.25)), Pinned(Reals(loss, 0.5, 2))},
              attrs);
}

void CheckLoss(OpCase c) {
  c.dtypes.push_back(DType::kF64);
  CheckOnDevice(c);
}

TEST(CrossEntropyTest, Rows) {
  for (int64_t classes : {1, 31, 33, 64, 257, 1025, 5000, 8192}) {
    CheckLoss(Forward({3, classes}, {3}, Attrs("none")));
    CheckLoss(Forward({3, classes}, {3}, Attrs("mean", 0.1)));
    CheckLoss(Gradient({3, classes}, {3}, Attrs("mean", 0.1)));
  }
  OpCase vocabulary = Forward({2, 50257}, {2}, Attrs("none", 0.1));
  vocabulary.dtypes = {DType::kF32};
  CheckOnDevice(vocabulary);
  for (int64_t rows : {1, 31, 33, 257, 1025, 5000}) {
    for (const char* reduction : kReductions) {
      CheckLoss(Forward({rows, 10}, {rows}, Attrs(reduction, 0, 3)));
      CheckLoss(Gradient({rows, 10}, {rows}, Attrs(reduction, 0, 3)));
    }
  }
}

TEST(CrossEntropyTest, Images) {
  for (const char* reduction : kReductions) {
    CheckLoss(Forward({2, 21, 33, 31}, {2, 33, 31}, Attrs(reduction, 0.1, 3)));
    CheckLoss(Gradient({2, 21, 33, 31}, {2, 33, 31}, Attrs(reduction, 0.1, 3)));
  }
}

TEST(CrossEntropyTest, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& values : std::vector<std::vector<double>>{
           {0, -inf, 1}, {-inf, -inf, -inf}, {inf, 0, 1}, {6e4, -6e4, 0}}) {
    for (double smoothing : {0.0, 0.1}) {
      OpCase row =
          Case("cross_entropy", "special", {Fixed({1, 3}, values), Whole(DType::kI64, {1}, 2, 2)},
               Attrs("none", smoothing));
      CheckOnDevice(row);
      OpCase column =
          Case("cross_entropy", "special", {Fixed({3, 1}, values), Whole(DType::kI64, {1}, 2, 2)},
               Attrs("none", smoothing));
      column.attrs.Set("axis", int64_t{0});
      CheckOnDevice(column);
    }
  }
}

// Which logit is the largest of a line with a NaN is left open; the loss is NaN.
TEST(CrossEntropyTest, NanStaysNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{nan, 0, 1}, {0, nan, 1}, {0, 1, nan}}) {
    const OpCase row = Case("cross_entropy", "nan",
                            {Fixed({1, 3}, values), Whole(DType::kI64, {1}, 2, 2)}, Attrs("none"));
    for (DType dtype : row.dtypes) {
      const std::vector<Tensor> got =
          RunCaseOnDevice(row, dtype, MakeCaseInputs(row, dtype), ir::Layout::kPlain);
      ASSERT_EQ(got.size(), 2u);
      EXPECT_TRUE(std::isnan(got[0].ToVector().at(0))) << Name(dtype);
    }
  }
}

TEST(CrossEntropyTest, MeanOfNothingIsNan) {
  OpCase ignored = Case("cross_entropy", "ignored", {Reals({4, 3}), Whole(DType::kI64, {4}, 1, 1)},
                        Attrs("mean", 0, 1));
  CheckOnDevice(ignored);
  for (const char* reduction : kReductions) {
    CheckOnDevice(Forward({0, 3}, {0}, Attrs(reduction)));
    CheckOnDevice(Gradient({0, 3}, {0}, Attrs(reduction)));
  }
}

// The first bad target by position, with its bound. The emulated device sees accesses out of
// bounds.
TEST(CrossEntropyTest, TargetsOutOfRangeAreFaults) {
  for (const Shape& x : {Shape{300, 5}, Shape{10, 5, 30}}) {
    const Shape target = x.rank() == 2 ? Shape{300} : Shape{10, 30};
    for (const char* reduction : kReductions) {
      for (const OpCase& c :
           {Forward(x, target, Attrs(reduction)), Gradient(x, target, Attrs(reduction))}) {
        std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
        inputs[1].data<int64_t>()[280] = int64_t{1} << 40;
        inputs[1].data<int64_t>()[150] = 5;
        inputs[1].data<int64_t>()[290] = -1;
        const absl::Status error = ErrorOnDevice(c, DType::kF32, inputs);
        EXPECT_EQ(error.code(), absl::StatusCode::kOutOfRange) << error;
        EXPECT_THAT(std::string(error.message()), HasSubstr("5"));
        EXPECT_THAT(std::string(error.message()), HasSubstr("0..4"));
      }
    }
  }
}

TEST(RegressionLossTest, Sizes) {
  for (const char* op : {"mse_loss", "l1_loss"}) {
    for (int64_t n : {0, 1, 31, 33, 257, 1025, 5000, 70001}) {
      for (const char* reduction : kReductions) {
        OpCase c =
            Case(op, "test", {Reals({n}), Reals({n})}, {{"reduction", std::string(reduction)}});
        // The reference too adds in f64: of many terms its own rounding shows.
        if (n < 1000) c.dtypes.push_back(DType::kF64);
        CheckOnDevice(c);
      }
    }
  }
}

}  // namespace
}  // namespace halftone::testing
