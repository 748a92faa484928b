#include "halftone/passes/memory/arena_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

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

// The same greedy choice written plainly: all buffers that live at the same time, sorted by offset.
int64_t PackPlainly(const std::vector<Lifetime>& buffers, const std::vector<size_t>& order,
                    std::vector<int64_t>* offsets) {
  offsets->assign(buffers.size(), 0);
  std::vector<size_t> placed;
  int64_t arena_bytes = 0;
  for (size_t i : order) {
    const int64_t bytes = AlignedBytes(buffers[i].bytes);
    if (bytes == 0) continue;
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j : placed) {
      if (buffers[j].last < buffers[i].first || buffers[i].last < buffers[j].first) continue;
      taken.emplace_back((*offsets)[j], (*offsets)[j] + AlignedBytes(buffers[j].bytes));
    }
    std::sort(taken.begin(), taken.end());
    int64_t best = -1, end = 0, best_size = std::numeric_limits<int64_t>::max();
    for (const auto& [from, to] : taken) {
      if (from - end >= bytes && from - end < best_size) {
        best = end;
        best_size = from - end;
      }
      end = std::max(end, to);
    }
    (*offsets)[i] = best >= 0 ? best : end;
    arena_bytes = std::max(arena_bytes, (*offsets)[i] + bytes);
    placed.push_back(i);
  }
  return arena_bytes;
}

Packing PackPlainly(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  Packing by_time, by_size;
  by_time.arena_bytes = PackPlainly(buffers, order, &by_time.offsets);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  by_size.arena_bytes = PackPlainly(buffers, order, &by_size.offsets);
  return by_time.arena_bytes < by_size.arena_bytes ? by_time : by_size;
}

TEST(ArenaPacking, ChoosesWhatThePlainSearchChooses) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int steps = 1 + static_cast<int>(random() % 60);
    const int sizes = 1 + static_cast<int>(random() % 12);  // few: many equal sizes
    std::vector<Lifetime> buffers(random() % 120);
    for (Lifetime& buffer : buffers) {
      buffer.bytes = static_cast<int64_t>(random() % sizes) * 100;
      buffer.first = static_cast<int>(random() % steps);
      const int longest = round % 2 == 0 ? 3 : steps;
      buffer.last = std::min(steps, buffer.first + static_cast<int>(random() % longest));
    }
    const Packing got = PackArena(buffers), expected = PackPlainly(buffers);
    ASSERT_EQ(got.offsets, expected.offsets) << "round " << round;
    ASSERT_EQ(got.arena_bytes, expected.arena_bytes) << "round " << round;
  }
}

// A training step of n layers: activations that live until their layer's turn on the way back,
// gradients and scratch that live for a moment.
std::vector<Lifetime> StepOfLayers(int n) {
  std::vector<Lifetime> buffers;
  for (int i = 0; i < n; ++i) {
    const int back = 4 * n - 2 * i;
    buffers.push_back({4096, 2 * i, back});
    buffers.push_back({1024, 2 * i + 1, back});
    buffers.push_back({4096, back - 1, back + 1});
    buffers.push_back({256, back, back});
  }
  return buffers;
}

// The search by size would look at some 10^9 buffers for 16,000 layers.
TEST(ArenaPacking, F61WorkIsBounded) {
  const Packing small = PackArena(StepOfLayers(300));
  EXPECT_GT(small.visits, 0);
  EXPECT_LT(small.visits, kMaxPackingVisits / 4) << "far from the bound";
  const Packing large = PackArena(StepOfLayers(16000));
  EXPECT_LE(large.visits, kMaxPackingVisits);
  // The first layer's gradient comes when all activations live.
  EXPECT_GE(large.arena_bytes, 16000 * (4096 + 1024));
}

}  // namespace
}  // namespace halftone::passes
