// How many bytes live at each position of a step, while lifetimes are tried out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace halftone::passes {

// A binary tree over positions: a range is added to, and its largest number found, in log n.
class BytesOverTime {
 public:
  // 0 at positions 0..size-1. Requires: size > 0.
  explicit BytesOverTime(int size) : size_(size), nodes_(static_cast<size_t>(4 * size)) {}

  // Adds to positions from..to, both included; nothing if there are none.
  void Add(int from, int to, int64_t bytes) {
    if (from <= to) Add(1, 0, size_ - 1, from, to, bytes);
  }
  // The most at from..to. Requires: from <= to.
  int64_t Max(int from, int to) const { return Max(1, 0, size_ - 1, from, to); }
  int64_t At(int position) const { return Max(position, position); }
  int64_t peak() const { return nodes_[1].max; }
  // The first position with the most bytes.
  int peak_position() const {
    int node = 1, from = 0, to = size_ - 1;
    while (from < to) {
      const int middle = (from + to) / 2;
      const bool left = nodes_[2 * node].max >= nodes_[2 * node + 1].max;
      (left ? to : from) = left ? middle : middle + 1;
      node = 2 * node + (left ? 0 : 1);
    }
    return from;
  }

 private:
  struct Node {
    int64_t max = 0;    // of the subtree, what was added to all of it included
    int64_t added = 0;  // to all of it
  };

  void Add(int node, int from, int to, int first, int last, int64_t bytes) {
    if (last < from || to < first) return;
    if (first <= from && to <= last) {
      nodes_[node].max += bytes;
      nodes_[node].added += bytes;
      return;
    }
    const int middle = (from + to) / 2;
    Add(2 * node, from, middle, first, last, bytes);
    Add(2 * node + 1, middle + 1, to, first, last, bytes);
    nodes_[node].max =
        std::max(nodes_[2 * node].max, nodes_[2 * node + 1].max) + nodes_[node].added;
  }

  int64_t Max(int node, int from, int to, int first, int last) const {
    if (first <= from && to <= last) return nodes_[node].max;
    const int middle = (from + to) / 2;
    int64_t most = INT64_MIN;
    if (first <= middle) most = Max(2 * node, from, middle, first, last);
    if (last > middle) most = std::max(most, Max(2 * node + 1, middle + 1, to, first, last));
    return most + nodes_[node].added;
  }

  int size_;
  std::vector<Node> nodes_;
};

}  // namespace halftone::passes
