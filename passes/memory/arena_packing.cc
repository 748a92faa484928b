#include "halftone/passes/memory/arena_packing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "halftone/core/align.h"
#include "halftone/core/allocator.h"

namespace halftone::passes {
namespace {

// Buffers that have their place, in a binary tree ordered by offset. Each subtree knows between
// which steps some or all of its buffers live and the widest gap it can have, so that a search for
// a gap enters only subtrees of which a part lives. Balanced by random priorities (a treap), which
// are a hash of the insertion: deterministic.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(size_t capacity) { nodes_.reserve(capacity); }

  void Insert(int64_t from, int64_t to, const Lifetime& life) {
    Node node;
    node.from = from;
    node.to = to;
    node.first = life.first;
    node.last = life.last;
    node.priority = static_cast<uint32_t>(nodes_.size() + 1) * 0x9E3779B1u;
    node.priority ^= node.priority >> 15;
    nodes_.push_back(node);
    Sum(static_cast<int>(nodes_.size()) - 1);
    root_ = InsertBelow(root_, static_cast<int>(nodes_.size()) - 1);
  }

  // The lowest of the tightest gaps of at least `bytes` between the buffers that live while `life`
  // does; the end of the last one if there is none.
  int64_t TightestGap(int64_t bytes, const Lifetime& life) {
    search_ = {bytes, life.first, life.last};
    Search(root_);
    return search_.best >= 0 ? search_.best : search_.end;
  }

  int64_t visits() const { return visits_; }

 private:
  struct Node {
    int64_t from = 0, to = 0;
    int first = 0, last = 0;
    int left = -1, right = -1;
    uint32_t priority = 0;
    // Of the subtree.
    int64_t start = 0, end = 0;  // lowest `from`, highest `to`
    int64_t widest = 0;          // no gap inside is wider while all its buffers live
    int min_first = 0, max_first = 0, min_last = 0, max_last = 0;
  };
  struct GapSearch {
    int64_t bytes = 0;
    int first = 0, last = 0;
    int64_t end = 0;  // what was passed so far ends here
    int64_t best = -1;
    int64_t best_size = std::numeric_limits<int64_t>::max();

    bool Fits(int64_t gap) const { return gap >= bytes && gap < best_size; }
    void Pass(int64_t from, int64_t to) {
      if (Fits(from - end)) {
        best = end;
        best_size = from - end;
      }
      end = std::max(end, to);
    }
  };

  void Sum(int n) {
    Node& node = nodes_[n];
    node.start = node.from;
    node.end = node.to;
    node.widest = 0;
    node.min_first = node.max_first = node.first;
    node.min_last = node.max_last = node.last;
    if (node.left >= 0) {
      const Node& left = nodes_[node.left];
      node.widest = std::max(left.widest, node.from - left.end);
      node.start = left.start;
      node.end = std::max(node.end, left.end);
      SumSteps(node, left);
    }
    if (node.right >= 0) {
      const Node& right = nodes_[node.right];
      node.widest = std::max({node.widest, right.widest, right.start - node.end});
      node.end = std::max(node.end, right.end);
      SumSteps(node, right);
    }
  }

  static void SumSteps(Node& node, const Node& child) {
    node.min_first = std::min(node.min_first, child.min_first);
    node.max_first = std::max(node.max_first, child.max_first);
    node.min_last = std::min(node.min_last, child.min_last);
    node.max_last = std::max(node.max_last, child.max_last);
  }

  // Equal offsets stay in the order of their insertion. Gives the new root of the subtree.
  int InsertBelow(int root, int n) {
    if (root < 0) return n;
    if (nodes_[n].priority > nodes_[root].priority) {
      std::tie(nodes_[n].left, nodes_[n].right) = Split(root, nodes_[n].from);
      Sum(n);
      return n;
    }
    if (nodes_[n].from < nodes_[root].from) {
      nodes_[root].left = InsertBelow(nodes_[root].left, n);
    } else {
      nodes_[root].right = InsertBelow(nodes_[root].right, n);
    }
    Sum(root);
    return root;
  }

  // What begins at `from` or lower, and the rest.
  std::pair<int, int> Split(int root, int64_t from) {
    if (root < 0) return {-1, -1};
    std::pair<int, int> parts;
    if (nodes_[root].from <= from) {
      parts = Split(nodes_[root].right, from);
      nodes_[root].right = std::exchange(parts.first, root);
    } else {
      parts = Split(nodes_[root].left, from);
      nodes_[root].left = std::exchange(parts.second, root);
    }
    Sum(root);
    return parts;
  }

