// ReadySet: the threads of a block that can go on, and which of them does next.
#pragma once

#include <cstdint>

#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::emulation {

inline constexpr int kMaxThreads = 1024;

// xorshift64: orders that depend on the seed alone.
class Random {
 public:
  explicit Random(uint64_t seed = 1) : state_(seed * 0x9E3779B97F4A7C15ull | 1) {}
  // In [0, bound).
  uint64_t Below(uint64_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 16) % bound;
  }

 private:
  uint64_t state_;
};

class ReadySet {
 public:
  void Clear() {
    for (uint64_t& word : words_) word = 0;
    size_ = 0;
  }
  bool empty() const { return size_ == 0; }
  void Add(int thread) {
    words_[thread >> 6] |= Bit(thread);
    ++size_;
  }
  void Remove(int thread) {
    words_[thread >> 6] &= ~Bit(thread);
    --size_;
  }
  // Removes one: the next after `current` round robin, the highest, or any. -1 if empty.
  int Take(ThreadOrder order, int current, Random& random) {
    if (size_ == 0) return -1;
    int thread = 0;
    switch (order) {
      case ThreadOrder::kForward:
        thread = NextAfter(current);
        break;
      case ThreadOrder::kReverse:
        thread = Highest();
        break;
      case ThreadOrder::kRandom:
        thread = Nth(static_cast<int>(random.Below(static_cast<uint64_t>(size_))));
        break;
    }
    Remove(thread);
    return thread;
  }

 private:
  static constexpr int kWords = kMaxThreads / 64;
  static uint64_t Bit(int thread) { return uint64_t{1} << (thread & 63); }

  int NextAfter(int current) const {
    const int first = (current + 1) & (kMaxThreads - 1);
    int word = first >> 6;
    uint64_t bits = words_[word] & (~uint64_t{0} << (first & 63));
    while (bits == 0) {
      word = (word + 1) % kWords;
      bits = words_[word];
    }
    return word * 64 + __builtin_ctzll(bits);
  }
  int Highest() const {
    int word = kWords - 1;
    while (words_[word] == 0) --word;
    return word * 64 + 63 - __builtin_clzll(words_[word]);
  }
  int Nth(int n) const {
    int word = 0;
    for (; n >= __builtin_popcountll(words_[word]); ++word) n -= __builtin_popcountll(words_[word]);
    uint64_t bits = words_[word];
    while (n-- > 0) bits &= bits - 1;
    return word * 64 + __builtin_ctzll(bits);
  }

  uint64_t words_[kWords] = {};
  int size_ = 0;
};

}  // namespace halftone::emulation
