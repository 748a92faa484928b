#include "halftone/passes/arena_packing.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "halftone/core/allocator.h"

namespace halftone::passes {
namespace {

// Where `bytes` fit between `taken`, which is sorted by offset and may overlap itself.
int64_t TightestGap(const std::vector<std::pair<int64_t, int64_t>>& taken, int64_t bytes) {
  int64_t best = -1;
  int64_t best_size = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (const auto& [from, to] : taken) {
    const int64_t gap = from - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

Packing PackInOrder(const std::vector<Lifetime>& buffers, const std::vector<size_t>& order) {
  Packing packing;
  packing.offsets.assign(buffers.size(), 0);
  std::vector<size_t> placed;
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (size_t i : order) {
    const Lifetime& buffer = buffers[i];
    if (buffer.bytes == 0) continue;
    taken.clear();
    for (size_t j : placed) {
      if (buffers[j].last < buffer.first || buffer.last < buffers[j].first) continue;
      taken.emplace_back(packing.offsets[j], packing.offsets[j] + AlignedBytes(buffers[j].bytes));
    }
    std::sort(taken.begin(), taken.end());
    packing.offsets[i] = TightestGap(taken, AlignedBytes(buffer.bytes));
    packing.arena_bytes =
        std::max(packing.arena_bytes, packing.offsets[i] + AlignedBytes(buffer.bytes));
    placed.push_back(i);
  }
  return packing;
}

}  // namespace

int64_t AlignedBytes(int64_t bytes) {
  constexpr auto kAlignment = static_cast<int64_t>(kBufferAlignment);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Packing PackArena(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  Packing by_time = PackInOrder(buffers, order);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Packing by_size = PackInOrder(buffers, order);
  return by_time.arena_bytes < by_size.arena_bytes ? by_time : by_size;
}

}  // namespace halftone::passes
