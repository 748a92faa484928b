#include "halftone/core/align.h"

#include <gtest/gtest.h>

#include <limits>

namespace halftone {
namespace {

TEST(AlignUp, GivesTheNextMultiple) {
  EXPECT_EQ(AlignUp(0, 64), 0);
  EXPECT_EQ(AlignUp(1, 64), 64);
  EXPECT_EQ(AlignUp(64, 64), 64);
  EXPECT_EQ(AlignUp(65, 64), 128);
  EXPECT_EQ(AlignUp(7, 3), 9);  // no power of two is asked for
  EXPECT_EQ(AlignUp(size_t{5}, 1), 5u);
}

TEST(AlignUp, KeepsTheTypeOfTheValue) {
  static_assert(std::is_same_v<decltype(AlignUp(int64_t{1}, 64)), int64_t>);
  static_assert(std::is_same_v<decltype(AlignUp(uint64_t{1}, 64)), uint64_t>);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() - 127;  // 2^63 - 128
  EXPECT_EQ(AlignUp(kMost, 64), kMost);
  EXPECT_EQ(AlignUp(kMost + 1, 64), kMost + 64);
}

TEST(AlignUp, MovesPointersForward) {
  alignas(256) char bytes[512];
  EXPECT_EQ(AlignUp(static_cast<void*>(bytes), 256), bytes);
  EXPECT_EQ(AlignUp(static_cast<void*>(bytes + 1), 256), bytes + 256);
  EXPECT_EQ(AlignUp(static_cast<void*>(bytes + 255), 256), bytes + 256);
  EXPECT_EQ(AlignUp(nullptr, 256), nullptr);
}

}  // namespace
}  // namespace halftone