  void Search(int n) {
    if (n < 0 || search_.best_size == search_.bytes) return;
    ++visits_;
    const Node& node = nodes_[n];
    if (node.max_last < search_.first || search_.last < node.min_first) return;  // none lives
    const bool all_live = node.min_last >= search_.first && node.max_first <= search_.last;
    if (all_live && !search_.Fits(node.start - search_.end) && node.widest < search_.bytes) {
      search_.end = std::max(search_.end, node.end);
      return;
    }
    Search(node.left);
    if (node.last >= search_.first && node.first <= search_.last) search_.Pass(node.from, node.to);
    Search(node.right);
  }

  std::vector<Node> nodes_;
  int root_ = -1;
  GapSearch search_;
  int64_t visits_ = 0;
};

// The gaps between the buffers that live now, while time goes on.
class Gaps {
 public:
  // The lowest of the tightest gaps of at least `bytes`, which is taken; else what follows the last
  // buffer.
  int64_t Take(int64_t bytes) {
    const auto tightest = by_size_.lower_bound({bytes, 0});
    if (tightest == by_size_.end()) {
      end_ += bytes;
      return end_ - bytes;
    }
    const auto [size, from] = *tightest;
    Erase(by_offset_.find(from));
    if (size > bytes) Add(from + bytes, from + size);
    return from;
  }

  void GiveBack(int64_t from, int64_t to) {
    const auto after = by_offset_.find(to);
    if (after != by_offset_.end()) {
      to = after->second;
      Erase(after);
    }
    auto before = by_offset_.lower_bound(from);
    if (before != by_offset_.begin() && (--before)->second == from) {
      from = before->first;
      Erase(before);
    }
    if (to == end_) {
      end_ = from;
    } else {
      Add(from, to);
    }
  }

 private:
  void Add(int64_t from, int64_t to) {
    by_offset_.emplace(from, to);
    by_size_.emplace(to - from, from);
  }
  void Erase(std::map<int64_t, int64_t>::iterator gap) {
    by_size_.erase({gap->second - gap->first, gap->first});
    by_offset_.erase(gap);
  }

  std::map<int64_t, int64_t> by_offset_;           // where a gap begins and ends
  std::set<std::pair<int64_t, int64_t>> by_size_;  // its size, and where it begins
  int64_t end_ = 0;                                // of the last buffer
};

// `order` is by first step.
Packing PackByTime(const std::vector<Lifetime>& buffers, const std::vector<size_t>& order) {
  Packing packing;
  packing.offsets.assign(buffers.size(), 0);
  Gaps gaps;
  // Last step and number of what lives, the next to end on top.
  using Ending = std::pair<int, size_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> live;
  for (size_t i : order) {
    const int64_t bytes = AlignedBytes(buffers[i].bytes);
    if (bytes == 0) continue;
    for (; !live.empty() && live.top().first < buffers[i].first; live.pop()) {
      const size_t ended = live.top().second;
      const int64_t from = packing.offsets[ended];
      gaps.GiveBack(from, from + AlignedBytes(buffers[ended].bytes));
    }
    packing.offsets[i] = gaps.Take(bytes);
    packing.arena_bytes = std::max(packing.arena_bytes, packing.offsets[i] + bytes);
    live.emplace(buffers[i].last, i);
  }
  return packing;
}

// Nothing once the search took kMaxPackingVisits.
std::optional<Packing> PackBySize(const std::vector<Lifetime>& buffers,
                                  const std::vector<size_t>& order) {
  Packing packing;
  packing.offsets.assign(buffers.size(), 0);
  PlacedBuffers placed(buffers.size());
  for (size_t i : order) {
    const Lifetime& buffer = buffers[i];
    const int64_t bytes = AlignedBytes(buffer.bytes);
    if (bytes == 0) continue;
    const int64_t offset = placed.TightestGap(bytes, buffer);
    if (placed.visits() > kMaxPackingVisits) return std::nullopt;
    placed.Insert(offset, offset + bytes, buffer);
    packing.offsets[i] = offset;
    packing.arena_bytes = std::max(packing.arena_bytes, offset + bytes);
  }
  packing.visits = placed.visits();
  return packing;
}

}  // namespace

int64_t AlignedBytes(int64_t bytes) {
  return AlignUp(bytes, static_cast<int64_t>(kBufferAlignment));
}

Packing PackArena(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  Packing by_time = PackByTime(buffers, order);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::optional<Packing> by_size = PackBySize(buffers, order);
  if (!by_size || by_time.arena_bytes < by_size->arena_bytes) return by_time;
  return *std::move(by_size);
}

}  // namespace halftone::passes
