// Softmax over rows of every form, columns, and values at the ends of the range.
#include <limits>

#include "halftone/tests/cuda/check_on_device.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

void CheckSoftmaxCase(OpCase c) {
  c.dtypes.push_back(DType::kF64);
  CheckOnDevice(c);
}

void CheckSoftmax(const Shape& x, int64_t axis) {
  const ir::Attributes attrs = {{"axis", axis}};
  for (const char* op : {"softmax", "log_softmax"})
    CheckSoftmaxCase(Case(op, "test", {Reals(x, -6, 6)}, attrs));
  CheckSoftmaxCase(Case("softmax_grad", "test", {Reals(x, 0, 1), Reals(x)}, attrs));
  CheckSoftmaxCase(Case("log_softmax_grad", "test", {Reals(x, -3, 0), Reals(x)}, attrs));
}

TEST(SoftmaxTest, Rows) {
  // Parts of a warp, a warp, a block; whole packs or not; in registers or not.
  for (int64_t n : {1, 2, 31, 33, 64, 257, 1000, 1025, 2048, 5000, 8192, 8200, 20001}) {
    CheckSoftmax({n > 2000 ? 2 : 11, n}, 1);
  }
}

TEST(SoftmaxTest, Columns) {
  for (int64_t n : {1, 7, 8, 33, 1025}) CheckSoftmax({2, n, 5}, 1);
  CheckSoftmax({3, 300}, 0);
}

TEST(SoftmaxTest, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto check = [](const Shape& shape, const std::vector<double>& values, int64_t axis) {
    for (const char* op : {"softmax", "log_softmax"}) {
      CheckOnDevice(Case(op, "special", {Fixed(shape, values)}, {{"axis", axis}}));
    }
  };
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{1, -inf, 2, 0},
                                        {-inf, -inf, -inf, -inf},
                                        {inf, 1, 2, 3},
                                        {0, nan, 1, 2},
                                        {-6e4, 6e4, 0, 6e4}}) {
    check({1, 4}, values, 1);
    check({4, 1}, values, 0);
    check({2, 2}, values, 0);
    // Long rows: the values lie in different threads and groups.
    for (double rest : {-inf, 0.0}) {
      std::vector<double> row(9000, rest);
      for (size_t i = 0; i < 4; ++i) row[i * 2901] = values[i];
      check({1, 9000}, row, 1);
    }
  }
}

}  // namespace
}  // namespace halftone::testing
