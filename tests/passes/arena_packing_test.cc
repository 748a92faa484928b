#include "halftone/passes/arena_packing.h"

#include <gtest/gtest.h>

namespace halftone::passes {
namespace {

TEST(ArenaPacking, SharesBytesOfBuffersThatDoNotLiveTogether) {
  // Steps:      0   1   2   3
  //             a   a
  //                 b   b
  //                     c   c
  const Packing packing = PackArena({{100, 0, 1}, {64, 1, 2}, {100, 2, 3}});
  EXPECT_EQ(packing.offsets, (std::vector<int64_t>{0, 128, 0}));
  EXPECT_EQ(packing.arena_bytes, 192);
}

TEST(ArenaPacking, TakesTheTightestGap) {
  // When the last buffer comes, 0..128 and 192..256 are free.
  const Packing packing = PackArena({{128, 0, 1}, {64, 0, 3}, {64, 0, 1}, {64, 0, 3}, {64, 2, 3}});
  EXPECT_EQ(packing.arena_bytes, 320);
  EXPECT_EQ(packing.offsets[4], packing.offsets[2]);
}

TEST(ArenaPacking, EmptyBuffersTakeNothing) {
  const Packing packing = PackArena({{0, 0, 9}, {1, 0, 9}});
  EXPECT_EQ(packing.arena_bytes, 64);
  EXPECT_EQ(PackArena({}).arena_bytes, 0);
}

}  // namespace
}  // namespace halftone::passes
