// WideDivisor against division.
#include "halftone/kernels/cuda/device/wide_divisor.h"

#include <gtest/gtest.h>

#include <limits>

namespace halftone::testing {
namespace {

__extension__ using Uint128 = unsigned __int128;

// The formula of wide_divisor.cuh.
int64_t Quotient(int64_t n, const cuda::WideDivisor& d) {
  const auto wide = static_cast<uint64_t>(n);
  const auto high = static_cast<uint64_t>((static_cast<Uint128>(wide) * d.factor) >> 64);
  return static_cast<int64_t>((high + wide) >> d.shift);
}

TEST(WideDivisorTest, GivesTheQuotient) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> numbers = {1, 2, 3, 5, 6, 7, 9, 10, 641, 1000, 65535, 65537};
  for (int bits = 2; bits < 63; ++bits) {
    for (int64_t off : {-1, 0, 1}) numbers.push_back((int64_t{1} << bits) + off);
  }
  numbers.push_back(kMost);
  for (const int64_t divisor : numbers) {
    const cuda::WideDivisor d = cuda::WideDivisorOf(divisor);
    EXPECT_EQ(Quotient(0, d), 0);
    for (const int64_t n : numbers) {
      ASSERT_EQ(Quotient(n, d), n / divisor) << n << " / " << divisor;
      const int64_t multiple = n / divisor * divisor;
      ASSERT_EQ(Quotient(multiple, d), n / divisor) << multiple << " / " << divisor;
    }
  }
}

}  // namespace
}  // namespace halftone::testing
